public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// The base class of all requests. A ``Session`` makes them.
///
/// Every method may be called from any thread and any number of times. A request can be resumed, suspended and
/// cancelled until it is finished. A handler that is added later gets the same outcome, without another transfer. Only
/// if its serializer fails and a retrier asks for that, the request is sent again. Two values are equal if they are the
/// same request.
public class Request: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  /// The state of a request.
  public enum State: Sendable {
    /// Neither resumed nor ended.
    case initialized
    /// Running.
    case resumed
    /// Suspended: the request neither sends nor reads until it is resumed.
    case suspended
    /// Ended by ``Request/cancel()``. This state is final.
    case cancelled
    /// Ended: all responses are serialized, and their handlers have been called or are about to be.
    case finished
  }

  /// The result of a validator.
  public typealias ValidationResult = Result<Void, any (Error & Sendable)>

  /// Called with the progress of a body.
  public typealias ProgressHandler = @Sendable (_ progress: Progress) -> Void

  package let core: RequestCore
  let session: SessionCore
  /// The interceptor that the request was created with.
  let firstInterceptor: (any RequestInterceptor)?
  /// The monitors, interceptors and handlers that were added, for the threads of users and the run. It is never held
  /// together with the lock of the core.
  let additions = Mutex(Rare<RequestAdditions>())

  init(_ parts: RequestParts) {
    core = parts.core
    session = parts.session
    firstInterceptor = parts.interceptor
  }

  /// The interceptors of the kind of request, which follow the caller's.
  var lastInterceptors: [any RequestInterceptor] { [] }

  /// The identifier of the request for logs and adapters; created on first access.
  public var id: UUID { core.id }

  /// The root queue of the session.
  public var underlyingQueue: DispatchQueue { session.rootQueue }

  /// The serialization queue of the session.
  public var serializationQueue: DispatchQueue { session.serializationQueue }

  /// The interceptor of this request, in addition to the session's. It is the one that the request was created with, or
  /// an ``Interceptor`` that combines it with the ones added later.
  public var interceptor: (any RequestInterceptor)? { ownInterceptor }

  /// Whether the first response handler resumes the request; `nil` for the session's setting.
  public var shouldAutomaticallyResume: Bool? { core.shouldAutomaticallyResume }

  // MARK: State

  /// The current state.
  public var state: State { State(core.state.withLock { $0.lifecycle.state }) }
  /// Whether ``state`` is ``State/initialized``.
  public var isInitialized: Bool { state == .initialized }
  /// Whether ``state`` is ``State/resumed``.
  public var isResumed: Bool { state == .resumed }
  /// Whether ``state`` is ``State/suspended``.
  public var isSuspended: Bool { state == .suspended }
  /// Whether ``state`` is ``State/cancelled``.
  public var isCancelled: Bool { state == .cancelled }
  /// Whether ``state`` is ``State/finished``.
  public var isFinished: Bool { state == .finished }

  /// Starts or continues the request. Has no effect after its end.
  @discardableResult
  public func resume() -> Self {
    core.resume(self)
    return self
  }

  /// Suspends the request, which neither sends nor reads until ``resume()``. Its idle timeout is paused,
  /// `timeoutIntervalForResource` is not. Has no effect after its end.
  @discardableResult
  public func suspend() -> Self {
    core.suspend(self)
    return self
  }

  /// Ends the request with `AFError.explicitlyCancelled`. A request that has already failed, for example one that waits
  /// for a retry, keeps its error; see ``isCancelled``. A request that was not sent yet is never sent. Has no effect
  /// after its end. If it serves a handler that was added later, it only refuses the retry for that handler.
  @discardableResult
  public func cancel() -> Self {
    core.cancel(self)
    return self
  }

  // MARK: Results

  /// Every `URLRequest` of the request, after adaptation, one for each of the last 100 attempts.
  public var requests: [URLRequest] { core.state.withLock { $0.requests } }
  /// The first of ``requests``.
  public var firstRequest: URLRequest? { requests.first }
  /// The last of ``requests``.
  public var lastRequest: URLRequest? { core.state.withLock { $0.results.request } }
  /// The `URLRequest` of the last attempt; `nil` until it is created.
  public var request: URLRequest? { lastRequest }

  /// The response of the last attempt, as soon as its head has arrived; `nil` before that, and after a failure without
  /// a response. Redirects that are followed and challenges that are answered are not shown.
  public var response: HTTPURLResponse? { core.response }

  /// The trailer fields of the last response, which the server sent after its body (RFC 9110 §6.5); `nil` before its
  /// end, and if there were none.
  ///
  /// ```swift
  /// let response = await AF.request("https://example.com/data", headers: ["TE": "trailers"])
  ///   .validate()
  ///   .serializingData()
  ///   .response
  /// if let digest = response.trailers?["Content-Digest"], let data = response.data {
  ///   print(digest == contentDigest(of: data) ? "intact" : "damaged on its way")
  /// }
  /// ```
  ///
  /// - Like ``response``, they belong to the last response of the last attempt: not to a redirect or a challenge that
  ///   was followed, nor to an attempt that was retried. A response that failed before its end has none.
  /// - They are apart from the header fields, and are never merged into them. A trailer such as `Content-Length` or
  ///   `Set-Cookie`, which must not be one (RFC 9110 §6.5.1), is in this list and has no effect.
  /// - Values of a repeated name are joined by `, `, under the spelling that was received first.
  /// - Together with the header they are limited by ``TransportOptions/headerSizeLimit``.
  /// - A cache does not store them, so a response from it has none (RFC 9111 §3.1).
  ///
  /// Some servers send trailers only to a request with `TE: trailers` (RFC 9110 §10.1.4). HTTP/1.1 has them in chunked
  /// bodies only.
  public var responseTrailers: HTTPHeaders? { core.state.withLock { $0.results.exchange }?.trailers }

  /// The metrics of each of the last 100 attempts.
  public var allMetrics: [URLSessionTaskMetrics] {
    core.state.withLock { $0.exchanges }.compactMap(\.metrics)
  }
  /// The first of ``allMetrics``.
  public var firstMetrics: URLSessionTaskMetrics? { allMetrics.first }
  /// The metrics of the last attempt.
  public var lastMetrics: URLSessionTaskMetrics? { allMetrics.last }
  /// The metrics of the last attempt.
  public var metrics: URLSessionTaskMetrics? { lastMetrics }

  /// The number of retries.
  public var retryCount: Int { core.state.withLock { $0.results.retryCount } }

  /// The error of the request; `nil` if it has not failed.
  public var error: AFError? { core.error }

  // MARK: Credentials

  /// The credential that answers challenges, if one was given.
  public var credential: URLCredential? { core.state.withLock { $0.options.value.credential } }

  /// Answers challenges of the server with these credentials. The schemes are Digest (RFC 7616), Basic (RFC 7617),
  /// NTLM, and Negotiate where the system's GSSAPI is installed; the strongest that the server offers is used.
  ///
  /// The credentials are sent after a challenge, to that server only, and never to another origin after a redirect.
  /// Later requests of the session with the same credentials send them preemptively to protection spaces that
  /// accepted them. Refused credentials are not sent again: the 401 is the response. A field `Authorization` of the
  /// request takes precedence.
  ///
  /// ```swift
  /// AF.request("https://example.com/private")
  ///   .authenticate(username: "ann", password: secret)
  ///   .responseString { response in print(response.result) }
  /// ```
  ///
  /// - Parameters:
  ///   - username: The user name.
  ///   - password: The password.
  ///   - persistence: The persistence of the credential. Default: `.forSession`. With any persistence, no request uses
  ///     the credentials of another one. Credentials of a `SessionDelegate` are shared by all requests, unless their
  ///     persistence is `.none`.
  @discardableResult
  public func authenticate(
    username: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) -> Self {
    authenticate(with: URLCredential(user: username, password: password, persistence: persistence))
  }

  /// Answers challenges with `credential`, as ``authenticate(username:password:persistence:)`` does. A
  /// ``ClientIdentityCredential`` is the client certificate of the connection, as ``TransportOptions/clientIdentity``
  /// is. The certificate is not presented after a redirect to another origin.
  @discardableResult
  public func authenticate(with credential: URLCredential) -> Self {
    if let credential = credential as? ClientIdentityCredential {
      backgroundTransfer?.noteOwnOptions()
      core.present(credential.clientIdentity)
    } else {
      _ = core.state.withLock { replace(&$0.options.value.givenCredential, with: credential) }
    }
    return self
  }

  // MARK: Options

  /// The priority among the requests of the session that wait for the same host, or for a limit of the session. The
  /// range is from 0 (last) to 1 (first); values outside count as its ends. Default: 0.5. The priority can be changed
  /// at any time until the request is sent, also through `task.priority`.
  ///
  /// ```swift
  /// let request = session.download("https://example.com/archive.zip")
  /// request.priority = URLSessionTask.lowPriority
  /// ```
  public var priority: Float {
    get { core.priority }
    set { core.priority = newValue.isNaN ? URLSessionTask.defaultPriority : min(max(newValue, 0), 1) }
  }

  /// Changes the transport options of this request. Call it before the request starts; later changes apply to the
  /// next attempt. If another thread changes them at the same time, `change` is called again with the new options.
  ///
  /// The options do not survive the end of the process. If the request belongs to a background session, the next
  /// process does not send it until it is resumed; see ``Session/restoredRequests``.
  @discardableResult
  public func transportOptions(_ change: (inout TransportOptions) -> Void) -> Self {
    backgroundTransfer?.noteOwnOptions()
    core.changeOptions(change)
    return self
  }
}

