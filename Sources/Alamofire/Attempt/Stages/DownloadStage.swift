import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The file of a download goes to its destination.
extension RequestRun {
  func moveDownload() throws(AFError) -> Outcome {
    guard let plan = core.download, let exchange = values.exchange, let source = plan.takeFile() else {
      return .done
    }
    guard core.observers.contains(.task) else { return try move(source, by: plan, exchange) }
    return .task { [core, request] in
      await core.tellDownloaded(to: source, of: request)
    } then: { (run, _) throws(AFError) in
      try run.move(source, by: plan, exchange)
    }
  }

  private func move(_ source: URL, by plan: DownloadPlan, _ exchange: Exchange) throws(AFError) -> Outcome {
    if let transfer = core.transfer { return move(source, of: transfer, plan, exchange) }
    guard let destination = plan.destination, let response = exchange.responseForDestination else {
      if core.notifiesMonitors { core.tellDestination(source, of: request) }
      return try fileMoved(.success(source))
    }
    return .task { [core, request] () -> Result<URL, AFError> in
      let (target, options) = core.isCancelled ? (source, []) : destination(source, response)
      guard !core.isCancelled else {
        try? FileManager.default.removeItem(at: source)
        return .failure(.explicitlyCancelled)
      }
      if core.notifiesMonitors { core.tellDestination(target, of: request) }
      return DownloadPlan.move(source, to: target, options)
    } then: { (run, result) throws(AFError) in
      try run.fileMoved(result)
    }
  }

  /// Keeps the place of the file of a download.
  func fileMoved(_ result: Result<URL, AFError>) throws(AFError) -> Outcome {
    if case .success(let url) = result { core.state.withLock { $0.extras.fileURL = url } }
    if core.notifiesMonitors { core.tellStored(result, of: request) }
    _ = try result.get()
    return .done
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
