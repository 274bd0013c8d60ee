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

  let services: Services
  /// The transfers of a background session; `nil` for others.
  let background: BackgroundTransfers?
  let configuration: URLSessionConfiguration
  let interceptor: (any RequestInterceptor)?
  let isIntercepted: Bool
  let serverTrustManager: ServerTrustManager?
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
  /// The session that delegates, monitors and users see.
  let facade: URLSession
  /// The requests, the weak session, and whether it was released, for its users and attempts.
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
    self.interceptor = interceptor
    isIntercepted = interceptor != nil
    self.serverTrustManager = serverTrustManager
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
    services = Services(
      of: configuration, isBackground: background != nil, options: transportOptions,
      trust: TrustService(manager: serverTrustManager, observers: observers), engine: plan.engine)
    observers.delegate.serve(self)
  }

  var settings: SessionSettings { services.settings }
  var cookies: SessionCookies? { services.cookies }
  var cache: SessionCache { services.cache }
  var trust: TrustService? { services.trust }
  var authentication: AuthenticationService { services.authentication }
  package var credentials: CredentialMemory { services.credentials }
  package var sharedTransfers: SharedTransfers { services.sharedTransfers }
  var enqueue: (@Sendable (any LoopWork) -> Void)? { services.enqueue }
  var network: any NetworkSource { services.network }
  var executor: (any TaskExecutor)? { services.executor }
  var byteStreams: (any ByteStreamTransport)? { services.byteStreams }
  package var threadHopCount: UInt64 { services.engine.threadHopCount() }

  func transportSnapshot() async -> TransportSnapshot { await services.engine.snapshot() }

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

  /// The streams of bytes that have not ended.
  var activeStreams: [ByteStreamCore] { registry.withLock { $0.streams.values.compactMap(\.core) } }

  /// The number of running requests; for tests.
  package var activeCount: Int { registry.withLock { $0.active.count - $0.free.count } }

  /// The number of requests that wait for their start; for tests.
  package var dormantCount: Int { registry.withLock { $0.dormant.count } }

  var activeRequests: [Request] { registry.withLock { $0.active.compactMap { $0 } } }

  var restoredRequests: [Request] { registry.withLock { $0.restored } }

  func keepRestored(_ requests: [Request]) { registry.withLock { $0.restored = requests } }

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
    services.engine.shutDown()
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
