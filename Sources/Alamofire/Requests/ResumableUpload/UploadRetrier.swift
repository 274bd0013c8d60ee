import Foundation
import FoundationNetworking
import HTTPWire

/// The last retrier of a resumable upload. It decides if no retrier of the caller does.
struct UploadRetrier: RequestInterceptor {
  let upload: UploadResumer

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard let failure = Self.failure(error),
      let delay = upload.delay(after: failure, random: .random(in: 0...1))
    else { return completion(.doNotRetry) }
    completion(.retryWithDelay(delay / .seconds(1)))
  }

  private static func failure(_ error: any Error) -> UploadResumption.Failure? {
    guard let error = error.asAFError else { return nil }
    if error.isResponseValidationError { return .response }
    guard let failure = error.underlyingError as? URLError,
      RetryPolicy.defaultRetryableURLErrorCodes.contains(failure.code)
    else { return nil }
    return .network(sentNothing: unsentCodes.contains(failure.code))
  }

  /// The codes of failures before anything was sent.
  private static let unsentCodes: Set<URLError.Code> = [
    .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet,
  ]
}
