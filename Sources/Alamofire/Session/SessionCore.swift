import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The implementation of a session for its requests. Requests hold it and never the session, so that the release of
/// the session ends them.
package final class SessionCore: Sendable {
  /// Guarded by the lock of this class.
  private struct Registry {
    weak var owner: Session?
    /// Running requests. Each knows its index, so that nothing is hashed.
    var active: [Request?] = []
    var free: [Int] = []
    /// Weak references to requests that wait for their start.
    var dormant = DormantRequests()
    /// Weak references to streams of bytes that have not ended.
    var streams: [ObjectIdentifier: WeakStream] = [:]
    /// The error for new requests after the end of the session; `nil` before.
    var reasonOfEnd: AFError?
    /// Whether the delegate was notified of the end.
    var hasToldEnd = false
    /// The requests of earlier processes.
    var restored: [Request] = []
  }

  let settings: SessionSettings
  /// The cookies of the configuration's storage; `nil` without one.
  let cookies: SessionCookies?
  let cache: SessionCache
  /// The transfers of a background session; `nil` for others.
  let background: BackgroundTransfers?
  package let sharedTransfers = SharedTransfers()
  let configuration: URLSessionConfiguration
  let interceptor: (any RequestInterceptor)?
  let isIntercepted: Bool
  let serverTrustManager: ServerTrustManager?
  /// Decides about servers; `nil` for the trust store.
  let trust: TrustService?
  let observers: SessionObservers
  let startsRequestsImmediately: Bool
  let requestSetup: Session.RequestSetup
  /// The serialization queue of the user; without one, serialization runs on the pool.
  let userSerializationQueue: DispatchQueue?
  let transportOptions: TransportOptions
  /// Stored, because each request reads it.
  let makesRequestsAtOnce: Bool
  let rootQueue: DispatchQueue
  let requestQueue: DispatchQueue
  let serializationQueue: DispatchQueue
  let authentication: AuthenticationService
  /// The credentials that servers have accepted.
  package let credentials = CredentialMemory()
  private let engine: Engine
  /// The session that delegates, monitors and users see.
  let facade: URLSession
  private let registry = Mutex(Registry())

  init(
    _ plan: SessionPlan, facade: URLSession, observers: SessionObservers, rootQueue: DispatchQueue,
    startRequestsImmediately: Bool, requestSetup: Session.RequestSetup, requestQueue: DispatchQueue?,
    serializationQueue: DispatchQueue?, interceptor: (any RequestInterceptor)?,
    serverTrustManager: ServerTrustManager?
  ) {
    self.facade = facade
    // A copy, because users may change theirs.
    configuration = plan.configuration.duplicated()
    background = (configuration as? BackgroundConfiguration)?.makeTransfers()
    engine = plan.engine
    self.interceptor = interceptor
    isIntercepted = interceptor != nil
    self.serverTrustManager = serverTrustManager
    trust = TrustService(manager: serverTrustManager, observers: observers)
    self.observers = observers
    startsRequestsImmediately = startRequestsImmediately
    self.requestSetup = requestSetup
    transportOptions = plan.transportOptions
    makesRequestsAtOnce = transportOptions.makesRequestsAtOnce
    // A serial queue that targets the given one, so that calls run one at a time on any queue.
    let label = rootQueue.label
    let root = DispatchQueue(label: label, target: rootQueue)
    self.rootQueue = root
    self.requestQueue = requestQueue ?? DispatchQueue(label: "\(label).requestQueue", target: root)
    userSerializationQueue = serializationQueue
    self.serializationQueue =
      serializationQueue ?? DispatchQueue(label: "\(label).serializationQueue", target: root)
    settings = SessionSettings(configuration, options: transportOptions, trust: trust)
    let (settings, turn) = (settings, engine.turn)
    cookies = configuration.httpCookieStorage.map {
      SessionCookies($0, areSent: settings.sendsCookies, policy: settings.cookiePolicy, turn: turn)
    }
    // The configuration of the session shows the cache that it uses.
    if let cache = SessionCache.inPlace(of: configuration.urlCache) { configuration.urlCache = cache }
    cache = SessionCache(configuration)
    authentication = AuthenticationService(storage: configuration.urlCredentialStorage)
    observers.delegate.serve(self)
  }

  var transport: any Transport { engine.transport }
  var enqueue: (@Sendable (any LoopWork) -> Void)? { engine.enqueue }
  var network: any NetworkSource { engine.network }
  var executor: (any TaskExecutor)? { engine.executor }
  package var threadHopCount: UInt64 { engine.threadHopCount() }

  func transportSnapshot() async -> TransportSnapshot { await engine.snapshot() }

  /// The session itself, as long as it lives.
  var owner: Session? { registry.withLock { $0.owner } }

  func adopt(_ session: Session) {
    registry.withLock { $0.owner = session }
  }

  /// Adds a request that begins to run. Returns its index, or `nil` if the session has ended.
  func register(_ request: Request) -> Int? {
    registry.withLock { registry in
      guard registry.reasonOfEnd == nil else { return nil }
      if let index = registry.free.popLast() {
        registry.active[index] = request
        return index
      }
      registry.active.append(request)
      return registry.active.count - 1
    }
  }

  /// Removes the request at `index`, whose handlers have been served.
  func unregister(at index: Int) {
    let (last, isEnd) = registry.withLock { registry in
      let request = registry.active[index]
      registry.active[index] = nil
      registry.free.append(index)
      return (request, registry.reasonOfEnd != nil && registry.free.count == registry.active.count)
    }
    if isEnd { tellInvalidOnce() }
    // Released outside the lock: this may be the last reference.
    _ = last
  }

  /// Adds a request that has handlers or was suspended, and was not started: the end of the session ends it. Returns
  /// the reason if the session has ended.
  func registerDormant(_ request: Request) -> AFError? {
    let (reason, seen) = registry.withLock { registry in
      (registry.reasonOfEnd, registry.reasonOfEnd == nil ? registry.dormant.add(request) : [])
    }
    _ = seen
    return reason
  }

  /// Registers a stream of bytes. Returns the error if the session has ended.
  func register(_ stream: ByteStreamCore) -> AFError? {
    registry.withLock { registry in
      guard registry.reasonOfEnd == nil else { return registry.reasonOfEnd }
      registry.streams[ObjectIdentifier(stream)] = WeakStream(core: stream)
      return nil
    }
  }

  func unregister(_ stream: ByteStreamCore) {
    registry.withLock { _ = $0.streams.removeValue(forKey: ObjectIdentifier(stream)) }
  }

  var byteStreams: (any ByteStreamTransport)? { engine.byteStreams }

  /// The streams of bytes that have not ended.
  var activeStreams: [ByteStreamCore] { registry.withLock { $0.streams.values.compactMap(\.core) } }

  /// The number of running requests; for tests.
  package var activeCount: Int { registry.withLock { $0.active.count - $0.free.count } }

  /// The number of requests that wait for their start; for tests.
  package var dormantCount: Int { registry.withLock { $0.dormant.count } }

  var activeRequests: [Request] { registry.withLock { $0.active.compactMap { $0 } } }

  var restoredRequests: [Request] { registry.withLock { $0.restored } }

  func keepRestored(_ requests: [Request]) { registry.withLock { $0.restored = requests } }

  /// Whether requests wait for a network instead of failing, as those of background sessions always do.
  var waitsForConnectivity: Bool { settings.waitsForConnectivity || background != nil }

  /// Ends all requests with `error`; no request starts afterwards.
  func invalidate(_ error: AFError) {
    let (requests, dormant, restored) = registry.withLock { registry in
      registry.reasonOfEnd = registry.reasonOfEnd ?? error
      let restored = registry.restored
      registry.restored = []
      return (registry.active.compactMap { $0 }, registry.dormant.removeAll(), restored)
    }
    // Released outside the lock, because these may be the last references.
    _ = restored
    for request in dormant + requests { request.core.abandon(request, with: error) }
    for stream in activeStreams { stream.abandon(error) }
    if error.isSessionDeinitializedError { background?.close() } else { background?.removeAll() }
    engine.shutDown()
    tellInvalidOnce()
  }

  private func tellInvalidOnce() {
    let hasTold = registry.withLock { registry in
      defer { registry.hasToldEnd = true }
      return registry.hasToldEnd
    }
    if !hasTold { tellInvalid() }
  }

  /// Ends the session after its running requests; no request starts afterwards.
  func refuseMore() {
    let (dormant, reason, isIdle) = registry.withLock { registry in
      let reason = registry.reasonOfEnd ?? .sessionInvalidated(error: nil)
      registry.reasonOfEnd = reason
      return (registry.dormant.removeAll(), reason, registry.free.count == registry.active.count)
    }
    for request in dormant { request.core.abandon(request, with: reason) }
    if isIdle { tellInvalidOnce() }
  }

  /// The error of a request that cannot be started.
  var reasonOfEnd: AFError { registry.withLock { $0.reasonOfEnd } ?? .sessionDeinitialized }
}

