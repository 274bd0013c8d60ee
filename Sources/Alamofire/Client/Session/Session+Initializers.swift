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
  ///   - requestSetup: Whether each `URLRequest` is created together with its request, or when that is resumed.
  ///   - requestQueue: The value of ``requestQueue``; it has no other use, because requests are created on the pool.
  ///   - serializationQueue: The queue on which serializers run; by default they run on the pool.
  ///   - interceptor: Adapts and retries all requests, before their own interceptors.
  ///   - serverTrustManager: The manager whose evaluators decide about servers. Without one the trust store decides.
  ///   - redirectHandler: Decides about redirects of requests without their own handler. Without one, redirects are
  ///     followed.
  ///   - cachedResponseHandler: Decides about storing responses of requests without their own handler.
  ///   - eventMonitors: The monitors. The default ones post the notifications of ``Request``.
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
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand]
  ) {
    self.init(
      configuration: configuration, delegate: delegate, rootQueue: rootQueue,
      startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
      requestQueue: requestQueue, serializationQueue: serializationQueue, interceptor: interceptor,
      serverTrustManager: serverTrustManager, redirectHandler: redirectHandler,
      cachedResponseHandler: cachedResponseHandler, eventMonitors: eventMonitors,
      transportOptions: TransportOptions())
  }

  /// Makes a session with options that `URLSessionConfiguration` does not have. The other parameters are the same as in
  /// the initialiser without `transportOptions`.
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
    transportOptions: TransportOptions
  ) {
    let session = Session.urlSession(
      configuration: configuration, delegate: delegate, transportOptions: transportOptions)
    self.init(
      session: session, delegate: delegate, rootQueue: rootQueue,
      startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
      requestQueue: requestQueue, serializationQueue: serializationQueue, interceptor: interceptor,
      serverTrustManager: serverTrustManager, redirectHandler: redirectHandler,
      cachedResponseHandler: cachedResponseHandler, eventMonitors: eventMonitors)
  }

  /// Makes a session as the initialiser without `transportOptions` does, with options that `URLSessionConfiguration`
  /// does not have.
  public convenience init(
    session: URLSession, delegate: SessionDelegate, rootQueue: DispatchQueue,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    requestQueue: DispatchQueue? = nil, serializationQueue: DispatchQueue? = nil,
    interceptor: (any RequestInterceptor)? = nil, serverTrustManager: ServerTrustManager? = nil,
    redirectHandler: (any RedirectHandler)? = nil,
    cachedResponseHandler: (any CachedResponseHandler)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand],
    transportOptions: TransportOptions
  ) {
    let plan = SessionPlan(
      configuration: session.configuration, transportOptions: transportOptions, shown: session)
    self.init(
      session: SessionFacade(plan, delegate: nil), delegate: delegate, rootQueue: rootQueue,
      startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
      requestQueue: requestQueue, serializationQueue: serializationQueue, interceptor: interceptor,
      serverTrustManager: serverTrustManager, redirectHandler: redirectHandler,
      cachedResponseHandler: cachedResponseHandler, eventMonitors: eventMonitors)
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
    let plan = SessionPlan(
      configuration: configuration, transportOptions: transportOptions, engine: engine, observers: observers)
    self.init(
      session: SessionFacade(plan, delegate: observers.delegate), delegate: observers.delegate,
      rootQueue: rootQueue, startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
      requestQueue: requestQueue, serializationQueue: serializationQueue, interceptor: interceptor,
      serverTrustManager: serverTrustManager)
  }

  /// Makes the session that the initialisers with a configuration pass to the designated one. A subclass whose
  /// initialiser calls that one needs it for its own options.
  ///
  /// ```swift
  /// final class Backend: Session, @unchecked Sendable {
  ///   init(options: TransportOptions) {
  ///     let delegate = SessionDelegate()
  ///     super.init(
  ///       session: Session.urlSession(delegate: delegate, transportOptions: options), delegate: delegate,
  ///       rootQueue: DispatchQueue(label: "backend"))
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - configuration: The configuration. The initialiser copies it.
  ///   - delegate: The delegate that is passed to the initialiser too.
  ///   - transportOptions: Options that `URLSessionConfiguration` does not have. Default: the default ones.
  /// - Returns: A session for one call of the initialiser. A second one uses only its configuration.
  public static func urlSession(
    configuration: URLSessionConfiguration = URLSessionConfiguration.af.default, delegate: SessionDelegate,
    transportOptions: TransportOptions = TransportOptions()
  ) -> URLSession {
    let plan = SessionPlan(configuration: configuration, transportOptions: transportOptions)
    return SessionFacade(plan, delegate: delegate)
  }
}

extension Session {
  /// The time at which a `URLRequest` is created.
  public enum RequestSetup: Sendable {
    /// The time at which the request is resumed.
    case lazy
    /// The time at which the request is created. The request is converted and adapted, and its task is created. It is
    /// sent when it is resumed.
    case eager
  }

  /// Changes a request that has its URL, method and header fields, before its parameters are encoded.
  /// Called again for each retry.
  public typealias RequestModifier = @Sendable (inout URLRequest) throws -> Void

  /// The queue on which ``withAllRequests(perform:)`` runs: a serial queue that targets the one that was passed.
  public var rootQueue: DispatchQueue { core.rootQueue }
  /// The queue passed for making requests, or one that targets ``rootQueue``.
  public var requestQueue: DispatchQueue { core.requestQueue }
  /// Whether adding the first response handler resumes a request. Default: `true`.
  public var startRequestsImmediately: Bool { core.startsRequestsImmediately }
  /// The time at which a `URLRequest` is created. Default: ``RequestSetup/lazy``.
  public var requestSetup: RequestSetup { core.requestSetup }
  /// Adapts and retries all requests of the session, before their own interceptors.
  public var interceptor: (any RequestInterceptor)? { core.interceptor }
  /// The manager whose evaluators decide about servers; `nil` for the trust store.
  public var serverTrustManager: ServerTrustManager? { core.serverTrustManager }
  /// The transport options of all requests without their own.
  public var transportOptions: TransportOptions { core.transportOptions }

  /// The session that delegates and monitors see: a facade of Foundation's class for the engine. Its
  /// `invalidateAndCancel()` ends this session at once, `finishTasksAndInvalidate()` after its running requests. A
  /// session that was passed to the initialiser is returned instead.
  public var session: URLSession { core.facade }
  /// The delegate of the session.
  public var delegate: SessionDelegate { core.delegate }
  /// Decides about redirects of requests without their own handler.
  public var redirectHandler: (any RedirectHandler)? { core.redirectHandler }
  /// Decides about storing responses of requests without their own handler.
  public var cachedResponseHandler: (any CachedResponseHandler)? { core.cachedResponseHandler }
  /// Calls all monitors of this session.
  public var eventMonitor: CompositeEventMonitor { core.eventMonitor }

  /// The default monitors of a session.
  @available(*, deprecated, message: "Pass AlamofireNotifications() among the eventMonitors.")
  public var defaultEventMonitors: [any EventMonitor] { [AlamofireNotifications.onDemand] }

  /// The queue passed for serialization, or one that targets ``rootQueue``.
  public var serializationQueue: DispatchQueue { core.serializationQueue }

  /// A copy of the configuration with which the session was created; changing it has no effect.
  public var sessionConfiguration: URLSessionConfiguration { core.configuration.duplicated() }
}
