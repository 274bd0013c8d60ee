import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The events that monitors and delegates receive. The callers ask `notifiesMonitors` or `observers` before, so that no
// event is created for a request without observers.
extension Request {
  /// Calls `event` with each monitor, on the queue of that monitor.
  func notifyMonitors(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
    session.eventMonitor.perform(event)
    guard core.has(.events) else { return }
    for monitor in additions.withLock({ $0.value.monitors + $0.value.transferMonitors }) {
      monitor.queue.async { event(monitor) }
    }
  }

  /// Calls the monitors with the metrics of an attempt.
  func notifyMonitors(of metrics: TaskMetrics) {
    // Read now, because the request may be sent again before the event arrives on the queue of a monitor.
    let body = (self as? DataRequest)?.data
    notifyMonitors { [self] monitor in
      guard let recorder = monitor as? any BodyRecordingMonitor else {
        return monitor.request(self, didGatherMetrics: metrics)
      }
      recorder.request(self, didGatherMetrics: metrics, body: body)
    }
  }

  /// Calls `event` with the monitors that receive the events of the URL session. All monitors of the session receive
  /// them, and so do the request's monitors that were added for such events.
  func notifyTransfer(ofChunk: Bool, _ event: @escaping @Sendable (any EventMonitor) -> Void) {
    session.eventMonitor.perform(ofChunk: ofChunk, event)
    guard core.has(.events) else { return }
    for monitor in additions.withLock({ $0.value.transferMonitors })
    where !ofChunk || !(monitor is any ChunklessMonitor) {
      monitor.queue.async { event(monitor) }
    }
  }

  /// Notifies monitors of a state change.
  ///
  /// - Parameter concernsTask: Whether monitors knew the task of the current attempt when the state changed.
  private func notifyChange(to new: RequestState, concernsTask: Bool) {
    let (request, task) = (self, concernsTask ? tasks.last : nil)
    switch new {
    case .resumed: notifyMonitors { $0.requestDidResume(request) }
    case .suspended: notifyMonitors { $0.requestDidSuspend(request) }
    case .cancelled: notifyMonitors { $0.requestDidCancel(request) }
    case .initialized, .finished: break
    }
    if let task { notifyTaskChange(to: new, of: task) }
  }

  func announceTask() async {
    let request = self
    core.showTask(of: request)
    guard let task = tasks.last else { return }
    (self as? DataStreamRequest)?.flow.watch { [weak core] bytes in
      if let core, core.observers.contains(.chunks) { core.notify(.data(Data(bytes))) }
    }
    notifyMonitors { $0.request(request, didCreateTask: task) }
    var announced: RequestState?
    // The state may change during a notification, too.
    while let state = await core.taskState(after: announced) {
      notifyTaskChange(to: state, of: task)
      announced = state
    }
  }

  private func notifyTaskChange(to new: RequestState, of task: URLSessionTask) {
    let request = self
    switch new {
    case .suspended: notifyMonitors { $0.request(request, didSuspendTask: task) }
    case .resumed: notifyMonitors { $0.request(request, didResumeTask: task) }
    case .cancelled: notifyMonitors { $0.request(request, didCancelTask: task) }
    case .initialized, .finished: break
    }
  }

  // MARK: On the loop's thread

