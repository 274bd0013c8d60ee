import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The events that monitors and delegates receive. The callers ask `notifiesMonitors` or `observers` before, so that no
// event is made for a request without observers.
extension RequestCore {
  /// Calls `event` with each monitor, on the queue of that monitor.
  func tell(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    session.eventMonitor.perform(event)
    guard has(.events) else { return }
    for monitor in state.withLock({ $0.extras.monitors + $0.extras.transferMonitors }) {
      monitor.queue.async { event(monitor) }
    }
  }

  /// Calls `event` with the monitors that receive the events of the URL session. All monitors of the session receive
  /// them, and those monitors of the request that were added for such events.
  func tellTransfer(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    session.eventMonitor.perform(event)
    guard has(.events) else { return }
    for monitor in state.withLock({ $0.extras.transferMonitors }) {
      monitor.queue.async { event(monitor) }
    }
  }

  /// Tells monitors of a change of the state.
  ///
  /// - Parameter concernsTask: Whether monitors knew the task of the current attempt when the state changed.
  func tellChange(of request: Request, to new: Request.State, concernsTask: Bool) {
    let task = concernsTask ? tasks(of: request).last : nil
    switch new {
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
    state.withLock { $0.endNotification() }?()
  }

  /// Announces the task of the current attempt, which is sent when the request is resumed.
  func tellTask(of request: Request) async {
    let (handler, listeners) = showTask(of: request)
    guard let task = tasks(of: request).last else { return }
    if let handler { handler.queue.async { handler.closure(task) } }
    for continuation in listeners { continuation.yield(task) }
    stream?.watch { [weak self] data in self?.tellData(data) }
    tell { $0.request(request, didCreateTask: task) }
    switch await beginTaskChanges() {
    case .suspended: tell { $0.request(request, didSuspendTask: task) }
    case .resumed: tell { $0.request(request, didResumeTask: task) }
    case .cancelled: tell { $0.request(request, didCancelTask: task) }
    case .initialized, .finished: break
    }
  }

  // MARK: On the loop's thread

  /// Calls the delegate without waiting for it.
  func delegate(_ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionTask) -> Void) {
    guard let owner = state.withLock({ $0.observed.tasks.owner }), let task = tasks(of: owner).last else {
      return
    }
    let delegate = session.delegate
    let facade = session.facade
    if session.hasOwnDelegate {
      session.rootQueue.async { body(delegate, facade, task) }
    } else {
      body(delegate, facade, task)
    }
  }

  /// Tells observers of the head of a response whose body is read.
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

  /// Tells observers of bytes of a body.
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