/// The requests of a session that wait for their start. The references are weak, so that a user can release a request.
struct DormantRequests {
  private struct Entry {
    weak var request: Request?
  }

  private var entries: [ObjectIdentifier: Entry] = [:]
  /// Entries of released requests are removed when there are more entries than this.
  private var bound = 64

  /// The number of entries, those of released requests included.
  var count: Int { entries.count }

  /// Adds a request; a second call has no effect.
  ///
  /// - Returns: Requests that this call has retained. The caller releases them outside of its lock, because a
  ///   reference can be the last one.
  mutating func add(_ request: Request) -> [Request] {
    entries[ObjectIdentifier(request)] = Entry(request: request)
    guard entries.count > bound else { return [] }
    let present = entries.values.compactMap(\.request)
    entries = Dictionary(
      present.map { (ObjectIdentifier($0), Entry(request: $0)) }, uniquingKeysWith: { first, _ in first })
    bound = max(64, entries.count * 2)
    return present
  }

  /// Removes and returns the requests that still exist. Some of them may have been started.
  mutating func removeAll() -> [Request] {
    defer { entries = [:] }
    return entries.values.compactMap(\.request)
  }
}

/// The settings that a session takes from its `URLSessionConfiguration` when it is made. As on Apple's systems, later
/// changes of the configuration have no effect.
final class SessionSettings: Sendable {
  private let commonFields: [HTTPHeader]
  private let additional: HTTPHeaders
  /// The fault of the session's own fields; computed once.
  private let commonViolation: HeaderFieldRules.Violation?
  private let timeoutForRequest: TimeInterval
  private let timeoutForResource: TimeInterval
  /// Whether requests wait for a network instead of failing.
  let waitsForConnectivity: Bool
  let profile: ConnectionProfile
  /// Whether cookies are sent automatically.
  let sendsCookies: Bool
  let cookiePolicy: CookiePolicy
  /// The user's `URLProtocol` classes; mostly empty.
  let protocolClasses: [URLProtocol.Type]