  /// Calls the delegate without waiting for it.
  private func delegate(_ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionTask) -> Void) {
    guard let task = tasks.last else { return }
    let delegate = session.delegate
    let facade = session.facade
    if session.hasOwnDelegate {
      session.rootQueue.async { body(delegate, facade, task) }
    } else {
      body(delegate, facade, task)
    }
  }

  /// Notifies observers of the head of a response whose body is read.
  private func notifyHead(_ response: HTTPURLResponse) {
    if let download = self as? DownloadRequest { return notifyOffset(response, of: download) }
    // The delegate may decide when another attempt is running.
    let attempt = core.state.withLock { $0.results.retryCount }
    delegate { [core] delegate, session, task in
      guard let task = task as? URLSessionDataTask else { return }
      delegate.urlSession(session, dataTask: task, didReceive: response) { disposition in
        if disposition == .cancel { core.cancelWhileRunning(attempt: attempt) }
      }
    }
  }

  /// Notifies observers of bytes of the body.
  private func notifyData(_ data: Data) {
    delegate { delegate, session, task in
      guard let task = task as? URLSessionDataTask else { return }
      delegate.urlSession(session, dataTask: task, didReceive: data)
    }
  }

  private func notifyOffset(_ response: HTTPURLResponse, of download: DownloadRequest) {
    guard let head = core.state.withLock({ $0.results.head }) else { return }
    let offset = download.plan.offset(of: head)
    guard offset > 0, response.statusCode == 206 else { return }
    let total = response.expectedContentLength < 0 ? -1 : offset + response.expectedContentLength
    delegate { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: total)
    }
  }

  private func notifyBytes(from old: ByteCount, to new: ByteCount) {
    if new.sent > old.sent {
      delegate { delegate, session, task in
        delegate.urlSession(
          session, task: task, didSendBodyData: new.sent - old.sent, totalBytesSent: new.sent,
          totalBytesExpectedToSend: new.expectedToSend)
      }
    }
    guard let download = self as? DownloadRequest, new.received > old.received else { return }
    guard !core.state.withLock({ $0.observed.added.value.progress.isIntermediate }) else { return }
    let offset = old.received == 0 ? download.plan.offset : 0
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

// Calls of the delegate that the run waits for.
extension Request {
  func announceFile(_ file: URL) async {
    await callDelegate { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: file)
    }
  }

  func announceTaskEnd(_ exchange: Exchange?, _ error: AFError?) async {
    if let exchange, error == nil { await storeCandidates(exchange) }
    if let metrics = exchange?.metrics {
      await callDelegate { delegate, session, task in
        delegate.urlSession(session, task: task, didFinishCollecting: metrics)
      }
    }
    let failure = error?.ofTask
    await callDelegate { delegate, session, task in
      delegate.urlSession(session, task: task, didCompleteWithError: failure)
    }
  }

  /// Calls the session's delegate. The caller's delegate is called on the root queue, and awaited; ours is called
  /// directly.
  func callDelegate(
    _ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionTask) -> Void
  ) async {
    guard let task = tasks.last else { return }
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
}

// Notifications without an answer.
extension Request {
  func notify(_ notice: RunNotice) {
    let request = self
    switch notice {
    case .changed(let state, let concernsTask): notifyChange(to: state, concernsTask: concernsTask)
    case .initialRequest(let initial):
      notifyMonitors { $0.request(request, didCreateInitialURLRequest: initial) }
    case .created(let created): notifyMonitors { $0.request(request, didCreateURLRequest: created) }
    case .creationFailed(let error):
      notifyMonitors { $0.request(request, didFailToCreateURLRequestWithError: error) }
    case .adapted(let adapted, from: let initial):
      notifyMonitors { $0.request(request, didAdaptInitialRequest: initial, to: adapted) }
    case .adaptationFailed(let initial, let error):
      notifyMonitors { $0.request(request, didFailToAdaptURLRequest: initial, withError: error) }
    case .head(let response): notifyHead(response)
    case .data(let data): notifyData(data)
    case .bytes(from: let old, to: let new): notifyBytes(from: old, to: new)
    case .failedEarly(let error): notifyFailedEarly(error)
    case .webSocketOpened(protocol: let subprotocol):
      notifyWebSocketDelegate { $0.urlSession($1, webSocketTask: $2, didOpenWithProtocol: subprotocol) }
    case .webSocketClosed(let code, reason: let reason):
      let code = URLSessionWebSocketTask.CloseCode(rawValue: code.rawValue) ?? .invalid
      notifyWebSocketDelegate { $0.urlSession($1, webSocketTask: $2, didCloseWith: code, reason: reason) }
    case .validated(let sent, let exchange, let data, let failure):
      notifyValidated(sent, exchange, data, failure)
    case .completed(let error): notifyCompleted(error)
    case .uploadable(let result): notifyUploadable(result)
    case .destination(let url): notifyDestination(url)
    case .stored(let result): notifyStored(result)
    case .retrying(after: let served):
      for sink in served { sink.announce(to: request) }
      notifyMonitors { $0.requestIsRetrying(request) }
    case .finished(let served, let isLate):
      notifyMonitors { monitor in
        if !isLate || !(monitor is any FirstEndMonitor) { monitor.requestDidFinish(request) }
      }
      for sink in served { sink.announce(to: request) }
    }
  }

