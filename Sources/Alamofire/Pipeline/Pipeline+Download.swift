import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stage 4b, of downloads: the file is complete and goes where it is wanted.
  nonisolated(nonsending) func storeDownload(_ exchange: Exchange) async throws(AFError) {
    guard let plan = core.download, let source = plan.takeFile() else { return }
    let destination = plan.destination
    if core.isWatched { await tellDownloaded(to: source) }
    guard let destination, let response = exchange.responseForDestination else {
      core.state.withLock { $0.extras.fileURL = source }
      if core.isMonitored {
        tellDestination(source)
        tellStored(.success(source))
      }
      return
    }
    let pipeline = self
    let result = await offLoop { () -> Result<URL, AFError> in
      let (target, options) = pipeline.core.isCancelled ? (source, []) : destination(source, response)
      guard !pipeline.core.isCancelled else {
        try? FileManager.default.removeItem(at: source)
        return .failure(.explicitlyCancelled)
      }
      if pipeline.core.isMonitored { pipeline.tellDestination(target) }
      return Self.move(source, to: target, options)
    }
    if case .success(let url) = result { core.state.withLock { $0.extras.fileURL = url } }
    if core.isMonitored { tellStored(result) }
    _ = try result.get()
  }

  private static func move(
    _ source: URL, to target: URL, _ options: DownloadRequest.Options
  ) -> Result<URL, AFError> {
    guard !isSameFile(source, target) else { return .success(target) }
    let files = FileManager.default
    do {
      // What is no file has a path too, where nobody would look for the download.
      guard target.isFileURL else {
        throw CocoaError(.fileWriteUnsupportedScheme, userInfo: [NSURLErrorKey: target])
      }
      // Also a link that leads nowhere is in the way.
      if options.contains(.removePreviousFile), (try? files.attributesOfItem(atPath: target.path)) != nil {
        try files.removeItem(at: target)
      }
      if options.contains(.createIntermediateDirectories) {
        try files.createDirectory(
          at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
      }
      switch BodyFiles.move(source.path, to: target.path) {
      case nil: break
      case ENOSPC?, EDQUOT?: throw CocoaError(.fileWriteOutOfSpace)
      case EIO?, EFBIG?: throw CocoaError(.fileWriteUnknown)
      // Foundation says why it is not possible, or does it.
      default: try files.moveItem(at: source, to: target)
      }
      return .success(target)
    } catch {
      try? files.removeItem(at: source)
      return .failure(.downloadedFileMoveFailed(error: error, source: source, destination: target))
    }
  }

  /// Whether the file lies where it is wanted already, however that is spelt: it is not to be removed for itself.
  private static func isSameFile(_ source: URL, _ target: URL) -> Bool {
    guard source != target else { return true }
    guard target.isFileURL, source.lastPathComponent == target.lastPathComponent else { return false }
    let folders = [source, target].map { $0.deletingLastPathComponent().resolvingSymlinksInPath().path }
    return folders[0] == folders[1]
  }

  /// After the last attempt, and before another: what is left of a broken one is kept for whoever wants to
  /// go on, or removed.
  func settleDownload() {
    guard let plan = core.download else { return }
    forgetFileOfCancelled(plan)
    let (request, isCancelled, wanted) = core.state.withLock { state in
      (state.request, state.lifecycle.state == .cancelled, state.extras.wantsResumeData)
    }
    let data = plan.takeResumeData(of: request)
    guard let data else { return }
    if isCancelled, !wanted {
      if let path = try? ResumeData(data).path { BodyFiles.removePart(path) }
    } else {
      core.state.withLock { $0.extras.resumeData = data }
    }
  }

  /// Forgets the complete file of a cancelled download, because no response names it. A temporary file is removed; a
  /// file at a destination stays.
  private func forgetFileOfCancelled(_ plan: DownloadPlan) {
    let file = core.state.withLock { state -> URL? in
      guard state.lifecycle.state == .cancelled, state.hasExtras, let file = state.extras.fileURL else {
        return nil
      }
      state.extras.fileURL = nil
      return file
    }
    if let file, plan.destination == nil { try? FileManager.default.removeItem(at: file) }
  }

  /// Whoever cancelled for the sake of resume data is told, once.
  func answerResumeDataHandlers() {
    guard core.download != nil else { return }
    let (handlers, data) = core.state.withLock { state in
      defer { state.extras.resumeDataHandlers = [] }
      return (state.extras.resumeDataHandlers, state.extras.resumeData)
    }
    guard !handlers.isEmpty else { return }
    core.session.rootQueue.async { for handler in handlers { handler(data) } }
  }
}
