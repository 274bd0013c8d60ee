import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The file of a download goes to its destination.
extension AttemptDriver {
  @inline(never)
  nonisolated(nonsending) func moveDownload() async throws(AFError) -> AttemptEvent {
    guard let plan = core.download, let exchange = values.exchange, let source = plan.takeFile() else {
      return .done
    }
    if core.observers.contains(.task) { await tellDownloaded(to: source) }
    if let transfer = core.transfer { return try await move(source, of: transfer, plan, exchange) }
    guard let destination = plan.destination, let response = exchange.responseForDestination else {
      core.state.withLock { $0.extras.fileURL = source }
      if core.notifiesMonitors {
        tellDestination(source)
        tellStored(.success(source))
      }
      return .done
    }
    let driver = self
    let result = await core.session.offLoop { () -> Result<URL, AFError> in
      let core = driver.core
      let (target, options) = core.isCancelled ? (source, []) : destination(source, response)
      guard !core.isCancelled else {
        try? FileManager.default.removeItem(at: source)
        return .failure(.explicitlyCancelled)
      }
      if core.notifiesMonitors { driver.tellDestination(target) }
      return Self.move(source, to: target, options)
    }
    if case .success(let url) = result { core.state.withLock { $0.extras.fileURL = url } }
    if core.notifiesMonitors { tellStored(result) }
    _ = try result.get()
    return .done
  }

  /// Moves the file of a download. At its destination it has the mode that the umask gives to new files.
  ///
  /// - Parameter isShared: Whether the file gets that mode. Without, only its owner can read it.
  static func move(
    _ source: URL, to target: URL, _ options: DownloadRequest.Options, isShared: Bool = true
  ) -> Result<URL, AFError> {
    guard !isSameFile(source, target) else { return .success(target) }
    let files = FileManager.default
    do {
      // A URL of another scheme has a path, too, at which the download would not be found.
      guard target.isFileURL else {
        throw CocoaError(.fileWriteUnsupportedScheme, userInfo: [NSURLErrorKey: target])
      }
      // `attributesOfItem` also finds a link to a missing file.
      if options.contains(.removePreviousFile), (try? files.attributesOfItem(atPath: target.path)) != nil {
        try files.removeItem(at: target)
      }
      if options.contains(.createIntermediateDirectories) {
        try files.createDirectory(
          at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
      }
      switch BodyFiles.move(source.path, to: target.path, isShared: isShared) {
      case nil: break
      case ENOSPC?, EDQUOT?: throw CocoaError(.fileWriteOutOfSpace)
      case EIO?, EFBIG?: throw CocoaError(.fileWriteUnknown)
      // Foundation throws the reason or moves the file.
      default: try files.moveItem(at: source, to: target)
      }
      return .success(target)
    } catch {
      try? files.removeItem(at: source)
      return .failure(.downloadedFileMoveFailed(error: error, source: source, destination: target))
    }
  }

  /// Whether the file is at its destination already, however the path is spelt.
  private static func isSameFile(_ source: URL, _ target: URL) -> Bool {
    guard source != target else { return true }
    guard target.isFileURL, source.lastPathComponent == target.lastPathComponent else { return false }
    let folders = [source, target].map { $0.deletingLastPathComponent().resolvingSymlinksInPath().path }
    return folders[0] == folders[1]
  }

  /// Keeps the rest of a broken download as resume data, or removes it.
  func settleDownload() {
    guard let plan = core.download else { return }
    forgetFileOfCancelled(plan)
    // The next session continues the transfer with this file.
    if core.transfer != nil, core.isSuspendedInBackground { return plan.close() }
    let (request, isCancelled, isWanted) = core.state.withLock { state in
      (state.results.request, state.lifecycle.state == .cancelled, state.extras.wantsResumeData)
    }
    guard let data = plan.takeResumeData(of: request) else { return }
    if isCancelled, !isWanted {
      // Also the file of a background transfer, which has left its folder for the resume data.
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

  /// Calls the handlers of `cancel(byProducingResumeData:)`, once.
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
