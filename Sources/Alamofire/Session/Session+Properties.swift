public import Foundation
public import FoundationNetworking
public import HTTPWire

extension Session {
  /// The time at which a `URLRequest` is made.
  public enum RequestSetup: Sendable {
    /// The time at which the request is resumed.
    case lazy
    /// The time at which the request is created. The request is converted and adapted, and its task is made. It is sent
    /// when it is resumed.
    case eager
  }

  /// Changes a request that has its URL, method and header fields, before its parameters are encoded.
  /// Called again for each retry.
  public typealias RequestModifier = @Sendable (inout URLRequest) throws -> Void

  /// The queue on which ``withAllRequests(perform:)`` runs.
  public var rootQueue: DispatchQueue { core.rootQueue }
  /// The queue passed for making requests, or one that targets ``rootQueue``.
  public var requestQueue: DispatchQueue { core.requestQueue }
  /// Whether adding the first response handler resumes a request. Default: `true`.
  public var startRequestsImmediately: Bool { core.startsRequestsImmediately }
  /// The time at which a `URLRequest` is made. Default: ``RequestSetup/lazy``.
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
  /// Decides about redirects of requests without a handler of their own.
  public var redirectHandler: (any RedirectHandler)? { core.redirectHandler }
  /// Decides about storing responses of requests without a handler of their own.
  public var cachedResponseHandler: (any CachedResponseHandler)? { core.cachedResponseHandler }
  /// Calls all monitors of this session.
  public var eventMonitor: CompositeEventMonitor { core.eventMonitor }

  /// The default monitors of a session.
  @available(*, deprecated, message: "Pass AlamofireNotifications() among the eventMonitors.")
  public var defaultEventMonitors: [any EventMonitor] { [AlamofireNotifications.onDemand] }

  /// The queue passed for serialization, or one that targets ``rootQueue``.
  public var serializationQueue: DispatchQueue { core.serializationQueue }

  /// A copy of the configuration with which the session was made; changing it has no effect.
  public var sessionConfiguration: URLSessionConfiguration { core.configuration.duplicated() }
}
