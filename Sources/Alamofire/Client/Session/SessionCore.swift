import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// The implementation of a session for its requests. Requests hold it and never the session, so that the release of
/// the session ends them.
package final class SessionCore: Sendable {
  /// Guarded by the lock of this class.
  private struct State {
    weak var owner: Session?
    /// Whether the delegate was notified of the end.
    var hasToldEnd = false
    /// The requests of earlier processes.
    var restored: [Request] = []
  }

  /// The part that the runs of requests use.
  let runs: RunSession
  /// The transfers of a background session; `nil` for others.
  let background: BackgroundTransfers?
  let configuration: URLSessionConfiguration
  let interceptor: (any RequestInterceptor)?
  let isIntercepted: Bool
  let serverTrustManager: ServerTrustManager?
  let observers: SessionObservers
  let requestSetup: Session.RequestSetup
  let transportOptions: TransportOptions
  let requestQueue: DispatchQueue
  let serializationQueue: DispatchQueue
  /// The session that delegates, monitors and users see.
  let facade: URLSession
  /// The weak session and the restored requests, for its users and attempts.
  private let state = Mutex(State())

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
    self.requestSetup = requestSetup
    transportOptions = plan.transportOptions
    // A serial queue that targets the given one, so that calls run one at a time on any queue. The main queue could be
    // kept, but Dispatch on Linux returns another object for each access to it, so that it cannot be recognized.
    let label = rootQueue.label
    let root = DispatchQueue(label: label, target: rootQueue)
    self.requestQueue = requestQueue ?? DispatchQueue(label: "\(label).requestQueue", target: root)
    self.serializationQueue =
      serializationQueue ?? DispatchQueue(label: "\(label).serializationQueue", target: root)
    let services = Services(
      of: configuration, isBackground: background != nil, options: transportOptions,
      trust: TrustService(manager: serverTrustManager, observers: observers), engine: plan.engine)
    runs = RunSession(
      services, observers: observers, startsRequestsImmediately: startRequestsImmediately,
      makesRequestsAtOnce: transportOptions.makesRequestsAtOnce, rootQueue: root,
      userSerializationQueue: serializationQueue)
    observers.delegate.serve(self)
  }

  var services: Services { runs.services }
  var rootQueue: DispatchQueue { runs.rootQueue }
  var startsRequestsImmediately: Bool { runs.startsRequestsImmediately }
  var userSerializationQueue: DispatchQueue? { runs.userSerializationQueue }
  var settings: SessionSettings { services.settings }
  var cookies: SessionCookies? { services.cookies }
  var cache: SessionCache { services.cache }
  var trust: TrustService? { services.trust }
  package var credentials: CredentialMemory { services.credentials }
  package var sharedTransfers: SharedTransfers { services.sharedTransfers }
  var network: any NetworkSource { services.network }
  var executor: (any TaskExecutor)? { services.executor }
  var byteStreams: (any ByteStreamTransport)? { services.byteStreams }
  package var threadHopCount: UInt64 { services.engine.threadHopCount() }

  func transportSnapshot() async -> TransportSnapshot { await services.engine.snapshot() }

  /// The session itself, as long as it lives.
  var owner: Session? { state.withLock { $0.owner } }

  func adopt(_ session: Session) {
    state.withLock { $0.owner = session }
  }

  /// The number of running requests; for tests.
  package var activeCount: Int { runs.registry.activeCount }

  /// The number of requests that wait for their start; for tests.
  package var unstartedCount: Int { runs.registry.unstartedCount }

  var activeRequests: [Request] { runs.registry.active.compactMap { $0 as? Request } }

  /// The streams of bytes, and the downloads in segments, that have not ended.
  var activeStreams: [any RegisteredStream] { runs.registry.streams }

  var restoredRequests: [Request] { state.withLock { $0.restored } }

  func keepRestored(_ requests: [Request]) { state.withLock { $0.restored = requests } }

  /// Ends all requests with `error`; no request starts afterwards.
  func invalidate(_ error: AFError) {
    let members = runs.registry.end(error)
    // Released outside the lock, because these may be the last references.
    let restored = state.withLock { state in
      defer { state.restored = [] }
      return state.restored
    }
    _ = restored
    for request in members.unstarted + members.active {
      // Its run has not ended yet, and the next session would send it.
      if request.core.isCancelled { request.core.kind.forgetTransfer() }
      request.core.abandon(request, with: error)
    }
    for stream in members.streams { stream.abandon(error) }
    if error.isSessionDeinitializedError { background?.close() } else { background?.removeAll() }
    services.engine.shutDown()
    notifyInvalidOnce()
  }

  /// Notifies the delegate of the end, once.
  func notifyInvalidOnce() {
    let hasTold = state.withLock { state in
      defer { state.hasToldEnd = true }
      return state.hasToldEnd
    }
    if !hasTold { notifyInvalid() }
  }

  /// Ends the session after its running requests; no request starts afterwards.
  func refuseMore() {
    let refused = runs.registry.refuseMore()
    // Some of them have been started since they were registered.
    for request in refused.unstarted { request.core.abandonUnstarted(request, with: refused.reason) }
    for stream in refused.streams { stream.refuse(refused.reason) }
    if refused.isIdle { notifyInvalidOnce() }
  }

  /// The error of a request that cannot be started.
  var reasonOfEnd: AFError { runs.reasonOfEnd }
}

/// The parts of a new request.
struct RequestParts {
  let session: SessionCore
  let core: RequestCore
  let interceptor: (any RequestInterceptor)?
}

extension SessionCore {
  /// Makes the parts of a request.
  ///
  /// - Parameter runsUserCode: Whether the conversion runs the caller's code.
  func parts(
    of convertible: any URLRequestConvertible, runsUserCode: Bool, kind: any RequestKind,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?
  ) -> RequestParts {
    var interests: RequestInterests = []
    if let interceptor { interests.formUnion(RequestInterests(of: interceptor)) }
    if isIntercepted, let shared = self.interceptor { interests.formUnion(RequestInterests(of: shared)) }
    let core = RequestCore(
      session: runs, convertible: convertible, convertsByUserCode: runsUserCode, kind: kind,
      interests: interests, shouldAutomaticallyResume: shouldAutomaticallyResume)
    return RequestParts(session: self, core: core, interceptor: interceptor)
  }
}
