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
    guard source.reconnects, Self.isTemporary(error), let delay = source.delay(random: .random(in: 0...1))
    else {
      return completion(.doNotRetry)
    }
    completion(.retryWithDelay(delay / .seconds(1)))
  }

  /// Whether another connection may succeed: the stream has ended, or the network failed.
  private static func isTemporary(_ error: any Error) -> Bool {
    guard let error = error.asAFError else { return false }
    if error.isResponseValidationError { return error.underlyingError is EventStreamEnd }
    guard let failure = error.underlyingError as? URLError else { return false }
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
    if response.statusCode == 204 { return .success(()) }
    let reason =
      ValidationRules.statusCode(response.statusCode, in: [200])
      ?? ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: ["text/event-stream"], isBodyEmpty: false)
    return reason.map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
  }
}
