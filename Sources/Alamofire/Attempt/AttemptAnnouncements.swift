import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Notifications of the delegate and the monitors. A request without observers makes no notifications.
extension AttemptDriver {
  // MARK: The task

  /// Announces the task of the attempt and waits until the request is resumed. If the body is a stream, the delegate
  /// may provide another one.
  @inline(never)
  nonisolated(nonsending) func announceTask() async throws(AFError) -> AttemptEvent {
    await core.tellTask(of: request)
    await core.untilResumed()
    try checkAlive()
    if core.body != nil { try await askForBodyStream() }
    return .done
  }

  nonisolated(nonsending) func askForBodyStream() async throws(AFError) {
    guard let ours = core.state.withLock({ $0.extras.uploadable }), case .stream = ours,
      let task = core.tasks(of: request).last
    else { return }
    let answer: UploadRequest.Uploadable? = await core.session.delegateAnswer(
      whenForgotten: ours, whenCancelled: nil
    ) { delegate, facade, completion in
      delegate.urlSession(
        facade, task: task,
        needNewBodyStream: { stream in
          completion(stream.map { .stream($0) })
        })
    }
    try checkAlive()
    guard let answer else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .requestBodyStreamExhausted, "The session's delegate gave no stream for the body of the request.",
          url: core.state.withLock { $0.results.request }?.url?.absoluteString ?? ""))
    }
    core.state.withLock { $0.extras.uploadable = answer }
  }

  @inline(never)
  nonisolated(nonsending) func announceTaskEnd() async -> AttemptEvent {
    let error = values.error
    if error != nil { core.makeMissingExchange() }
    let exchange = error == nil ? values.exchange : core.state.withLock { $0.results.exchange }
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
    return .done
  }

  nonisolated(nonsending) func tellDownloaded(to file: URL) async {
    await callDelegate { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: file)
    }
  }

  /// Calls the session's delegate: a delegate of the caller on the root queue, and waits for it; ours at once.
  nonisolated(nonsending) func callDelegate(
    _ body: @escaping @Sendable (SessionDelegate, URLSession, URLSessionTask) -> Void
  ) async {
    guard let task = core.tasks(of: request).last else { return }
    let session = core.session
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
  nonisolated(nonsending) func delegateAnswer<Answer: Sendable>(
    to challenge: URLAuthenticationChallenge, _ task: URLSessionTask, whenForgotten: Answer,
    whenCancelled: Answer,
    _ read: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Answer
  ) async -> Answer {
    await core.session.delegateAnswer(
      whenForgotten: whenForgotten, whenCancelled: whenCancelled, deadline: values.request.deadline
    ) { delegate, facade, completion in
      delegate.urlSession(facade, task: task, didReceive: challenge) { completion(read($0, $1)) }
    }
  }

  // MARK: Monitors alone

  func tellInitial(_ urlRequest: URLRequest) {
    let request = request
    core.tell { $0.request(request, didCreateInitialURLRequest: urlRequest) }
  }

  func tellCreated(_ urlRequest: URLRequest) {
    let request = request
    core.tell { $0.request(request, didCreateURLRequest: urlRequest) }
  }

  func tellCreationFailure(_ error: AFError) {
    let request = request
    core.tell { $0.request(request, didFailToCreateURLRequestWithError: error) }
  }

  func tellAdapted(_ initial: URLRequest, _ adapted: URLRequest) {
    let request = request
    core.tell { $0.request(request, didAdaptInitialRequest: initial, to: adapted) }
  }

  func tellAdaptationFailure(_ initial: URLRequest, _ failure: AFError) {
    let request = request
    core.tell { $0.request(request, didFailToAdaptURLRequest: initial, withError: failure) }
  }

  func tellUploadable(_ result: Result<UploadRequest.Uploadable, AFError>) {
    guard let upload = request as? UploadRequest else { return }
    core.tell { monitor in
      switch result {
      case .success(let uploadable): monitor.request(upload, didCreateUploadable: uploadable)
      case .failure(let error): monitor.request(upload, didFailToCreateUploadableWithError: error)
      }
    }
  }

  func tellValidated(_ urlRequest: URLRequest?, _ exchange: Exchange, _ data: Data?, _ failure: AFError?) {
    guard let response = exchange.httpResponse else { return }
    let result: Request.ValidationResult = failure.map { .failure($0) } ?? .success(())
    if let download = request as? DownloadRequest {
      let url = core.state.withLock { $0.extras.fileURL }
      core.tell {
        $0.request(
          download, didValidateRequest: urlRequest, response: response, fileURL: url, withResult: result)
      }
    } else if let stream = request as? DataStreamRequest {
      core.tell {
        $0.request(stream, didValidateRequest: urlRequest, response: response, withResult: result)
      }
    } else if let request = request as? DataRequest {
      core.tell {
        $0.request(
          request, didValidateRequest: urlRequest, response: response, data: data, withResult: result)
      }
    }
  }

  func tellDestination(_ url: URL) {
    guard let download = request as? DownloadRequest else { return }
    core.tell { $0.request(download, didCreateDestinationURL: url) }
  }

  func tellStored(_ result: Result<URL, AFError>) {
    guard let download = request as? DownloadRequest, let task = core.tasks(of: request).last else { return }
    core.tell { $0.request(download, didFinishDownloadingUsing: task, with: result) }
  }

  /// Tells the monitors that an attempt with a task has ended.
  func tellCompleted(_ error: AFError?) {
    guard core.state.withLock({ $0.observed.tasks.hasBegun }), let task = core.tasks(of: request).last else {
      return
    }
    let request = request
    core.tell { $0.request(request, didCompleteTask: task, with: error) }
  }

  /// Tells the monitors that the request has ended, and then of its responses. The state of the request is final by
  /// then.
  func tellFinished(_ served: ShortList<any ResponseSink>) {
    let request = request
    core.tell { $0.requestDidFinish(request) }
    for sink in served { sink.announce(to: request) }
  }
}
