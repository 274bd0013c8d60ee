import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

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
