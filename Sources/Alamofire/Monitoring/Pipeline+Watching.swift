import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// What the pipeline tells those who watch. Nothing here runs for a request that nobody watches.
extension Pipeline {
  /// Sends the request, its task seen by the delegate and the monitors.
  nonisolated(nonsending) func watchedExchange(_ urlRequest: URLRequest) async throws(AFError) -> Exchange {
    await core.tellTask(of: request)
    do throws(AFError) {
      await core.untilResumed()
      try checkAlive()
      if core.body != nil { try await askForBodyStream() }
      let exchange = try await exchanged(Journey(urlRequest, for: core, isWatched: true))
      await tellEnd(exchange, nil)
      return exchange
    } catch {
      core.endedUnsent()
      await tellEnd(core.state.withLock { $0.exchange }, error)
      throw error
    }
  }

  /// A body that is a stream is asked for once the task is there; the delegate may bring another one.
  nonisolated(nonsending) private func askForBodyStream() async throws(AFError) {
    guard let ours = core.state.withLock({ $0.extras.uploadable }), case .stream = ours,
      let task = core.tasks(of: request).last
    else { return }
    let session = core.session
    let answer = await offLoop { () -> UploadRequest.Uploadable? in
      await SingleCompletion.answer(whenForgotten: ours, whenCancelled: nil) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(
            facade, task: task,
            needNewBodyStream: { stream in
              completion(stream.map { .stream($0) })
            })
        }
      }
    }
    try checkAlive()
    guard let answer else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .requestBodyStreamExhausted, "The session's delegate gave no stream for the body of the request.",
          url: core.state.withLock { $0.request }?.url?.absoluteString ?? ""))
    }
    core.state.withLock { $0.extras.uploadable = answer }
  }

  /// A stream that has been read cannot be sent on, as a redirect or a challenge may want: the delegate may bring
  /// another. Without one the transport ends the request with an error that says so.
  nonisolated(nonsending) func renewBodyStream(of journey: Journey) async throws(AFError) {
    guard case .source(let source) = journey.request.body, !source.isRepeatable,
      case .stream(let spent)? = core.state.withLock({ $0.extras.uploadable })
    else { return }
    try await askForBodyStream()
    guard case .stream(let next)? = core.state.withLock({ $0.extras.uploadable }), next !== spent else {
      return
    }
    journey.request = journey.request.changing {
      $0.body = .source(core.source(of: next, length: source.length))
    }
  }

  nonisolated(nonsending) private func tellEnd(_ exchange: Exchange?, _ error: AFError?) async {
    if let exchange, error == nil { await storeWhatIsOffered(exchange) }
    if let metrics = exchange?.metrics {
      await delegated { delegate, session, task in
        delegate.urlSession(session, task: task, didFinishCollecting: metrics)
      }
    }
    let failure = error?.ofTask
    await delegated { delegate, session, task in
      delegate.urlSession(session, task: task, didCompleteWithError: failure)
    }
  }

  /// Calls the session's delegate: a user's on the root queue, and waits for it; ours here and now.
  nonisolated(nonsending) func delegated(
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

  /// Whether the journey goes on, after whoever wants to decide has decided.
  nonisolated(nonsending) func decided(
    _ journey: Journey, _ response: WireResponse, _ plan: RedirectPlan
  ) async throws(AFError) -> Bool {
    let followed = journey.request.following(plan)
    guard let task = core.tasks(of: request).last,
      let redirect = Exchange(url: URL(string: journey.request.url), head: response.head).httpResponse,
      let proposed = URLRequest(hop: followed, of: core.state.withLock { $0.request })
    else {
      journey.follow(plan)
      return true
    }
    let session = core.session
    let answer = await offLoop { () -> URLRequest? in
      await SingleCompletion.answer(whenForgotten: proposed, whenCancelled: nil) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(
            facade, task: task, willPerformHTTPRedirection: redirect, newRequest: proposed
          ) { completion($0) }
        }
      }
    }
    try checkAlive()
    guard let answer else { return false }
    if answer.isSent(like: proposed) {
      journey.follow(plan)
    } else {
      try journey.follow(plan, changedTo: answer)
    }
    return true
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
    guard core.isMonitored else { return }
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
      case .success(let uploadable):
        monitor.request(upload, didCreateUploadable: uploadable)
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

  nonisolated(nonsending) func tellDownloaded(to file: URL) async {
    await delegated { delegate, session, task in
      guard let task = task as? URLSessionDownloadTask else { return }
      delegate.urlSession(session, downloadTask: task, didFinishDownloadingTo: file)
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

  /// An attempt that had a task is over.
  func tellCompleted(_ error: AFError?) {
    guard core.state.withLock({ $0.attempts.hasBegun }), let task = core.tasks(of: request).last else {
      return
    }
    let request = request
    core.tell { $0.request(request, didCompleteTask: task, with: error) }
  }

  /// The request has ended, and its state says so: monitors hear of that, then of what the handlers will get.
  func tellFinished(_ served: ShortList<any ResponseSink>) {
    let request = request
    core.tell { $0.requestDidFinish(request) }
    for sink in served { sink.announce(to: request) }
  }
}
