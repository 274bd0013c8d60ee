public import Foundation
public import FoundationNetworking

/// The context of an adaptation.
public struct RequestAdapterState: Sendable {
  private enum Identity: Sendable {
    case given(UUID)
    /// The identifier is created when it is first asked for.
    case ofRequest(RequestCore)
  }

  /// The `id` of the ``Request``.
  public var requestID: UUID {
    switch identity {
    case .given(let id): id
    case .ofRequest(let core): core.id
    }
  }
  /// The session that performs it.
  public let session: Session
  private let identity: Identity

  /// Makes a state; useful to call an adapter by hand, in a test for example.
  public init(requestID: UUID, session: Session) {
    identity = .given(requestID)
    self.session = session
  }

  init(of core: RequestCore, in session: Session) {
    identity = .ofRequest(core)
    self.session = session
  }
}

/// Changes requests before they are sent: adds a token, a signature, another host.
///
/// An adapter is called once for each attempt, after the request has been created and validated, and never on the
/// engine's thread. The completion may be called from any thread, at once or later; only the first call counts. A
/// completion that is released without a call fails the request.
///
/// ```swift
/// struct TokenAdapter: RequestInterceptor {
///   let token: String
///   func adapt(
///     _ urlRequest: URLRequest, for session: Session,
///     completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
///   ) {
///     var urlRequest = urlRequest
///     urlRequest.headers.add(.authorization(bearerToken: token))
///     completion(.success(urlRequest))
///   }
/// }
/// ```
@preconcurrency
public protocol RequestAdapter: Sendable {
  /// Adapts `urlRequest`; a failure ends the attempt with `AFError.requestAdaptationFailed`.
  @preconcurrency
  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void)

  /// Adapts `urlRequest` with the state of its request; the library calls this form. The default implementation calls
  /// ``adapt(_:for:completion:)``.
  @preconcurrency
  func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void)
}

extension RequestAdapter {
  /// Forwards to ``adapt(_:for:completion:)`` with the session of `state`.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    adapt(urlRequest, for: state.session, completion: completion)
  }
}

/// The error of an adapter that released its completion without calling it.
struct ForgottenCompletion: LocalizedError, NSErrorConvertible {
  var errorDescription: String? {
    "A RequestAdapter released its completion without calling it; call it exactly once on every path."
  }
}

/// The decision of a retrier about a failed request.
public enum RetryResult: Sendable {
  /// The request is sent again at once.
  case retry
  /// The request is sent again after this many seconds.
  case retryWithDelay(TimeInterval)
  /// The next retrier is asked; without a further one, the request fails with its error.
  case doNotRetry
  /// Replace the error: the request ends with `AFError.requestRetryFailed`.
  case doNotRetryWithError(any Error)
}

/// Decides whether a failed request is sent again.
///
/// A retrier is called if the creation of the request, an adapter, the transfer or a validator failed. It is also
/// called once for each handler whose serialization failed. The retrier is never called after a cancellation, and never
/// on the engine's thread. Of several retriers, the first result other than ``RetryResult/doNotRetry`` is used.
/// Releasing the completion without a call counts as ``RetryResult/doNotRetry``.
@preconcurrency
public protocol RequestRetrier: Sendable {
  /// Decides about `request`, which failed with `error`; `completion` may be called from any thread.
  @preconcurrency
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void)
}

/// An adapter and a retrier; the default implementations have no effect.
@preconcurrency
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestInterceptor {
  /// Returns the request unchanged.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    completion(.success(urlRequest))
  }

  /// Does not retry.
  @preconcurrency
  public func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    completion(.doNotRetry)
  }
}