  init(_ configuration: URLSessionConfiguration, options: TransportOptions, trust: TrustService?) {
    // Sorted, because the order of the configuration's dictionary is not stable.
    additional = HTTPHeaders(configuration.headers.sorted().filter { !$0.isFraming })
    commonFields = Self.completed(additional)
    commonViolation = Self.violation(method: "GET", commonFields)
    timeoutForRequest = configuration.timeoutIntervalForRequest
    timeoutForResource = configuration.timeoutIntervalForResource
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

  /// Returns the session's fields, overridden and followed by those of a request, by name.
  func fields(adding own: [String: String]?) -> [HTTPHeader] {
    guard let own, !own.isEmpty else { return commonFields }
    return Self.withoutFraming(Self.completed(headers(named: own)))
  }

  /// Returns the fields of a request, followed by those that its options add. `Host` is not repeated, because a server
  /// and a proxy could disagree about the one that counts (RFC 9112 §3.2).
  func fields(adding own: [String: String]?, repeated: [HTTPHeader]) -> [HTTPHeader] {
    let fields = fields(adding: own)
    guard !repeated.isEmpty else { return fields }
    return fields + Self.withoutFraming(repeated).filter { !FieldName.equal($0.name, "Host") }
  }

  /// Returns the session's fields and the request's own, without those that the bridge adds.
  func fields(named own: [String: String]?) -> [HTTPHeader] { headers(named: own ?? [:]).all }

  private func headers(named own: [String: String]) -> HTTPHeaders {
    var headers = additional
    for (name, value) in own.count > 1 ? own.sorted(by: { $0.key < $1.key }) : Array(own) {
      headers.update(name: name, value: value)
    }
    return headers
  }

  /// Returns the fields of a request that a handler made, without the framing fields, which could contradict the
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
    return Self.duration(request.timeoutInterval == 60 ? timeoutForRequest : request.timeoutInterval)
  }

  /// Returns the idle timeout of connections that have no `URLRequest`.
  func idleTimeout(_ profile: ConnectionProfile) -> Duration? {
    profile.options.timeLimits.idle ?? Self.duration(timeoutForRequest)
  }

  func deadline(_ profile: ConnectionProfile) -> ContinuousClock.Instant? {
    (profile.options.timeLimits.total ?? Self.duration(timeoutForResource)).map { ContinuousClock.now + $0 }
  }

  /// Returns the duration of a limit; `nil` for zero, negative and endless intervals, which are no limit.
  private static func duration(_ seconds: TimeInterval) -> Duration? {
    guard seconds > 0, seconds < 1e9 else { return nil }
    return .milliseconds(Int64((seconds * 1000).rounded(.up)))
  }
}

extension HTTPHeader {
  /// Whether the field delimits the body, so that only the transport sets it. With a wrong length, the server would
  /// wait, or take the rest of the body for another request (RFC 9112 §6, §11.2).
  fileprivate var isFraming: Bool {
    FieldName.equal(name, "Content-Length") || FieldName.equal(name, "Transfer-Encoding")
  }
}
