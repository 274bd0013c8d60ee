import Foundation
import FoundationNetworking
import HTTPWire

/// The last interceptor of an event source. It adds the fields of each connection, and decides about the next one if no
/// retrier of the caller does.
struct EventSourceInterceptor: RequestInterceptor {
  let source: EventSource

  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    var adapted = urlRequest
    adapted.cachePolicy = .reloadIgnoringLocalCacheData
    for field in source.fields(for: urlRequest) { adapted.headers.update(field) }
    completion(.success(adapted))
  }

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let isClean = Self.isEndOfStream(error)
    guard source.reconnects, isClean || Self.isTemporary(error),
      let delay = source.delay(isClean: isClean, random: .random(in: 0...1))
    else {
      return completion(.doNotRetry)
    }
    completion(.retryWithDelay(delay / .seconds(1)))
  }

  /// Whether the server has ended the stream.
  private static func isEndOfStream(_ error: any Error) -> Bool {
    guard let error = error.asAFError, error.isResponseValidationError else { return false }
    return error.underlyingError is EventStreamEnd
  }

  /// Whether another connection may succeed, because the network failed.
  private static func isTemporary(_ error: any Error) -> Bool {
    guard let failure = error.asAFError?.underlyingError as? URLError else { return false }
    return RetryPolicy.defaultRetryableURLErrorCodes.contains(failure.code)
  }
}

/// The error of a connection that ended after an event stream.
struct EventStreamEnd: LocalizedError {
  var errorDescription: String? { "The server has ended the event stream." }
}

extension EventSource {
  /// Validates the response of a connection. The end of an event stream is a failure if another connection follows, so
  /// that retriers are asked.
  func validation(_ response: HTTPURLResponse) -> Request.ValidationResult {
    if isReadingEvents { return reconnects ? .failure(EventStreamEnd()) : .success(()) }
    if refusal == nil, response.statusCode == 204 { return .success(()) }
    let contentType = response.value(forHTTPHeaderField: "Content-Type")
    // A response without a body, such as a redirect that a handler has declined, may have had no head to read.
    let refusal =
      refusal ?? Self.refusal(status: response.statusCode, contentType: contentType)
    return .failure(refusal.ofValidation)
  }
}
