import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The end of downloads and of background transfers.
extension AttemptLoop {
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

  /// Delivers the responses of a background transfer, which is removed when every handler has returned. Without a
  /// handler the outcome waits for one, in this process or another.
  func end(_ transfer: BackgroundTransfer, _ served: ShortList<any ResponseSink>) {
    transfer.endTurn()
    if core.isSuspendedInBackground {
      transfer.suspend()
      for sink in served { sink.deliver() }
      return
    }
    let isCancelled = core.state.withLock { $0.lifecycle.state == .cancelled }
    guard !served.isEmpty else {
      let isObserved = core.session.hasOwnDelegate && core.observers.contains(.task)
      if isCancelled || isObserved { transfer.remove() } else { transfer.endUnobserved() }
      return
    }
    if !isCancelled { transfer.noteDelivering() }
    // A handler may send the request again.
    let run = transfer.run
    let countdown = Countdown(served.count) { transfer.remove(after: run) }
    for sink in served { sink.deliver { countdown.step() } }
  }
}

/// Calls a closure at the last of several steps.
private final class Countdown: Sendable {
  private let rest: Atomic<Int>
  private let body: @Sendable () -> Void

  init(_ count: Int, _ body: @escaping @Sendable () -> Void) {
    rest = Atomic(count)
    self.body = body
  }

  func step() {
    if rest.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { body() }
  }
}
