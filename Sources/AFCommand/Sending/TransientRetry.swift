import Alamofire
import Foundation

/// The retries of `--retry`: after a temporary failure, if no part of a response was used. A body that has begun is
/// not requested again because its bytes would come twice.
final class TransientRetry: RetryPolicy, @unchecked Sendable {
  // Unchecked, as its superclass is: its own state has a lock.
  private enum Use { case none, discarded(HTTPURLResponse), used }

  /// The longest delay in seconds. A longer `Retry-After` ends the retries.
  static let longestDelay: TimeInterval = 300

  private let use = Mutex(Use.none)
  /// Called before each delay.
  private let announce: @Sendable (String) -> Void

  init(limit: Int, longestRetryAfter: TimeInterval, announce: @escaping @Sendable (String) -> Void) {
    self.announce = announce
    super.init(
      retryLimit: UInt(limit),
      retryableHTTPStatusCodes: RetryPolicy.defaultRetryableHTTPStatusCodes.union([429]),
      maximumRetryAfter: longestRetryAfter)
  }

  /// Called with the head of each response. Returns whether the request is sent again because of its status.
  func discards(_ response: HTTPURLResponse, of request: Request) -> Bool {
    let isDiscarded =
      retryableHTTPStatusCodes.contains(response.statusCode) && request.retryCount < retryLimit
      && request.request?.method.map { retryableHTTPMethods.contains($0) } ?? false
    use.withLock { $0 = isDiscarded ? .discarded(response) : .used }
    return isDiscarded
  }

  /// Returns a discarded response whose body is delivered, because the request is not sent again after all: the server
  /// asks for a long delay, or the body is too long to be held back.
  func takeDiscarded() -> HTTPURLResponse? {
    use.withLock { use in
      guard case .discarded(let response) = use else { return nil }
      use = .used
      return response
    }
  }

  /// Makes a discarded response a failure, so that the request is retried.
  func validate(_ response: HTTPURLResponse) -> Result<Void, any Error> {
    guard case .discarded = use.withLock({ $0 }) else { return .success(()) }
    return .failure(
      AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: response.statusCode)))
  }

  override func shouldRetry(request: Request, dueTo error: any Error) -> Bool {
    if case .used = use.withLock({ $0 }) { return false }
    return super.shouldRetry(request: request, dueTo: error)
  }

  override func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let attempt = "(\(request.retryCount + 1) of \(retryLimit))"
    let reason = Self.reason(error)
    super.retry(request, for: session, dueTo: error) { [announce] result in
      guard case .retryWithDelay(let backoff) = result else { return completion(result) }
      let delay = min(backoff, Self.longestDelay)
      announce("\(reason) Trying again in \(String(format: "%g", (delay * 10).rounded() / 10)) s \(attempt).")
      completion(.retryWithDelay(delay))
    }
  }

  private static func reason(_ error: any Error) -> String {
    guard let error = error.asAFError else { return error.localizedDescription }
    return error.responseCode.map(ReasonPhrase.sentence) ?? FailureMessage.text(error, isVerbose: false)
  }
}