extension Request: Equatable, Hashable {
  /// Whether both are the same request.
  public static func == (left: Request, right: Request) -> Bool { left.core === right.core }

  /// Hashes the identity of the request.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(core)) }
}

extension Request: CustomStringConvertible {
  /// `METHOD URL (status)`, as far as known, without a password.
  public var description: String {
    let (request, head) = core.state.withLock { ($0.results.request, $0.results.head) }
    guard let request, let url = request.url else { return "No request created yet." }
    let line = "\(ReadableText.line(request.httpMethod ?? "GET")) \(url.shownText)"
    guard let status = head?.status else { return line }
    return "\(line) (\(status))"
  }
}

extension Request {
  /// The tasks of the last 100 attempts that were sent, in their order. Resuming, suspending or cancelling the last one
  /// does so to the request.
  public var tasks: [URLSessionTask] { core.tasks(of: self) }
  /// The first of ``tasks``.
  public var firstTask: URLSessionTask? { tasks.first }
  /// The task of the last attempt.
  public var lastTask: URLSessionTask? { tasks.last }
  /// The task of the last attempt; `nil` before the first is sent.
  public var task: URLSessionTask? { lastTask }

  /// The requests that were sent: the current requests of ``tasks``, after redirects.
  public var performedRequests: [URLRequest] { tasks.compactMap(\.currentRequest) }

