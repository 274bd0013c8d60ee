import Alamofire
import Foundation

/// The retries of `--retry`: after a temporary failure, if no part of a response was used. A body that has begun is
/// not requested again because its bytes would come twice.
final class TransientRetry: RetryPolicy, @unchecked Sendable {
  // Unchecked, as its superclass is: its own state has a lock.
  private enum Use { case none, discarded, used }

  private let use = Mutex(Use.none)

  init(limit: Int) {
    super.init(
      retryLimit: UInt(limit),
      retryableHTTPStatusCodes: RetryPolicy.defaultRetryableHTTPStatusCodes.union([429]),
      maximumRetryAfter: .infinity)
  }

  /// Called with the head of each response. Returns whether the request is sent again because of its status.
  func discards(_ response: HTTPURLResponse, of request: Request) -> Bool {
    let isDiscarded =
      retryableHTTPStatusCodes.contains(response.statusCode) && request.retryCount < retryLimit
      && request.request?.method.map { retryableHTTPMethods.contains($0) } ?? false
    use.withLock { $0 = isDiscarded ? .discarded : .used }
    return isDiscarded
  }

  /// Makes a discarded response a failure, so that the request is retried.
  func validate(_ response: HTTPURLResponse) -> Result<Void, any Error> {
    guard use.withLock({ $0 == .discarded }) else { return .success(()) }
    return .failure(
      AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: response.statusCode)))
  }

  override func shouldRetry(request: Request, dueTo error: any Error) -> Bool {
    use.withLock { $0 != .used } && super.shouldRetry(request: request, dueTo: error)
  }
}
