import Foundation
import FoundationNetworking
import HTTPSystem
package import HTTPWire

/// The services of a session that its hops use. They name neither the session nor its requests.
final class Services: Sendable {
  let settings: SessionSettings
  /// The cookies of the configuration's storage; `nil` without one.
  let cookies: SessionCookies?
  let cache: SessionCache
  let sharedTransfers = SharedTransfers()
  /// Decides about servers; `nil` for the trust store.
  let trust: TrustService?
  let authentication: AuthenticationService
  /// The credentials that servers have accepted.
  let credentials = CredentialMemory()
  /// Whether requests wait for a network instead of failing, as requests of background sessions always do.
  let waitsForConnectivity: Bool
  let engine: Engine

  /// Makes the services of a session. The configuration shows the cache that the session uses from now on.
  init(
    of configuration: URLSessionConfiguration, isBackground: Bool, options: TransportOptions,
    trust: TrustService?, engine: Engine
  ) {
    self.engine = engine
    self.trust = trust
    settings = SessionSettings(configuration, options: options, trust: trust)
    let (settings, turn) = (settings, engine.turn)
    cookies = configuration.httpCookieStorage.map {
      SessionCookies($0, areSent: settings.sendsCookies, policy: settings.cookiePolicy, turn: turn)
    }
    if let cache = SessionCache.inPlace(of: configuration.urlCache) { configuration.urlCache = cache }
    cache = SessionCache(configuration)
    authentication = AuthenticationService(storage: configuration.urlCredentialStorage)
    waitsForConnectivity = settings.waitsForConnectivity || isBackground
  }

  var transport: any Transport { engine.transport }
  var network: any NetworkSource { engine.network }
  /// Runs tasks on the thread of the engine; `nil` is the pool.
  var executor: (any TaskExecutor)? { engine.executor }
  /// Runs work on the thread of the engine; `nil` if there is none.
  var enqueue: (@Sendable (any LoopWork) -> Void)? { engine.enqueue }
  var byteStreams: (any ByteStreamTransport)? { engine.byteStreams }
}

/// The settings that a session takes from its `URLSessionConfiguration` when it is created. As on Apple's systems,
/// later changes of the configuration have no effect.
final class SessionSettings: Sendable {
  private let commonFields: [HTTPHeader]
  private let additional: HTTPHeaders
  /// The fault of the session's own fields; computed once.
  private let commonViolation: HeaderFieldRules.Violation?
  /// The idle timeout of requests without their own; `nil` means no limit.
  private let idleLimit: Duration?
  /// The longest time of an attempt; `nil` means no limit.
  private let totalLimit: Duration?
  /// Whether requests wait for a network instead of failing.
  let waitsForConnectivity: Bool
  let profile: ConnectionProfile
  /// Whether cookies are sent automatically.
  let sendsCookies: Bool
  let cookiePolicy: CookiePolicy
  /// The user's `URLProtocol` classes; usually empty.
  let protocolClasses: [URLProtocol.Type]

  init(_ configuration: URLSessionConfiguration, options: TransportOptions, trust: TrustService?) {
    // Sorted, because the order of the configuration's dictionary is not stable.
    additional = HTTPHeaders(configuration.headers.sorted().filter { !$0.isFraming })
    commonFields = Self.completed(additional)
    commonViolation = Self.violation(method: "GET", commonFields)
    idleLimit = Self.duration(configuration.timeoutIntervalForRequest)
    totalLimit = Self.duration(configuration.timeoutIntervalForResource)
    waitsForConnectivity = configuration.waitsForConnectivity
    sendsCookies = configuration.httpShouldSetCookies
    cookiePolicy = CookiePolicy(configuration.httpCookieAcceptPolicy)
    protocolClasses = Self.ownProtocols(of: configuration)
    profile = ConnectionProfile(
      options: options, connectionsPerHost: configuration.httpMaximumConnectionsPerHost, evaluator: trust,
      systemProxies: configuration.connectionProxyDictionary.map { ProxyTable(dictionary: $0) })
  }

  /// Foundation's own classes are ignored, because the engine serves their URLs.
  private static let stockProtocols = Set(
    (URLSessionConfiguration.default.protocolClasses ?? []).map { ObjectIdentifier($0) })

  private static func ownProtocols(of configuration: URLSessionConfiguration) -> [URLProtocol.Type] {
    (configuration.protocolClasses ?? []).compactMap { candidate in
      stockProtocols.contains(ObjectIdentifier(candidate)) ? nil : candidate as? URLProtocol.Type
    }
  }

  /// Returns the fault of a method and its fields, if there is one.
  func violation(method: String, own: [String: String]?, all: [HTTPHeader]) -> HeaderFieldRules.Violation? {
    // Fields of the options are not among the common ones, which were checked before.
    guard method == "GET", own?.isEmpty ?? true, all.count == commonFields.count else {
      return Self.violation(method: method, all)
    }
    return commonViolation
  }

