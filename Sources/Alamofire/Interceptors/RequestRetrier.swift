public import Foundation

/// The decision of a retrier about a failed request.
public enum RetryResult: Sendable {
  /// The request is sent again at once.
  case retry
  /// The request is sent again after this many seconds.
  case retryWithDelay(TimeInterval)
  /// The request fails with its error.
  case doNotRetry
  /// Replace the error: the request ends with `AFError.requestRetryFailed`.
  case doNotRetryWithError(any Error)
}

/// Decides whether a failed request is sent again.
///
/// A retrier is called if making, adapting, the transfer or a validator failed, and once for each handler whose
/// serialization failed. The retrier is never called after a cancellation, and never on the engine's thread. Of several
/// retriers, the first result other than ``RetryResult/doNotRetry`` is used. Releasing the completion without a call
/// counts as ``RetryResult/doNotRetry``.
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