  /// Calls `handler` on `queue` (default: main) with the task of the current attempt, if there is one. The handler is
  /// called again for each later attempt, before the request is sent. The last handler set is used.
  @preconcurrency
  @discardableResult
  public func onURLSessionTaskCreation(
    on queue: DispatchQueue = .main, perform handler: @escaping @Sendable (URLSessionTask) -> Void
  ) -> Self {
    let (hasTask, _) = core.state.withLock { state in
      state.observed.tasks.owner = self
      let earlier = replace(&state.observed.added.value.taskHandler, with: (queue, handler))
      return (state.observed.tasks.count > 0, earlier)
    }
    core.add(.events)
    if hasTask, let current = task { queue.async { handler(current) } }
    return self
  }

  /// Enables events for the handlers and sequences of this request, and retains the request for them.
  func watch(for interests: RequestInterests = [], _ change: (inout RequestCore.CoreState) -> Void) {
    core.state.withLock { state in
      state.observed.tasks.owner = self
      change(&state)
    }
    core.add(interests.union(.events))
  }
}

/// The caller's objects that were added to a request after its creation. Most requests have none.
struct RequestAdditions: RareValue {
  static let unchanged = Rare<RequestAdditions>.Memory()

  var interceptors: [any RequestInterceptor] = []
  /// The monitors that receive the events of this request.
  var monitors: [any EventMonitor] = []
  /// The monitors that receive the events of its URL session as well.
  var transferMonitors: [any EventMonitor] = []
  var redirectHandler: (any RedirectHandler)?
  var cachedResponseHandler: (any CachedResponseHandler)?
  /// A closure that answers instead of the retrier that is being asked.
  var retryAnswer: (@Sendable () -> Void)?
}

extension Request {
  /// The monitors that receive only the events of this request.
  var ownMonitors: [any EventMonitor] { additions.withLock { $0.value.monitors } }

  /// The session's interceptor first, then the request's own, then the added ones, then ``Request/lastInterceptors``.
  var interceptorsInOrder: [any RequestInterceptor] {
    let added = additions.withLock { $0.value.interceptors }
    guard session.interceptor != nil || firstInterceptor != nil else { return added + lastInterceptors }
    return [session.interceptor, firstInterceptor].compactMap { $0 } + added + lastInterceptors
  }

  /// Adds an interceptor after all others.
  func add(_ interceptor: any RequestInterceptor) {
    additions.withLock { $0.value.interceptors.append(interceptor) }
    core.add(RequestInterests(of: interceptor))
  }

  /// The request's own interceptors as one; `nil` without any.
  var ownInterceptor: (any RequestInterceptor)? {
    let added = additions.withLock { $0.value.interceptors }
    guard !added.isEmpty else { return firstInterceptor }
    return Interceptor(interceptors: (firstInterceptor.map { [$0] } ?? []) + added)
  }
}

extension Request.State {
  init(_ state: RequestState) {
    switch state {
    case .initialized: self = .initialized
    case .resumed: self = .resumed
    case .suspended: self = .suspended
    case .cancelled: self = .cancelled
    case .finished: self = .finished
    }
  }
}

extension RequestInterests {
  /// Creates the interests of an interceptor. Compares exact types, because subclasses may do more, and because a
  /// failing cast would cost more than an adaptation.
  init(of interceptor: any RequestInterceptor) {
    self = .interceptors
    switch ObjectIdentifier(type(of: interceptor)) {
    case ObjectIdentifier(Adapter.self): insert(.adapters)
    case ObjectIdentifier(RetryPolicy.self), ObjectIdentifier(ConnectionLostRetryPolicy.self),
      ObjectIdentifier(Retrier.self):
      insert(.retriers)
    case ObjectIdentifier(Interceptor.self):
      insert(.adapters)
      if (interceptor as? Interceptor)?.retriers.isEmpty != true { insert(.retriers) }
    default: formUnion([.adapters, .retriers])
    }
  }
}
