public import Foundation
public import FoundationNetworking
import Synchronization

/// Applies a credential to every request, and refreshes it if it has expired or a server refuses it. One refresh
/// serves all requests that need it.
///
/// ```swift
/// let interceptor = AuthenticationInterceptor(
///   authenticator: OAuthAuthenticator(), credential: credential)
/// let session = Session(interceptor: interceptor)
/// let user = try await session.request("https://example.com/me")
///   .validate()
///   .serializingDecodable(User.self)
///   .value
/// ```
///
/// **Before a request is sent**: without a credential it fails with ``AuthenticationError/missingCredential``. A
/// credential that requires a refresh is refreshed first, and requests made during the refresh wait for it. Otherwise
/// the credential is applied.
///
/// **After a failure** that the ``Authenticator`` attributes to the credential: if the credential has changed since,
/// the request is retried at once. Otherwise the request waits for a refresh, which is started unless one is running.
/// New requests do not wait for such a refresh; they are sent with the current credential.
///
/// **After a redirect**, a failure is not attributed to a credential that was not sent to the target of the redirect. A
/// `POST` that was redirected to a `GET` is not retried at all, because the server may have performed it.
///
/// **After a refresh**, all waiting requests continue in their order: first the ones not sent yet, then the retries.
/// If it failed, they all fail with its error, as `AFError.requestAdaptationFailed` and `AFError.requestRetryFailed`.
/// So do later failures of the same credential, until the next request is adapted or ``credential`` is set. If
/// ``credential`` was set during the refresh, the result of the refresh is discarded.
///
/// **A refreshed credential that requires a refresh** is refreshed again before a request is sent with it, until the
/// ``refreshWindow`` refuses with ``AuthenticationError/excessiveRefresh``. Without a window it is applied as it is.
///
/// The interceptor may be used from any thread and by several sessions. It retains the authenticator.
/// ``Authenticator/refresh(_:for:completion:)`` and the calls that follow a refresh run on one serial queue of the
/// interceptor, all others where adapters and retriers run.
public final class AuthenticationInterceptor<AuthenticatorType: Authenticator>: RequestInterceptor {
  /// The type of the credential.
  public typealias Credential = AuthenticatorType.Credential

  /// The maximum number of refreshes in an interval. It stops refreshes if a server refuses every credential that it
  /// issues.
  ///
  /// ```swift
  /// let window = AuthenticationInterceptor<OAuthAuthenticator>.RefreshWindow(
  ///   interval: 60, maximumAttempts: 2)
  /// ```
  public struct RefreshWindow: Sendable {
    /// The length of the interval before a refresh, in seconds. If it is zero, negative or not a number, no earlier
    /// refresh is in it, so that only a maximum of 0 has an effect.
    public let interval: TimeInterval
    /// The maximum number of refreshes in the interval; 0 allows none.
    public let maximumAttempts: Int

    /// Makes a window; by default 30 seconds and five refreshes.
    public init(interval: TimeInterval = 30.0, maximumAttempts: Int = 5) {
      self.interval = interval
      self.maximumAttempts = maximumAttempts
    }
  }

  private struct Adaptation: Sendable {
    let urlRequest: URLRequest
    /// Weak: `nil` if the session was released while the adaptation waits.
    weak let session: Session?
    let completion: @Sendable (Result<URLRequest, any Error>) -> Void
  }

  private typealias Retry = @Sendable (RetryResult) -> Void
  private typealias Flow = AuthenticationFlow<Credential, Adaptation, Retry>

  /// The maximum number of refreshes in an interval; `nil` for no limit.
  public let refreshWindow: RefreshWindow?

  private let authenticator: AuthenticatorType
  /// The serial queue on which the authenticator refreshes: never the thread of a request that waits for it.
  private let queue = DispatchQueue(label: "org.alamofire.authentication.inspector")
  /// The credential and its refresh, for attempts, users and the queue of the interceptor.
  private let flow: Mutex<Flow>

  /// The credential of requests. Setting it clears the error of an earlier refresh; requests that failed with another
  /// credential are retried with it. Set `nil` after a log-out: requests then fail with
  /// ``AuthenticationError/missingCredential``.
  public var credential: Credential? {
    get { flow.withLock { $0.credential } }
    set { _ = flow.withLock { $0.replace(with: newValue) } }
  }

