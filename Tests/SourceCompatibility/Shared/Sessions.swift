import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Sessions: their initializers, properties and requests.

private let url = "http://localhost"

private func making() {
  let queue = DispatchQueue(label: "root")
  let configuration = URLSessionConfiguration.default
  configuration.timeoutIntervalForRequest = 5
  let sessions = [
    Session(),
    Session(configuration: configuration),
    Session(configuration: .af.ephemeral, interceptor: .retryPolicy),
    Session(startRequestsImmediately: false, requestSetup: .eager),
    Session(eventMonitors: [ClosureEventMonitor(), AlamofireNotifications()]),
    Session(redirectHandler: .doNotFollow, cachedResponseHandler: .doNotCache),
    Session(redirectHandler: Redirector(behavior: .follow), cachedResponseHandler: ResponseCacher.cache),
    Session(
      configuration: configuration, delegate: SessionDelegate(), rootQueue: queue,
      startRequestsImmediately: true, requestSetup: .lazy, requestQueue: queue, serializationQueue: queue,
      interceptor: Interceptor(), redirectHandler: Redirector.follow,
      cachedResponseHandler: ResponseCacher.doNotCache, eventMonitors: []),
  ]
  for session in sessions { session.cancelAllRequests() }

  let delegate = SessionDelegate(fileManager: .default)
  let operations = OperationQueue()
  operations.maxConcurrentOperationCount = 1
  operations.underlyingQueue = queue
  let urlSession = URLSession(configuration: configuration, delegate: delegate, delegateQueue: operations)
  _ = Session(session: urlSession, delegate: delegate, rootQueue: queue)
  _ = Session(
    session: urlSession, delegate: delegate, rootQueue: queue, startRequestsImmediately: false,
    requestSetup: .eager, requestQueue: nil, serializationQueue: nil, interceptor: nil,
    redirectHandler: nil, cachedResponseHandler: nil, eventMonitors: [])
}

private func properties(of session: Session) {
  let urlSession: URLSession = session.session
  let delegate: SessionDelegate = session.delegate
  let queues: [DispatchQueue] = [session.rootQueue, session.requestQueue, session.serializationQueue]
  let interceptor: RequestInterceptor? = session.interceptor
  let redirect: RedirectHandler? = session.redirectHandler
  let cache: CachedResponseHandler? = session.cachedResponseHandler
  let monitor: CompositeEventMonitor = session.eventMonitor
  let setup: Session.RequestSetup = session.requestSetup
  switch setup {
  case .lazy, .eager: break
  }
  print(session.startRequestsImmediately, urlSession.configuration, delegate, queues, monitor.monitors)
  print(interceptor as Any, redirect as Any, cache as Any, session.sessionConfiguration)
  session.withAllRequests { requests in
    requests.forEach { $0.cancel() }
  }
  session.cancelAllRequests(completingOnQueue: .global()) {}
  session.cancelAllRequests { print("cancelled") }
}

@available(*, deprecated) private func standardMonitors(of session: Session) {
  let monitors: [EventMonitor] = session.defaultEventMonitors
  print(monitors)
}

/// A subclass of the session with its own properties and initializer.
final class Backend: Session, @unchecked Sendable {
  let base: String

  init(base: String) {
    self.base = base
    let queue = DispatchQueue(label: "backend")
    let delegate = SessionDelegate()
    let operations = OperationQueue()
    operations.underlyingQueue = queue
    super.init(
      session: URLSession(configuration: .af.default, delegate: delegate, delegateQueue: operations),
      delegate: delegate, rootQueue: queue)
  }

  override func request(
    _ convertible: URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: RequestInterceptor? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil
  ) -> DataRequest {
    super.request(
      convertible, method: method, parameters: parameters, encoding: encoding, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier)
  }
}

/// A subclass that inherits the initializers.
private final class Plain: Session, @unchecked Sendable {}

private func subclasses() {
  _ = Backend(base: url).request(url)
  _ = Plain(configuration: .default)
  _ = Plain()
}

private func requests(of session: Session, modifier: Session.RequestModifier?) {
  session.request(url).response { _ in }
  session.request(
    url, method: .get, parameters: ["a": 1], encoding: URLEncoding.default, headers: ["A": "b"],
    interceptor: nil, shouldAutomaticallyResume: true, requestModifier: { $0.timeoutInterval = 5 }
  ).response { _ in }
  session.request(
    url, method: .get, parameters: ["a": "1"], encoder: URLEncodedFormParameterEncoder.default,
    headers: [.accept("b")], interceptor: .retryPolicy, shouldAutomaticallyResume: nil,
    requestModifier: modifier
  ).response { _ in }
  session.request(url, headers: nil) { urlRequest in
    urlRequest.timeoutInterval = 5
    urlRequest.allowsCellularAccess = false
  }
  .response { _ in }
  guard let urlRequest = try? URLRequest(url: url, method: .get) else { return }
  session.request(urlRequest).response { _ in }
  session.request(urlRequest, interceptor: nil, shouldAutomaticallyResume: false).response { _ in }
}

private func backgroundConfiguration() -> URLSessionConfiguration {
  let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync")
  configuration.sessionSendsLaunchEvents = true
  configuration.isDiscretionary = true
  configuration.sharedContainerIdentifier = "group.com.example.app"
  print(configuration.sessionSendsLaunchEvents, configuration.sharedContainerIdentifier as Any)
  return configuration
}
