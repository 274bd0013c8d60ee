public import Foundation

/// What a retrier decides about a failed request.
public enum RetryResult: Sendable {
  /// Send it again at once.
  case retry
  /// Send it again after this many seconds.
  case retryWithDelay(TimeInterval)
  /// Leave the error as it is.
  case doNotRetry
  /// Replace the error: the request ends with `AFError.requestRetryFailed`.
  case doNotRetryWithError(any Error)
}

/// Decides whether a failed request is sent again.
///
/// Asked when a request could not be made or adapted, when its transfer or a validator failed, and
/// once for each handler whose serialization failed; never after a cancellation, and never on the
/// engine's thread. Of several retriers, the first that does not say ``RetryResult/doNotRetry``
/// decides. A completion that is released without a call counts as ``RetryResult/doNotRetry``.
@preconcurrency
public protocol RequestRetrier: Sendable {
  /// Decides about `request`, which failed with `error`; `completion` may be called from any thread.
  @preconcurrency
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void)
}

/// An adapter and a retrier in one; both parts have a default that does nothing.
@preconcurrency
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestInterceptor {
  /// Leaves the request as it is.
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