  /// Makes an interceptor.
  ///
  /// - Parameters:
  ///   - authenticator: Applies and refreshes the credential.
  ///   - credential: The first credential; it can be set later. Default: none.
  ///   - refreshWindow: The limit of refreshes; a refresh above it fails with
  ///     ``AuthenticationError/excessiveRefresh``. Default: five in 30 seconds. `nil`: no limit.
  public init(
    authenticator: AuthenticatorType, credential: Credential? = nil,
    refreshWindow: RefreshWindow? = RefreshWindow()
  ) {
    self.authenticator = authenticator
    self.refreshWindow = refreshWindow
    flow = Mutex(
      Flow(
        credential: credential,
        limit: refreshWindow.map { Flow.Limit(interval: $0.interval, attempts: $0.maximumAttempts) }))
  }

  /// Applies the credential, after a refresh if it requires one.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    adapt(Adaptation(urlRequest: urlRequest, session: session, completion: completion), for: session)
  }

  private func adapt(_ adaptation: Adaptation, for session: Session) {
    var finding: Flow.Finding?
    while true {
      let time = Self.uptime
      switch flow.withLock({ $0.adapt(adaptation, knowing: finding, at: time) }) {
      case .ask(let credential, let version):
        // This calls the user's code, so the lock is not held; if the credential changes, the loop repeats.
        finding = Flow.Finding(version: version, requiresRefresh: credential.requiresRefresh)
        continue
      case .hold: break
      case .refresh(let refresh): begin(refresh, for: session)
      case .apply(let credential, _): apply(credential, to: adaptation)
      case .fail(let error): adaptation.completion(.failure(error))
      case .release(let release): queue.async { self.end(release) }
      }
      return
    }
  }

  /// Retries a request that failed because of its credential, after a refresh if necessary.
  @preconcurrency
  public func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard let urlRequest = request.request, let response = request.response, !request.mayHaveBeenPerformed,
      authenticator.didRequest(urlRequest, with: response, failDueToAuthenticationError: error)
    else { return completion(.doNotRetry) }
    let (current, version) = flow.withLock { ($0.credential, $0.version) }
    guard let current else {
      return completion(.doNotRetryWithError(AuthenticationError.missingCredential))
    }
    guard authenticator.isRequest(urlRequest, authenticatedWith: current) else { return completion(.retry) }
    // A server that did not receive the credential cannot have refused it, and would not receive another one either.
    if let redirected = request.redirectedRequest,
      !authenticator.isRequest(redirected, authenticatedWith: current)
    {
      return completion(.doNotRetry)
    }
    let time = Self.uptime
    switch flow.withLock({ $0.retry(completion, version: version, at: time) }) {
    case .retry: completion(.retry)
    case .hold: break
    case .refresh(let refresh): begin(refresh, for: session)
    case .fail(let error): completion(.doNotRetryWithError(error))
    case .release(let release): queue.async { self.end(release) }
    }
  }

  // MARK: Steps

  /// Monotonic seconds.
  private static var uptime: Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }

  private func begin(_ refresh: Flow.Refresh, for session: Session) {
    // Retains the interceptor until the refresh has ended, because waiting requests need its outcome.
    let completion = GuardedCompletion<Result<Credential, any Error>>(
      whenForgotten: .failure(ForgottenRefresh())
    ) { result in
      self.queue.async {
        let release = self.flow.withLock { $0.refreshed(refresh.ticket, result) }
        if let release { self.end(release) }
      }
    }
    queue.async {
      self.authenticator.refresh(refresh.credential, for: session) { completion($0) }
    }
  }

  private func end(_ release: Flow.Release) {
    switch release.outcome {
    case .success(let credential):
      for adaptation in release.adaptations {
        // Without a window, a credential that always requires a refresh would never be applied.
        if refreshWindow != nil, let session = adaptation.session {
          adapt(adaptation, for: session)
        } else {
          apply(credential, to: adaptation)
        }
      }
      for retry in release.retries { retry(.retry) }
    case .failure(let error):
      for adaptation in release.adaptations { adaptation.completion(.failure(error)) }
      for retry in release.retries { retry(.doNotRetryWithError(error)) }
    }
  }

  private func apply(_ credential: Credential, to adaptation: Adaptation) {
    var urlRequest = adaptation.urlRequest
    authenticator.apply(credential, to: &urlRequest)
    adaptation.completion(.success(urlRequest))
  }
}

