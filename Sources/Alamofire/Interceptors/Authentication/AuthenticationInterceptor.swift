public import Foundation
public import FoundationNetworking
import Synchronization

/// Puts a credential on every request, and refreshes it when it is out of date or a server refuses it:
/// once, however many requests need it.
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
/// **Before a request is sent**: without a credential it fails with ``AuthenticationError/missingCredential``.
/// One that requires a refresh is refreshed first; requests that come meanwhile wait for it. Otherwise the
/// credential is applied.
///
/// **When a request failed** because of its credential, as the ``Authenticator`` judges: if the credential
/// has changed since, the request is sent again at once. Otherwise it waits for a refresh, which is begun
/// unless one runs. New requests do not wait for such a refresh; they are sent with the credential that is there.
///
/// **When a refresh has ended**, all that waited go on, in the order in which they came: first those that are
/// yet to be sent, then those that are sent again. If it failed, they all fail with its error, as
/// `AFError.requestAdaptationFailed` and `AFError.requestRetryFailed`; so do later failures of the same
/// credential, until the next request is adapted or ``credential`` is set. If ``credential`` was set while the
/// refresh ran, that one counts and the outcome of the refresh does not.
///
/// **A refreshed credential that needs a refresh** is refreshed again before a request is sent with it, until the
/// ``refreshWindow`` refuses with ``AuthenticationError/excessiveRefresh``. Without a window it is applied as it is.
///
/// The interceptor may be used from any thread and by several sessions. It keeps the authenticator. Of the
/// authenticator, ``Authenticator/refresh(_:for:completion:)`` and what goes on after it run on one queue of
/// the interceptor, everything else where adapters and retriers run.
public final class AuthenticationInterceptor<AuthenticatorType: Authenticator>: RequestInterceptor {
  /// What is put on requests.
  public typealias Credential = AuthenticatorType.Credential

  /// How often a credential may be refreshed within a time. Against a server that refuses every credential
  /// that it has just given.
  ///
  /// ```swift
  /// let window = AuthenticationInterceptor<OAuthAuthenticator>.RefreshWindow(
  ///   interval: 60, maximumAttempts: 2)
  /// ```
  public struct RefreshWindow: Sendable {
    /// The time looked back at, in seconds.
    public let interval: TimeInterval
    /// How many refreshes may begin in that time; 0 allows none at all.
    public let maximumAttempts: Int

    /// Makes a window; by default 30 seconds and five refreshes.
    public init(interval: TimeInterval = 30.0, maximumAttempts: Int = 5) {
      self.interval = interval
      self.maximumAttempts = maximumAttempts
    }
  }

  private struct Adaptation: Sendable {
    let urlRequest: URLRequest
    /// Gone when the request is over, too.
    weak let session: Session?
    let completion: @Sendable (Result<URLRequest, any Error>) -> Void
  }

  private typealias Retry = @Sendable (RetryResult) -> Void
  private typealias Flow = AuthenticationFlow<Credential, Adaptation, Retry>

  /// How often the credential may be refreshed within a time; `nil` for as often as needed.
  public let refreshWindow: RefreshWindow?

  private let authenticator: AuthenticatorType
  /// Where an authenticator is asked to refresh: never on the thread of a request that waits for it.
  private let queue = DispatchQueue(label: "org.alamofire.authentication.inspector")
  private let flow: Mutex<Flow>

  /// The credential that requests are sent with. Setting it makes the failure of an earlier refresh
  /// forgotten; requests that failed with another one are sent again with it. `nil` after a log-out: requests
  /// fail with ``AuthenticationError/missingCredential`` then.
  public var credential: Credential? {
    get { flow.withLock { $0.credential } }
    set { _ = flow.withLock { $0.replace(with: newValue) } }
  }

  /// Makes an interceptor.
  ///
  /// - Parameters:
  ///   - authenticator: Knows how to apply and to refresh a credential.
  ///   - credential: The first credential; it can be set later. Default: none.
  ///   - refreshWindow: How often it may be refreshed; a refresh beyond that fails with
  ///     ``AuthenticationError/excessiveRefresh``. Default: five times in 30 seconds. `nil`: no limit.
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
        // The user's code, so outside of the lock; if the credential has changed since, it is asked again.
        finding = Flow.Finding(version: version, requiresRefresh: credential.requiresRefresh)
        continue
      case .hold: break
      case .refresh(let refresh): begin(refresh, for: session)
      case .apply(let credential): apply(credential, to: adaptation)
      case .fail(let error): adaptation.completion(.failure(error))
      case .release(let release): queue.async { self.end(release) }
      }
      return
    }
  }

  /// Has a request that was refused because of its credential sent again with another one.
  @preconcurrency
  public func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard let urlRequest = request.request, let response = request.response,
      authenticator.didRequest(urlRequest, with: response, failDueToAuthenticationError: error)
    else { return completion(.doNotRetry) }
    let (current, version) = flow.withLock { ($0.credential, $0.version) }
    guard let current else {
      return completion(.doNotRetryWithError(AuthenticationError.missingCredential))
    }
    guard authenticator.isRequest(urlRequest, authenticatedWith: current) else { return completion(.retry) }
    let time = Self.uptime
    switch flow.withLock({ $0.retry(completion, version: version, at: time) }) {
    case .retry: completion(.retry)
    case .hold: break
    case .refresh(let refresh): begin(refresh, for: session)
    case .fail(let error): completion(.doNotRetryWithError(error))
    case .release(let release): queue.async { self.end(release) }
    }
  }

  // MARK: Doing it

  /// Seconds that only grow.
  private static var uptime: Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }

  private func begin(_ refresh: Flow.Refresh, for session: Session) {
    // Holds the interceptor until the refresh has ended: whoever waits must hear of it.
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
        // Without a window nothing would end a credential that always needs a refresh.
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

/// Why an ``AuthenticationInterceptor`` could not authenticate a request.
public enum AuthenticationError: Error, Sendable {
  /// It has no credential; set ``AuthenticationInterceptor/credential``.
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