  private func notifyWebSocketDelegate(
    _ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionWebSocketTask) -> Void
  ) {
    guard session.observers.observes(.transfers), let task = tasks.last as? URLSessionWebSocketTask else {
      return
    }
    let (delegate, facade) = (session.delegate, session.facade)
    session.rootQueue.async { body(delegate, facade, task) }
  }

  private func notifyValidated(
    _ urlRequest: URLRequest?, _ exchange: Exchange, _ data: Data?, _ failure: AFError?
  ) {
    guard let response = exchange.httpResponse else { return }
    let result: Request.ValidationResult = failure.map { .failure($0) } ?? .success(())
    switch self {
    case let download as DownloadRequest:
      let url = download.fileURL
      notifyMonitors {
        $0.request(
          download, didValidateRequest: urlRequest, response: response, fileURL: url, withResult: result)
      }
    case let stream as DataStreamRequest:
      notifyMonitors {
        $0.request(stream, didValidateRequest: urlRequest, response: response, withResult: result)
      }
    case let request as DataRequest:
      notifyMonitors {
        $0.request(
          request, didValidateRequest: urlRequest, response: response, data: data, withResult: result)
      }
    default: break
    }
  }

  private func notifyFailedEarly(_ error: AFError) {
    let request = self
    guard let task = tasks.last else { return }
    notifyMonitors { $0.request(request, didFailTask: task, earlyWithError: error) }
  }

  private func notifyCompleted(_ error: AFError?) {
    let request = self
    guard core.state.withLock({ $0.observed.tasks.hasBegun }), let task = tasks.last else { return }
    notifyMonitors { $0.request(request, didCompleteTask: task, with: error) }
  }

  private func notifyDestination(_ url: URL) {
    guard let download = self as? DownloadRequest else { return }
    notifyMonitors { $0.request(download, didCreateDestinationURL: url) }
  }

  private func notifyStored(_ result: Result<URL, AFError>) {
    guard let download = self as? DownloadRequest, let task = tasks.last else { return }
    notifyMonitors { $0.request(download, didFinishDownloadingUsing: task, with: result) }
  }

  private func notifyUploadable(_ result: Result<UploadContent, AFError>) {
    guard let upload = self as? UploadRequest else { return }
    notifyMonitors { monitor in
      switch result {
      case .success(let content): monitor.request(upload, didCreateUploadable: .init(content))
      case .failure(let error): monitor.request(upload, didFailToCreateUploadableWithError: error)
      }
    }
  }

  func parsed<Value: Sendable>(_ response: DataResponse<Value, AFError>) {
    guard let request = self as? DataRequest else { return }
    if let plain = response as? DataResponse<Data?, AFError> {
      notifyMonitors { $0.request(request, didParseResponse: plain) }
    } else {
      notifyMonitors { $0.request(request, didParseResponse: response) }
    }
  }

  func parsed<Value: Sendable>(_ response: DownloadResponse<Value, AFError>) {
    guard let request = self as? DownloadRequest else { return }
    if let plain = response as? DownloadResponse<URL?, AFError> {
      notifyMonitors { $0.request(request, didParseResponse: plain) }
    } else {
      notifyMonitors { $0.request(request, didParseResponse: response) }
    }
  }

  func parsed<Value: Sendable>(
    _ outcome: RequestOutcome, _ duration: TimeInterval, _ value: Result<Value, AFError>
  ) {
    if self is DownloadRequest {
      parsed(DownloadResponse(outcome, serializationDuration: duration, result: value))
    } else {
      parsed(DataResponse(outcome, serializationDuration: duration, result: value))
    }
  }
}

// Calls of code that belongs to the caller.
extension SessionCore {
  /// Asks the delegate on the root queue. Neither a cancelled task nor one past its deadline waits for the answer.
  ///
  /// - Parameters:
  ///   - whenForgotten: The answer of a completion that is released without a call.
  ///   - whenCancelled: The answer after a cancellation or the deadline.
  ///   - ask: Calls the delegate with the session that it sees.
  func delegateAnswer<Answer: Sendable>(
    whenForgotten: Answer, whenCancelled: Answer, deadline: MonotonicTime? = nil,
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

/// A monitor that uses no chunks of bodies, so that none are copied for it and wait in its queue.
protocol ChunklessMonitor: EventMonitor {}

/// A monitor that is notified of the end of a request once, and not again for handlers that are added after it.
protocol FirstEndMonitor: EventMonitor {}

/// A monitor that observes the bytes of requests on their connections.
protocol WireMonitor: EventMonitor {
  /// Returns the observer of one attempt of a request.
  ///
  /// - Parameters:
  ///   - request:      The identifier of the request.
  ///   - secretFields: The protected header fields of the request.
  func wireObserver(of request: UUID, secretFields: Set<String>) -> any WireObserver
}

extension Request {
  /// Returns the observer of the bytes of an attempt, for the monitors of the session and of the request; `nil` without
  /// any.
  func wireObserver(_ profile: ConnectionProfile) -> (any WireObserver)? {
    guard session.eventMonitor.observesWire || core.has(.events) else { return nil }
    let monitors = (session.eventMonitor.monitors + ownMonitors).compactMap { $0 as? any WireMonitor }
    let names = profile.options.protectedHeaders
    let observers = monitors.map { $0.wireObserver(of: id, secretFields: names) }
    return observers.count > 1 ? WireObservers(observers) : observers.first
  }
}

/// A monitor that records the bodies of responses.
protocol BodyRecordingMonitor: EventMonitor {
  /// Called instead of the event without a body.
  func request(_ request: Request, didGatherMetrics metrics: URLSessionTaskMetrics, body: Data?)
}
