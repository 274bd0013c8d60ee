public import Foundation
public import FoundationNetworking

/// The response of a data or upload request whose error is an ``AFError``.
public typealias AFDataResponse<Success> = DataResponse<Success, AFError>

// Not @preconcurrency: then the compiler would not infer `Sendable` in generic code that names the type.
/// The result of a data or upload request: the request, the response, the body and the serialized value.
///
/// ```swift
/// let response = await AF.request(url).serializingDecodable(User.self).response
/// switch response.result {
/// case .success(let user): show(user)
/// case .failure(let error): show(error, status: response.response?.statusCode)
/// }
/// ```
///
/// To make one for a test, use ``init(request:response:data:metrics:serializationDuration:result:)``.
public struct DataResponse<Success: Sendable, Failure: Error>: Sendable {
  /// The last request that was sent: after adaptation, redirects and retries. `nil` if none was created.
  public let request: URLRequest?
  /// The body as received; `nil` if there was none or it was empty.
  public let data: Data?
  /// The duration of serialization in seconds; 0 without a serializer.
  public let serializationDuration: TimeInterval
  /// The value, or the error.
  public let result: Result<Success, Failure>

  private let origin: ResponseOrigin

  /// The response of the server; `nil` if there was none. Created on first access.
  public var response: HTTPURLResponse? { origin.response }

  /// The metrics of the last attempt; `nil` only for a response created without them. Created on first access.
  public var metrics: TaskMetrics? { origin.metrics }

  /// The trailer fields, which the server sent after the body (RFC 9110 §6.5); `nil` if there were none. See
  /// ``Request/responseTrailers``.
  public var trailers: HTTPHeaders? { origin.trailers }

  /// The value, or `nil` when there is an error.
  public var value: Success? { result.success }

  /// The error, or `nil` when there is a value.
  public var error: Failure? { result.failure }

  /// Makes a response of its parts.
  ///
  /// - Parameters:
  ///   - request:               The request that was sent.
  ///   - response:              The response of the server.
  ///   - data:                  The body.
  ///   - metrics:               The metrics of the request.
  ///   - serializationDuration: The duration of serialization, in seconds.
  ///   - result:                The value, or the error.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, metrics: TaskMetrics?,
    serializationDuration: TimeInterval, result: Result<Success, Failure>
  ) {
    self.init(
      request: request, origin: .finished(response, metrics), data: data,
      serializationDuration: serializationDuration, result: result)
  }

  /// Makes a response.
  ///
  /// - Parameter origin: The `HTTPURLResponse` and the metrics, or the exchange from which they are created on first
  ///   access.
  package init(
    request: URLRequest?, origin: ResponseOrigin, data: Data?, serializationDuration: TimeInterval = 0,
    result: Result<Success, Failure>
  ) {
    self.request = request
    self.origin = origin
    self.data = data
    self.serializationDuration = serializationDuration
    self.result = result
  }

  /// Returns a copy with another error.
  func failing(with error: Failure) -> DataResponse { with(.failure(error)) }

  private func with<NewSuccess: Sendable, NewFailure: Error>(
    _ result: Result<NewSuccess, NewFailure>
  ) -> DataResponse<NewSuccess, NewFailure> {
    DataResponse<NewSuccess, NewFailure>(
      request: request, origin: origin, data: data, serializationDuration: serializationDuration,
      result: result)
  }
}

extension DataResponse {
  /// Returns this response with its value transformed.
  ///
  /// - Parameter transform: Called at once, and only when there is a value.
  public func map<NewSuccess: Sendable>(
    _ transform: (Success) -> NewSuccess
  ) -> DataResponse<NewSuccess, Failure> {
    with(result.map(transform))
  }

  /// Returns this response with its value transformed; an error of the closure becomes the error.
  ///
  /// - Parameter transform: Called at once, and only if there is a value.
  public func tryMap<NewSuccess: Sendable>(
    _ transform: (Success) throws -> NewSuccess
  ) -> DataResponse<NewSuccess, any Error> {
    with(result.tryMap(transform))
  }

  /// Returns this response with its error transformed.
  ///
  /// - Parameter transform: Called at once, and only when there is an error.
  public func mapError<NewFailure: Error>(
    _ transform: (Failure) -> NewFailure
  ) -> DataResponse<Success, NewFailure> {
    with(result.mapError(transform))
  }

  /// Returns this response with its error transformed; an error of the closure becomes the error instead.
  ///
  /// - Parameter transform: Called at once, and only if there is an error.
  public func tryMapError<NewFailure: Error>(
    _ transform: (Failure) throws -> NewFailure
  ) -> DataResponse<Success, any Error> {
    with(result.tryMapError(transform))
  }
}

extension DataResponse: CustomStringConvertible, CustomDebugStringConvertible {
  /// The result: `success(…)` or `failure(…)`. A line about the exchange follows a failure: method, URL and status, and
  /// the first bytes of the body. Secrets are left out; see ``Redaction``.
  public var description: String {
    let text = ReadableText.lines("\(result)")
    guard case .failure = result,
      let line = ResponseOutline.line(request, response, body: data, of: text, origin.redaction),
      !text.contains(line)
    else { return text }
    return "\(text)\n\(line)"
  }

  /// The request, the response and the result, on several lines.
  ///
  /// A body of up to 100,000 bytes is included if its `Content-Type` is text, JSON or XML; of other bodies, the size.
  /// Secrets of header fields, URLs, JSON and forms are left out; see ``Redaction``. The value is printed unchanged.
  public var debugDescription: String {
    guard let request else { return ReadableText.lines("[Request]: None\n[Result]: \(result)") }
    var outline = ResponseOutline(origin.redaction)
    outline.add(request)
    outline.add(response, body: .some(data))
    outline.addDurations(metrics, serialization: serializationDuration)
    outline.addResult(result)
    return outline.text
  }
}
