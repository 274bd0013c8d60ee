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

// Notifications of the delegate and the monitors. A request without observers makes no notifications.
extension RequestCore {
  func tellDownloaded(to file: URL, of request: Request) async {
    await callDelegate(for: request) { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: file)
    }
  }

  /// Calls the session's delegate: a delegate of the caller on the root queue, and waits for it; ours at once.
  func callDelegate(
    for request: Request, _ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionTask) -> Void
  ) async {
    guard let task = tasks(of: request).last else { return }
    let delegate = session.delegate
    let facade = session.facade
    guard session.hasOwnDelegate else { return body(delegate, facade, task) }
    await withCheckedContinuation { continuation in
      session.rootQueue.async {
        body(delegate, facade, task)
        continuation.resume()
      }
    }
  }

  /// Asks the delegate about a challenge. A cancelled task does not wait for the answer, nor does one whose deadline is
  /// over.
  func delegateAnswer<Answer: Sendable>(
    to challenge: URLAuthenticationChallenge, _ task: URLSessionTask, whenForgotten: Answer,
    whenCancelled: Answer, deadline: ContinuousClock.Instant?,
    _ read: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Answer
  ) async -> Answer {
    await session.delegateAnswer(
      whenForgotten: whenForgotten, whenCancelled: whenCancelled, deadline: deadline
    ) { delegate, facade, completion in
      delegate.urlSession(facade, task: task, didReceive: challenge) { completion(read($0, $1)) }
    }
  }

  // MARK: Monitors alone

  func tellInitial(_ urlRequest: URLRequest, of request: Request) {
    tell { $0.request(request, didCreateInitialURLRequest: urlRequest) }
  }

  func tellCreated(_ urlRequest: URLRequest, of request: Request) {
    tell { $0.request(request, didCreateURLRequest: urlRequest) }
  }

  func tellCreationFailure(_ error: AFError, of request: Request) {
    tell { $0.request(request, didFailToCreateURLRequestWithError: error) }
  }

  func tellAdapted(_ initial: URLRequest, _ adapted: URLRequest, of request: Request) {
    tell { $0.request(request, didAdaptInitialRequest: initial, to: adapted) }
  }

  func tellAdaptationFailure(_ initial: URLRequest, _ failure: AFError, of request: Request) {
    tell { $0.request(request, didFailToAdaptURLRequest: initial, withError: failure) }
  }

  func tellUploadable(_ result: Result<UploadRequest.Uploadable, AFError>, of request: Request) {
    guard let upload = request as? UploadRequest else { return }
    tell { monitor in
      switch result {
      case .success(let uploadable): monitor.request(upload, didCreateUploadable: uploadable)
      case .failure(let error): monitor.request(upload, didFailToCreateUploadableWithError: error)
      }
    }
  }

  func tellValidated(
    _ urlRequest: URLRequest?, _ exchange: Exchange, _ data: Data?, _ failure: AFError?, of request: Request
  ) {
    guard let response = exchange.httpResponse else { return }
    let result: Request.ValidationResult = failure.map { .failure($0) } ?? .success(())
    if let download = request as? DownloadRequest {
      let url = state.withLock { $0.extras.fileURL }
      tell {
        $0.request(
          download, didValidateRequest: urlRequest, response: response, fileURL: url, withResult: result)
      }
    } else if let stream = request as? DataStreamRequest {
      tell {
        $0.request(stream, didValidateRequest: urlRequest, response: response, withResult: result)
      }
    } else if let request = request as? DataRequest {
      tell {
        $0.request(
          request, didValidateRequest: urlRequest, response: response, data: data, withResult: result)
      }
    }
  }

  func tellDestination(_ url: URL, of request: Request) {
    guard let download = request as? DownloadRequest else { return }
    tell { $0.request(download, didCreateDestinationURL: url) }
  }

  func tellStored(_ result: Result<URL, AFError>, of request: Request) {
    guard let download = request as? DownloadRequest, let task = tasks(of: request).last else { return }
    tell { $0.request(download, didFinishDownloadingUsing: task, with: result) }
  }

  /// Tells the monitors that an attempt with a task has ended.
  func tellCompleted(_ error: AFError?, of request: Request) {
    guard state.withLock({ $0.observed.tasks.hasBegun }), let task = tasks(of: request).last else {
      return
    }
    tell { $0.request(request, didCompleteTask: task, with: error) }
  }

  /// Tells the monitors that the request has ended, and then of its responses. The state of the request is final by
  /// then.
  func tellFinished(_ served: ShortList<any ResponseSink>, of request: Request) {
    tell { $0.requestDidFinish(request) }
    for sink in served { sink.announce(to: request) }
  }
}

// Calls of code that belongs to the caller.
extension SessionCore {
  /// Asks the delegate on the root queue. A task that is cancelled does not wait for the answer, nor does one whose
  /// deadline is over.
  ///
  /// - Parameters:
  ///   - whenForgotten: The answer of a completion that is released without a call.
  ///   - whenCancelled: The answer after a cancellation or the deadline.
  ///   - ask: Calls the delegate with the session that it sees.
  func delegateAnswer<Answer: Sendable>(
    whenForgotten: Answer, whenCancelled: Answer, deadline: ContinuousClock.Instant? = nil,
    _ ask: @escaping @Sendable (SessionDelegate, URLSession, SingleCompletion<Answer>) -> Void
  ) async -> Answer {
    await SingleCompletion.answer(
      whenForgotten: whenForgotten, whenCancelled: whenCancelled, deadline: deadline
    ) { completion in
      let delegate = delegate
      let facade = facade
      rootQueue.async { ask(delegate, facade, completion) }
    }
  }
}
