import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Who watches a request, and what they are told of it. Each event is made only when somebody listens: what
// calls these has asked `isMonitored` or `isWatched` before.
extension RequestCore {
  /// Whether somebody hears of a request's life.
  var isMonitored: Bool { session.eventMonitor.isActive || has(.events) }

  /// Whether somebody hears of its tasks, or decides about storing their responses.
  var isWatched: Bool {
    session.watching.decidesAboutStoring || session.watching.wants(.transfers) || isMonitored
  }

  /// Whether somebody wants to be asked about redirects, or told of them.
  var isRedirectWatched: Bool {
    isWatched || session.watching.wants(.redirects) || session.watching.hasRedirectHandler
      || state.withLock { $0.extras.redirectHandler != nil }
  }

  /// Tells every monitor, each on its queue.
  func tell(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    session.eventMonitor.perform(event)
    guard has(.events) else { return }
    for monitor in state.withLock({ $0.extras.monitors + $0.extras.transferMonitors }) {
      monitor.queue.async { event(monitor) }
    }
  }

  /// Tells the monitors that hear of the URL session: those of the session, and few of the request.
  func tellTransfer(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    session.eventMonitor.perform(event)
    guard has(.events) else { return }
    for monitor in state.withLock({ $0.extras.transferMonitors }) {
      monitor.queue.async { event(monitor) }
    }
  }

  /// - Parameter concernsTask: Whether monitors knew the task of the attempt at hand when the state changed.
  func tellChange(of request: Request, to wish: Request.State, concernsTask: Bool) {
    let task = concernsTask ? tasks(of: request).last : nil
    switch wish {
    case .resumed:
      tell { $0.requestDidResume(request) }
      if let task { tell { $0.request(request, didResumeTask: task) } }
    case .suspended:
      tell { $0.requestDidSuspend(request) }
      if let task { tell { $0.request(request, didSuspendTask: task) } }
    case .cancelled:
      tell { $0.requestDidCancel(request) }
      if let task { tell { $0.request(request, didCancelTask: task) } }
    case .initialized, .finished: break
    }
    state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.untoldChanges -= 1
      guard state.untoldChanges == 0 else { return nil }
      defer { if state.hasExtras { state.extras.changesWaiter = nil } }
      return state.extras.changesWaiter
    }?.resume()
  }

  /// Returns when monitors have been told of every change so far: of two threads that resume and cancel, the
  /// first may be held up while the second already ends the request.
  nonisolated(nonsending) func changesAreTold() async {
    await withCheckedContinuation { continuation in
      let isDone = state.withLock { state in
        if state.untoldChanges > 0 { state.extras.changesWaiter = continuation }
        return state.untoldChanges == 0
      }
      if isDone { continuation.resume() }
    }
  }

  /// Makes the task of the attempt at hand, which is sent when the request is resumed, and tells of it.
  nonisolated(nonsending) func tellTask(of request: Request) async {
    let (handler, listeners) = state.withLock { state in
      state.attempts.owner = request
      state.attempts.begin()
      defer { state.attempts.isShown = true }
      // Those that were added while the request waited have looked at the task by themselves.
      return state.attempts.isShown ? (nil, nil) : (state.extras.taskHandler, state.extras.listeners?.tasks)
    }
    guard let task = tasks(of: request).last else { return }
    if let handler { handler.queue.async { handler.closure(task) } }
    for continuation in listeners ?? [] { continuation.yield(task) }
    stream?.watch { [weak self] data in self?.tellData(data) }
    tell { $0.request(request, didCreateTask: task) }
    switch await stateOfToldTask() {
    case .suspended: tell { $0.request(request, didSuspendTask: task) }
    case .resumed: tell { $0.request(request, didResumeTask: task) }
    case .cancelled: tell { $0.request(request, didCancelTask: task) }
    case .initialized, .finished: break
    }
  }

  /// The state of the request at the moment from which on changes concern the task: it was told of, as were all changes
  /// so far.
  nonisolated(nonsending) private func stateOfToldTask() async -> Request.State {
    while true {
      let lifecycle = state.withLock { state -> Request.State? in
        guard state.untoldChanges == 0 else { return nil }
        state.attempts.isTold = true
        return state.lifecycle.state
      }
      if let lifecycle { return lifecycle }
      await changesAreTold()
    }
  }

  // MARK: On the engine's thread

  /// Calls the delegate without waiting for it.
  func delegate(_ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionTask) -> Void) {
    guard let owner = state.withLock({ $0.attempts.owner }), let task = tasks(of: owner).last else { return }
    let delegate = session.delegate
    let facade = session.facade
    if session.hasOwnDelegate {
      session.rootQueue.async { body(delegate, facade, task) }
    } else {
      body(delegate, facade, task)
    }
  }

  /// The head of a response that is read has come.
  func tellHead(_ response: HTTPURLResponse) {
    state.withLock { $0.extras.headResponse = response }
    guard download == nil else { return tellOffset(response) }
    delegate { [self] delegate, session, task in
      guard let task = task as? URLSessionDataTask else { return }
      delegate.urlSession(session, dataTask: task, didReceive: response) { disposition in
        if disposition == .cancel { self.cancelWhileRunning() }
      }
    }
  }

  /// Bytes of a body have come.
  func tellData(_ data: Data) {
    delegate { delegate, session, task in
      guard let task = task as? URLSessionDataTask else { return }
      delegate.urlSession(session, dataTask: task, didReceive: data)
    }
  }

  private func tellOffset(_ response: HTTPURLResponse) {
    guard let offset = download?.offset, offset > 0, response.statusCode == 206 else { return }
    let total = response.expectedContentLength < 0 ? -1 : offset + response.expectedContentLength
    delegate { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: total)
    }
  }

  func tellBytes(from old: ByteCount, to new: ByteCount) {
    if new.sent > old.sent {
      delegate { delegate, session, task in
        delegate.urlSession(
          session, task: task, didSendBodyData: new.sent - old.sent, totalBytesSent: new.sent,
          totalBytesExpectedToSend: new.expectedToSend)
      }
    }
    guard download != nil, new.received > old.received else { return }
    guard !state.withLock({ $0.extras.progress.isIntermediate }) else { return }
    let offset = old.received == 0 ? download?.offset ?? 0 : 0
    let written = new.received - max(old.received, offset)
    guard written > 0 else { return }
    delegate { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(
        session, downloadTask: task, didWriteData: written, totalBytesWritten: new.received,
        totalBytesExpectedToWrite: new.expectedToReceive)
    }
  }
}
