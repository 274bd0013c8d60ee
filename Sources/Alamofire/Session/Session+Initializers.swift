public import Foundation
public import FoundationNetworking
public import HTTPWire

extension Session {
  /// Makes a session.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of header fields, timeouts and connections per host. It is copied; later
  ///     changes have no effect.
  ///   - delegate: The delegate; it is called for events if it is a subclass.
  ///   - rootQueue: The queue of ``withAllRequests(perform:)``, and of a delegate that is a subclass. It may be
  ///     concurrent.
  ///   - startRequestsImmediately: Whether the first response handler resumes a request.
  ///   - requestSetup: Whether requests are made at their creation or when they are resumed.
  ///   - requestQueue: The value of ``requestQueue``; it has no other use, because requests are made on the pool.
  ///   - serializationQueue: The queue on which serializers run; by default they run on the pool.
  ///   - interceptor: Adapts and retries all requests, before their own interceptors.
  ///   - serverTrustManager: The manager whose evaluators decide about servers. Without one the trust store decides.
  ///   - redirectHandler: Decides about redirects of requests without a handler of their own. Without one they are
  ///     followed.
  ///   - cachedResponseHandler: Decides about storing responses of requests without a handler of their own.
  ///   - eventMonitors: The monitors. The default ones post the notifications of ``Request``.
  ///   - transportOptions: Options that `URLSessionConfiguration` does not have.
  public convenience init(
    configuration: URLSessionConfiguration = URLSessionConfiguration.af.default,
    delegate: SessionDelegate = SessionDelegate(),
    rootQueue: DispatchQueue = DispatchQueue(label: "org.alamofire.session.rootQueue"),
    startRequestsImmediately: Bool = true,
    requestSetup: RequestSetup = .lazy,
    requestQueue: DispatchQueue? = nil,
    serializationQueue: DispatchQueue? = nil,
    interceptor: (any RequestInterceptor)? = nil,
    serverTrustManager: ServerTrustManager? = nil,
    redirectHandler: (any RedirectHandler)? = nil,
    cachedResponseHandler: (any CachedResponseHandler)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand],
    transportOptions: TransportOptions = TransportOptions()
  ) {
    let observers = SessionObservers(
      delegate: delegate, redirectHandler: redirectHandler, cachedResponseHandler: cachedResponseHandler,
      eventMonitors: eventMonitors)
    self.init(
      configuration: configuration, engine: .curl(), observers: observers, rootQueue: rootQueue,
      startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
      requestQueue: requestQueue,
      serializationQueue: serializationQueue, interceptor: interceptor,
      serverTrustManager: serverTrustManager, transportOptions: transportOptions)
  }

  /// Makes a session over any engine; tests use a fake one.
  package convenience init(
    configuration: URLSessionConfiguration = URLSessionConfiguration.af.default, engine: Engine,
    observers: SessionObservers = SessionObservers(),
    rootQueue: DispatchQueue = DispatchQueue(label: "org.alamofire.session.rootQueue"),
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    requestQueue: DispatchQueue? = nil,
    serializationQueue: DispatchQueue? = nil, interceptor: (any RequestInterceptor)? = nil,
    serverTrustManager: ServerTrustManager? = nil,
    transportOptions: TransportOptions = TransportOptions()
  ) {
    self.init(
      Blueprint(
        configuration: configuration, engine: engine, observers: observers, rootQueue: rootQueue,
        startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
        requestQueue: requestQueue, serializationQueue: serializationQueue, interceptor: interceptor,
        serverTrustManager: serverTrustManager, transportOptions: transportOptions))
  }
}

extension Session {
  /// All that a session is made from, as its initialisers hand it on. Only they can make one.
  @_documentation(visibility: internal)
  public struct Blueprint: Sendable {
    let configuration: URLSessionConfiguration
    let engine: Engine
    let observers: SessionObservers
    let rootQueue: DispatchQueue
    let startRequestsImmediately: Bool
    let requestSetup: RequestSetup
    let requestQueue: DispatchQueue?
    let serializationQueue: DispatchQueue?
    let interceptor: (any RequestInterceptor)?
    let serverTrustManager: ServerTrustManager?
    let transportOptions: TransportOptions
  }
}