/// The reasons why an ``AuthenticationInterceptor`` cannot authenticate a request.
public enum AuthenticationError: Error, Sendable {
  /// The interceptor has no credential; set ``AuthenticationInterceptor/credential``.
  case missingCredential
  /// The credential was refreshed too often within the ``AuthenticationInterceptor/refreshWindow``.
  case excessiveRefresh
}

extension AuthenticationError: LocalizedError {
  /// The fault and its remedy.
  public var errorDescription: String? {
    switch self {
    case .missingCredential:
      "The request needs a credential and there is none; set the interceptor's credential first."
    case .excessiveRefresh:
      "The credential was refreshed too often in a short time; the server may refuse every new one."
    }
  }
}

/// The error of an authenticator that released its completion without calling it.
struct ForgottenRefresh: LocalizedError {
  var errorDescription: String? {
    "An Authenticator released the completion of refresh without calling it; call it exactly once on every path."
  }
}

extension AuthenticationError: NSErrorConvertible {}

extension ForgottenRefresh: NSErrorConvertible {}

/// A credential that an ``Authenticator`` applies, such as a token, with the data needed to refresh it.
@preconcurrency
public protocol AuthenticationCredential: Sendable {
  /// Whether the credential has to be refreshed before it is used. Return `true` some time before it expires, so that
  /// it is still valid when it reaches the server. Read once for each request, on any thread.
  var requiresRefresh: Bool { get }
}

/// Applies credentials to requests, detects that a server refused one, and refreshes it.
///
/// ```swift
/// struct OAuthCredential: AuthenticationCredential, Decodable {
///   let accessToken: String
///   let refreshToken: String
///   let expiration: Date
///
///   var requiresRefresh: Bool { Date(timeIntervalSinceNow: 60) > expiration }
/// }
///
/// final class OAuthAuthenticator: Authenticator {
///   // Not the session that the interceptor belongs to: its requests wait for the refresh.
///   let tokens = Session()
///
///   func apply(_ credential: OAuthCredential, to urlRequest: inout URLRequest) {
///     urlRequest.headers.add(.authorization(bearerToken: credential.accessToken))
///   }
///
///   func refresh(
///     _ credential: OAuthCredential, for session: Session,
///     completion: @escaping @Sendable (Result<OAuthCredential, any Error>) -> Void
///   ) {
///     let parameters = ["refresh_token": credential.refreshToken]
///     tokens.request("https://example.com/token", method: .post, parameters: parameters)
///       .validate()
///       .responseDecodable(of: OAuthCredential.self, queue: .global()) { response in
///         completion(response.result.mapError { $0 })
///       }
///   }
///
///   func didRequest(
///     _ urlRequest: URLRequest, with response: HTTPURLResponse,
///     failDueToAuthenticationError error: any Error
///   ) -> Bool {
///     response.statusCode == 401
///   }
///
///   func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: OAuthCredential) -> Bool {
///     urlRequest.headers["Authorization"] == "Bearer \(credential.accessToken)"
///   }
/// }
/// ```
///
/// All methods may be called on any thread except the engine's. An ``AuthenticationInterceptor`` never runs two calls
/// of ``refresh(_:for:completion:)`` at the same time.
@preconcurrency
public protocol Authenticator: AnyObject, Sendable {
  /// The type of the credential.
  associatedtype Credential: AuthenticationCredential

  /// Applies `credential` to a request, as a header field for example.
  func apply(_ credential: Credential, to urlRequest: inout URLRequest)

  /// Refreshes a credential.
  ///
  /// Called on a serial queue of the interceptor. If the interceptor also adapts requests of `session`, do not wait
  /// for one of them here, because it may wait for this refresh.
  ///
  /// - Parameters:
  ///   - credential: The expired or refused credential.
  ///   - session: The session of the first request that needs the refresh.
  ///   - completion: Call it once, from any thread; further calls are ignored. Its release without a call is a
  ///     failure.
  @preconcurrency
  func refresh(
    _ credential: Credential, for session: Session,
    completion: @escaping @Sendable (_ result: Result<Credential, any Error>) -> Void)

  /// Whether the server refused a request because of its credential: usually status 401 (RFC 9110 §15.5.2). A status
  /// code is a failure only if the request has `validate()`.
  func didRequest(
    _ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error
  ) -> Bool

  /// Whether `urlRequest` was sent with `credential`. If not, the credential has changed since, and the request is
  /// retried with the new one without a refresh. After a redirect, also called with the redirected request: if that was
  /// sent without `credential`, the request is not retried.
  func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Credential) -> Bool
}