  private static func violation(method: String, _ fields: [HTTPHeader]) -> HeaderFieldRules.Violation? {
    do {
      try HeaderFieldRules.validate(method: method, fields: fields)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the session's fields, overridden and followed by a request's, by name.
  func fields(adding own: [String: String]?) -> [HTTPHeader] {
    guard let own, !own.isEmpty else { return commonFields }
    return Self.withoutFraming(Self.completed(headers(named: own)))
  }

  /// Returns the fields of a request, followed by the fields that its options add. `Host` is not repeated, because a
  /// server and a proxy could disagree about the one that counts (RFC 9112 §3.2).
  func fields(adding own: [String: String]?, repeated: [HTTPHeader]) -> [HTTPHeader] {
    let fields = fields(adding: own)
    guard !repeated.isEmpty else { return fields }
    return fields + Self.withoutFraming(repeated).filter { !FieldName.equal($0.name, "Host") }
  }

  /// Returns the session's fields and the request's own, without the fields that the bridge adds.
  func fields(named own: [String: String]?) -> [HTTPHeader] { headers(named: own ?? [:]).all }

  private func headers(named own: [String: String]) -> HTTPHeaders {
    var headers = additional
    for (name, value) in own.count > 1 ? own.sorted(by: { $0.key < $1.key }) : Array(own) {
      headers.update(name: name, value: value)
    }
    return headers
  }

  /// Returns the fields of a request that a handler created, without the framing fields, which could contradict the
  /// body.
  static func withoutFraming(_ fields: [HTTPHeader]) -> [HTTPHeader] {
    fields.contains { $0.isFraming } ? fields.filter { !$0.isFraming } : fields
  }

  private static func completed(_ headers: HTTPHeaders) -> [HTTPHeader] {
    headers["Accept"] == nil ? headers.all + [.accept("*/*")] : headers.all
  }

  /// Returns the idle timeout of a request. The limit of the profile takes precedence, then the request's own, unless
  /// it is the default of 60 seconds, then the session's.
  func idleTimeout(of request: URLRequest, _ profile: ConnectionProfile) -> Duration? {
    if let limit = profile.options.timeLimits.idle { return limit }
    let timeout = request.timeoutInterval
    return timeout == 60 ? idleLimit : Self.duration(timeout)
  }

  /// Returns the idle timeout of connections that have no `URLRequest`.
  func idleTimeout(_ profile: ConnectionProfile) -> Duration? {
    profile.options.timeLimits.idle ?? idleLimit
  }

  func deadline(_ profile: ConnectionProfile) -> MonotonicTime? {
    (profile.options.timeLimits.total ?? totalLimit).map { MonotonicTime.now + $0 }
  }

  /// Returns the duration of a limit; `nil` for zero, negative and endless intervals, which mean no limit.
  private static func duration(_ seconds: TimeInterval) -> Duration? {
    guard seconds > 0, seconds < 1e9 else { return nil }
    return .milliseconds(Int64((seconds * 1000).rounded(.up)))
  }
}

extension HTTPHeader {
  /// Whether the field delimits the body, so that only the transport sets it. With a wrong length, the server would
  /// wait, or interpret the rest of the body as another request (RFC 9112 §6, §11.2).
  fileprivate var isFraming: Bool {
    FieldName.equal(name, "Content-Length") || FieldName.equal(name, "Transfer-Encoding")
  }
}

extension ProxyTable {
  /// Reads a `connectionProxyDictionary` with the keys of Apple's systems: `HTTPEnable`, `HTTPProxy`, `HTTPPort`, the
  /// corresponding keys of `HTTPS` and `SOCKS`, `ExceptionsList`, `ExcludeSimpleHostnames`, `kCFProxyUsernameKey` and
  /// `kCFProxyPasswordKey`. A proxy for HTTP or HTTPS takes precedence over SOCKS; an empty dictionary means no
  /// proxy. The scripts of `ProxyAutoConfigEnable` and `ProxyAutoDiscoveryEnable` are not evaluated: if one is enabled,
  /// a scheme without a proxy in the dictionary is unreadable, because its requests would bypass the proxy.
  package init(dictionary: [AnyHashable: Any]) {
    func number(_ key: String) -> Int? {
      (dictionary[key] as? NSNumber)?.intValue ?? (dictionary[key] as? Int)
        ?? (dictionary[key] as? String).flatMap { Int($0) }
    }
    func isOn(_ key: String) -> Bool { (dictionary[key] as? Bool) ?? (number(key) ?? 0 != 0) }
    let user = dictionary["kCFProxyUsernameKey"] as? String
    let password = dictionary["kCFProxyPasswordKey"] as? String
    func choice(_ prefix: String, _ kind: ProxyServer.Kind, port: Int) -> Choice? {
      guard isOn("\(prefix)Enable") else { return nil }
      guard let host = dictionary["\(prefix)Proxy"] as? String, !host.isEmpty else {
        return .unreadable("connectionProxyDictionary")
      }
      return .server(
        ProxyServer(
          kind, host: host, port: number("\(prefix)Port") ?? port, username: user, password: password))
    }
    let hasScript = isOn("ProxyAutoConfigEnable") || isOn("ProxyAutoDiscoveryEnable")
    let rest =
      choice("SOCKS", .socks5h, port: 1080)
      ?? (hasScript ? .unreadable("connectionProxyDictionary") : .direct)
    func entry(_ choice: Choice?) -> ProxyEntry {
      ProxyEntry(
        choice ?? rest, bypass: dictionary["ExceptionsList"] as? [String] ?? [],
        excludesSimpleNames: isOn("ExcludeSimpleHostnames"))
    }
    // The connection to the proxy for https is plain HTTP; TLS is tunnelled.
    self.init(
      http: entry(choice("HTTP", .http, port: 80)), https: entry(choice("HTTPS", .http, port: 443)))
  }
}
