public import Foundation
public import FoundationNetworking

/// The response of a download request whose error is an ``AFError``.
public typealias AFDownloadResponse<Success> = DownloadResponse<Success, AFError>

// Not @preconcurrency: then the compiler would not infer `Sendable` in generic code that names the type.
/// The result of a download: the request, the response, the file and the serialized value.
///
/// ```swift
/// let response = AFDownloadResponse<URL>(
///   request: nil, response: nil, fileURL: file, resumeData: nil, metrics: nil, serializationDuration: 0,
///   result: .success(file))
/// ```
public struct DownloadResponse<Success: Sendable, Failure: Error>: Sendable {
  /// The last request that was sent: after adaptation, redirects and retries. `nil` if none was created.
  public let request: URLRequest?
  /// The downloaded file; `nil` if there is none.
  public let fileURL: URL?
  /// The data with which a cancelled or failed download can be resumed, if the server supports it.
  public let resumeData: Data?
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
  ///   - fileURL:               The downloaded file.
  ///   - resumeData:            The data with which the download can be resumed.
  ///   - metrics:               The metrics of the request.
  ///   - serializationDuration: The duration of serialization, in seconds.
  ///   - result:                The value, or the error.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, resumeData: Data?,
    metrics: TaskMetrics?, serializationDuration: TimeInterval, result: Result<Success, Failure>
  ) {
    self.init(
      request: request, origin: .finished(response, metrics), fileURL: fileURL, resumeData: resumeData,
      serializationDuration: serializationDuration, result: result)
  }

  /// Makes a response.
  ///
  /// - Parameter origin: The `HTTPURLResponse` and the metrics, or the exchange from which they are created on first
  ///   access.
  package init(
    request: URLRequest?, origin: ResponseOrigin, fileURL: URL?, resumeData: Data? = nil,
    serializationDuration: TimeInterval = 0, result: Result<Success, Failure>
  ) {
    self.request = request
    self.origin = origin
    self.fileURL = fileURL
    self.resumeData = resumeData
    self.serializationDuration = serializationDuration
    self.result = result
  }

  private func with<NewSuccess: Sendable, NewFailure: Error>(
    _ result: Result<NewSuccess, NewFailure>
  ) -> DownloadResponse<NewSuccess, NewFailure> {
    DownloadResponse<NewSuccess, NewFailure>(
      request: request, origin: origin, fileURL: fileURL, resumeData: resumeData,
      serializationDuration: serializationDuration, result: result)
  }
}

extension DownloadResponse {
  /// Returns this response with its value transformed.
  ///
  /// - Parameter transform: Called at once, and only when there is a value.
  public func map<NewSuccess: Sendable>(
    _ transform: (Success) -> NewSuccess
  ) -> DownloadResponse<NewSuccess, Failure> {
    with(result.map(transform))
  }

  /// Returns this response with its value transformed; an error of the closure becomes the error.
  ///
  /// - Parameter transform: Called at once, and only if there is a value.
  public func tryMap<NewSuccess: Sendable>(
    _ transform: (Success) throws -> NewSuccess
  ) -> DownloadResponse<NewSuccess, any Error> {
    with(result.tryMap(transform))
  }

  /// Returns this response with its error transformed.
  ///
  /// - Parameter transform: Called at once, and only when there is an error.
  public func mapError<NewFailure: Error>(
    _ transform: (Failure) -> NewFailure
  ) -> DownloadResponse<Success, NewFailure> {
    with(result.mapError(transform))
  }

  /// Returns this response with its error transformed; an error of the closure becomes the error instead.
  ///
  /// - Parameter transform: Called at once, and only if there is an error.
  public func tryMapError<NewFailure: Error>(
    _ transform: (Failure) throws -> NewFailure
  ) -> DownloadResponse<Success, any Error> {
    with(result.tryMapError(transform))
  }
}

extension DownloadResponse: CustomStringConvertible, CustomDebugStringConvertible {
  /// The result: `success(…)` or `failure(…)`. A line about the exchange follows a failure: method, URL and status.
  /// Secrets are left out; see ``Redaction``.
  public var description: String {
    let text = ReadableText.lines("\(result)")
    guard case .failure = result,
      let line = ResponseOutline.line(request, response, body: nil, of: text, origin.redaction),
      !text.contains(line)
    else { return text }
    return "\(text)\n\(line)"
  }

  /// The request, the response, the file and the result, a line for each part of them. The file itself is
  /// not read; the body of the request is shown as in `DataResponse.debugDescription`.
  public var debugDescription: String {
    guard let request else { return ReadableText.lines("[Request]: None\n[Result]: \(result)") }
    var outline = ResponseOutline(origin.redaction)
    outline.add(request)
    outline.add(response, body: nil)
    outline.add("[File URL]: \(fileURL?.path ?? "None")")
    outline.add("[Resume Data]: \(resumeData.map { "\($0.count) bytes" } ?? "None")")
    outline.addDurations(metrics, serialization: serializationDuration)
    outline.addResult(result)
    return outline.text
  }
}
