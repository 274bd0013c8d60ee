import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// The properties and methods of all requests.

private let url = "http://localhost"

private func lifecycle(of request: Request) {
  request.resume().suspend().resume().cancel()
  switch request.state {
  case .initialized: break
  case .resumed: break
  case .suspended: break
  case .cancelled: break
  case .finished: break
  }
  let states = [
    request.isInitialized, request.isResumed, request.isSuspended, request.isCancelled, request.isFinished,
  ]
  let id: UUID = request.id
  let queues: [DispatchQueue] = [request.underlyingQueue, request.serializationQueue]
  let monitor: EventMonitor? = request.eventMonitor
  let interceptor: RequestInterceptor? = request.interceptor
  let automatic: Bool? = request.shouldAutomaticallyResume
  print(
    states, id, queues, monitor as Any, interceptor as Any, automatic as Any, request, request.description)
  print(Set([request]).contains(request), request == request)
}

private func contents(of request: Request) {
  let requests: [URLRequest] = request.requests + request.performedRequests
  let ends: [URLRequest?] = [request.firstRequest, request.lastRequest, request.request]
  let tasks: [URLSessionTask] = request.tasks
  let endTasks: [URLSessionTask?] = [request.firstTask, request.lastTask, request.task]
  let response: HTTPURLResponse? = request.response
  let allMetrics: [URLSessionTaskMetrics] = request.allMetrics
  let metrics: [URLSessionTaskMetrics?] = [request.firstMetrics, request.lastMetrics, request.metrics]
  let error: AFError? = request.error
  let retries: Int = request.retryCount
  print(requests, ends, tasks, endTasks, response as Any, allMetrics, metrics, error as Any, retries)
}

private func metrics(_ metrics: URLSessionTaskMetrics) {
  let duration: TimeInterval = metrics.taskInterval.duration
  let transactions: [URLSessionTaskTransactionMetrics] = metrics.transactionMetrics
  for transaction in transactions where transaction.resourceFetchType == .networkLoad {
    print(transaction.request, transaction.response as Any, transaction.fetchStartDate as Any)
    print(transaction.networkProtocolName as Any, transaction.isReusedConnection, duration)
  }
  print(metrics.redirectCount)
}

private func progress(of request: Request) {
  let progresses: [Progress] = [request.uploadProgress, request.downloadProgress]
  print(progresses.map(\.fractionCompleted))
  let upload: (handler: Request.ProgressHandler, queue: DispatchQueue)? = request.uploadProgressHandler
  let download: (handler: Request.ProgressHandler, queue: DispatchQueue)? = request.downloadProgressHandler
  print(upload == nil, download == nil)
  request
    .uploadProgress { print($0.fractionCompleted) }
    .uploadProgress(queue: .global()) { progress in print(progress) }
    .downloadProgress { progress in print(progress.completedUnitCount) }
    .downloadProgress(queue: .global(), closure: { print($0) })
}

private func settings(of request: DataRequest) {
  request
    .redirect(using: .doNotFollow)
    .cacheResponse(using: .cache)
    .authenticate(username: "user", password: "password")
    .authenticate(username: "user", password: "password", persistence: .permanent)
    .authenticate(with: URLCredential(user: "user", password: "password", persistence: .none))
    .interceptor(.retryPolicy)
    .adapt(using: Adapter { request, _, completion in completion(.success(request)) })
    .retry(using: Retrier { _, _, _, completion in completion(.doNotRetry) })
    .adapt(using: .adapter { request, _, completion in completion(.success(request)) })
    .retry(using: .retryPolicy)
    .eventMonitor(ClosureEventMonitor())
    .response { _ in }
  let redirect: RedirectHandler? = request.redirectHandler
  let cache: CachedResponseHandler? = request.cachedResponseHandler
  let credential: URLCredential? = request.credential
  print(redirect as Any, cache as Any, credential as Any)
}

private func inspection(of request: Request) {
  let text: String = request.cURLDescription()
  print(text)
  request
    .cURLDescription { print($0) }
    .cURLDescription(calling: { description in print(description) })
    .cURLDescription(on: .main) { print($0) }
    .onURLRequestCreation { print($0) }
    .onURLRequestCreation(on: .global(), perform: { urlRequest in print(urlRequest) })
    .onURLSessionTaskCreation { task in print(task.taskIdentifier) }
    .onURLSessionTaskCreation(on: .global()) { print($0) }
}

private func disposition(_ flag: Bool) -> Request.ResponseDisposition {
  flag ? .allow : .cancel
}

private func heads(of request: DataRequest) {
  request
    .onHTTPResponse { response, completionHandler in
      completionHandler(response.statusCode == 200 ? .allow : .cancel)
    }
    .onHTTPResponse(on: .global()) { _, completion in completion(disposition(true)) }
    .onHTTPResponse { response in print(response.statusCode) }
    .onHTTPResponse(on: .global(), perform: { response in print(response.headers) })
    .response { _ in }
}
