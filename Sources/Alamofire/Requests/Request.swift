public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// One request and its life: the base of all kinds of requests. A ``Session`` makes it.
///
/// Every method may be called from any thread and any number of times. A request can be resumed,
/// suspended and cancelled until it is finished; a handler that is added later gets the same outcome,
/// and nothing is sent again. Two values are equal when they are the same request.
public class Request: @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own properties are constants.
  /// Where a request stands.
  public enum State: Sendable {
    /// Made, and neither resumed nor ended.
    case initialized
    /// Under way.
    case resumed
    /// Held back; nothing is sent or read until it is resumed.
    case suspended
    /// Ended by ``Request/cancel()``; it stays so.
    case cancelled
    /// Over; all handlers that were added have been served.
    case finished
  }

  /// What a validator says.
  public typealias ValidationResult = Result<Void, any (Error & Sendable)>

  /// Told how far a body has come.
  public typealias ProgressHandler = @Sendable (_ progress: Progress) -> Void

  package let core: RequestCore

  init(core: RequestCore) {
    self.core = core
  }

  /// What names the request in logs and to adapters; made when it is first asked for.
  public var id: UUID { core.id }

  /// The root queue of the session.
  public var underlyingQueue: DispatchQueue { core.session.rootQueue }

  /// The serialization queue of the session.
  public var serializationQueue: DispatchQueue { core.session.serializationQueue }

  /// What adapts and retries this request, beside its session: the interceptor that it was made with, or an
  /// ``Interceptor`` of that one and those that were chained to it.
  public var interceptor: (any RequestInterceptor)? { core.ownInterceptor }

  /// Whether the first response handler resumes the request; `nil` asks the session.
  public var shouldAutomaticallyResume: Bool? { core.shouldAutomaticallyResume }

  // MARK: State

  /// Where the request stands.
  public var state: State { core.state.withLock { $0.lifecycle.state } }
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

  /// Starts the request, or lets it go on. Does nothing after its end.
  @discardableResult
  public func resume() -> Self {
    core.resume(self)
    return self
  }

  /// Holds the request back: nothing is sent or read until ``resume()``. Its idle timeout rests
  /// meanwhile, `timeoutIntervalForResource` does not. Does nothing after its end.
  @discardableResult
  public func suspend() -> Self {
    core.suspend(self)
    return self
  }

  /// Ends the request with `AFError.explicitlyCancelled`, unless it has failed already. A request that
  /// was not yet sent never is. Does nothing after its end.
  @discardableResult
  public func cancel() -> Self {
    core.cancel(self)
    return self
  }

  // MARK: What it has come to

  /// Every `URLRequest` that was made for it, adapted ones as they were adapted, one an attempt.
  public var requests: [URLRequest] { core.state.withLock { $0.requests } }
  /// The first of ``requests``.
  public var firstRequest: URLRequest? { requests.first }
  /// The last of ``requests``.
  public var lastRequest: URLRequest? { core.state.withLock { $0.request } }
  /// The `URLRequest` of the last attempt; `nil` until it is made.
  public var request: URLRequest? { lastRequest }

  /// The response of the last attempt; `nil` until it has come, and for failures without one.
  public var response: HTTPURLResponse? { core.state.withLock { $0.exchange }?.httpResponse }

  /// What each attempt took.
  public var allMetrics: [URLSessionTaskMetrics] {
    core.state.withLock { $0.exchanges }.compactMap(\.metrics)
  }
  /// What the first attempt took.
  public var firstMetrics: URLSessionTaskMetrics? { allMetrics.first }
  /// What the last attempt took.
  public var lastMetrics: URLSessionTaskMetrics? { allMetrics.last }
  /// What the last attempt took.
  public var metrics: URLSessionTaskMetrics? { lastMetrics }

  /// How often the request has been sent again by a retrier.
  public var retryCount: Int { core.state.withLock { $0.retryCount } }

  /// Why the request failed; `nil` while it has not.
  public var error: AFError? { core.error }

  // MARK: Credentials

  /// The credential that answers challenges, if one was given.
  public var credential: URLCredential? { core.state.withLock { $0.extras.credential } }

  /// Answers challenges of the server with these credentials: Digest (RFC 7616), Basic (RFC 7617), and NTLM and
  /// Negotiate where libcurl has them; of what a server offers, the strongest. They are sent once the server has
  /// asked, to that server alone, and never on to another origin by a redirect. Later requests of the session that have the
  /// same credentials bring them unasked to where they were accepted. Credentials that are refused are not tried
  /// again: the 401 is the response. A field `Authorization` of your own goes before them.
  ///
  /// ```swift
  /// AF.request("https://example.com/private")
  ///   .authenticate(username: "ann", password: secret)
  ///   .responseString { response in print(response.result) }
  /// ```
  ///
  /// - Parameters:
  ///   - username: The name of the user.
  ///   - password: The password.
  ///   - persistence: How long the credential may be kept. Default: `.forSession`. Whatever it is, no request uses the
  ///     credentials of another one; those of a `SessionDelegate` are for all, unless it is `.none`.
  @discardableResult
  public func authenticate(
    username: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) -> Self {
    authenticate(with: URLCredential(user: username, password: password, persistence: persistence))
  }

  /// Answers challenges with `credential`, as ``authenticate(username:password:persistence:)`` does. A
  /// ``ClientIdentityCredential`` is the certificate of the connection's client, as
  /// ``TransportOptions/clientIdentity`` is, but for the origin of the request alone: one that it is redirected to is
  /// not shown it.
  @discardableResult
  public func authenticate(with credential: URLCredential) -> Self {
    if let credential = credential as? ClientIdentityCredential {
      core.present(credential.clientIdentity)
    } else {
      core.state.withLock { $0.extras.credential = credential }
    }
    return self
  }

  // MARK: Options

  /// Changes the options of the transport for this request alone. Call it before the request starts;
  /// later it counts for the next attempt.
  @discardableResult
  public func transportOptions(_ change: (inout TransportOptions) -> Void) -> Self {
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
  /// `METHOD URL (status)`, as far as they are known, without a password.
  public var description: String {
    let (request, exchange) = core.state.withLock { ($0.request, $0.exchange) }
    guard let request, let url = request.url else { return "No request created yet." }
    let line = "\(request.httpMethod ?? "GET") \(url.shownText)"
    guard let status = exchange?.head?.status else { return line }
    return "\(line) (\(status))"
  }
}
