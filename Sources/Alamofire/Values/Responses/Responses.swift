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
  /// Secrets of header fields, URLs, JSON and forms are left out; see ``Redaction``. The value is printed unchanged,
  /// unless it is a string that equals the body shown above: then only the number of its characters is printed.
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

  /// Returns a copy with another error.
  func failing(with error: Failure) -> DownloadResponse { with(.failure(error)) }

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

/// The text of the debug descriptions of responses: a line for each part, and four spaces for each level. Programs read
/// it in logs, so its form does not change.
struct ResponseOutline {
  private static let largestShownBody = 100_000

  let redaction: Redaction
  private var lines: [String] = []
  /// The body of the response, if it was shown.
  private var shownBody: Data?

  init(_ redaction: Redaction = .standard) {
    self.redaction = redaction
  }

  var text: String { lines.joined(separator: "\n") }

  mutating func add(_ line: String, level: Int = 0) {
    let indentation = String(repeating: "    ", count: level)
    for part in ReadableText.lines(line).split(separator: "\n", omittingEmptySubsequences: false) {
      lines.append(indentation + part)
    }
  }

  mutating func add(_ request: URLRequest) {
    add(
      "[Request]: \(request.httpMethod ?? "GET") \(request.url.map { redaction.url($0.absoluteString) } ?? "None")"
    )
    let fields = request.allHTTPHeaderFields ?? [:]
    addFields(fields)
    addBody(request.httpBody, fields: fields)
  }

  /// Adds the response. A body of `nil` is not mentioned; an inner `nil` is an empty body.
  mutating func add(_ response: HTTPURLResponse?, body: Data??) {
    guard let response else {
      add("[Response]: None")
      return
    }
    add("[Response]:")
    add("[Status Code]: \(response.statusCode)", level: 1)
    let fields = response.allHeaderFields as? [String: String] ?? [:]
    addFields(fields)
    if let body, addBody(body, fields: fields) { shownBody = body }
  }

  mutating func addDurations(_ metrics: TaskMetrics?, serialization: TimeInterval) {
    add("[Network Duration]: \(metrics.map { "\($0.taskInterval.duration)s" } ?? "None")")
    add("[Serialization Duration]: \(serialization)s")
  }

  private mutating func addFields(_ fields: [String: String]) {
    guard !fields.isEmpty else {
      add("[Headers]: None", level: 1)
      return
    }
    add("[Headers]:", level: 1)
    for (name, value) in fields.sorted(by: { $0.key.lowercased() < $1.key.lowercased() }) {
      add("\(name): \(redaction.value(value, ofHeaderField: name))", level: 2)
    }
  }

  /// Adds the result. A body that is already shown is not shown again, neither as the value nor as the excerpt in a
  /// failure.
  mutating func addResult<Success, Failure: Error>(_ result: Result<Success, Failure>) {
    guard let shownBody else { return add("[Result]: \(result)") }
    switch result {
    case .success(let text as String) where text == String(decoding: shownBody, as: UTF8.self):
      add("[Result]: success(the body as a String of \(text.count) characters)")
    case .success: add("[Result]: \(result)")
    case .failure: add("[Result]: \(result)".replacing(BodyExcerpt.sentence(shownBody), with: ""))
    }
  }

  /// Returns whether the text of the body is shown.
  @discardableResult
  private mutating func addBody(_ body: Data?, fields: [String: String]) -> Bool {
    guard let body, !body.isEmpty else {
      add("[Body]: None", level: 1)
      return false
    }
    let type = fields.first { $0.key.lowercased() == "content-type" }?.value.lowercased() ?? ""
    let name = type.prefix { $0 != ";" }
    let isText = ["json", "xml", "text"].contains { name.contains($0) }
    guard isText, body.count <= Self.largestShownBody else {
      add("[Body]: \(body.count) bytes", level: 1)
      return false
    }
    add("[Body]:", level: 1)
    let text = String(decoding: body, as: UTF8.self)
    let shown = redaction.body(text.trimmingCharacters(in: .whitespacesAndNewlines), contentType: type)
    add(shown, level: 2)
    return true
  }
}

extension ResponseOutline {
  /// Returns a line about the exchange that failed: method, URL, status, type and size of the body, and its beginning.
  /// The beginning is left out if the text of the failure has it.
  static func line(
    _ request: URLRequest?, _ response: HTTPURLResponse?, body: Data?, of failure: String,
    _ redaction: Redaction
  ) -> String? {
    guard let request, let url = request.url else { return nil }
    let line = "\(request.httpMethod ?? "GET") \(redaction.url(url.absoluteString))"
    guard let response else { return line }
    let type = response.value(forHTTPHeaderField: "Content-Type")
    var facts = ["\(response.statusCode)"]
    if let type { facts.append(type) }
    if let body, !body.isEmpty {
      let excerpt = BodyExcerpt(body, contentType: type, redaction: redaction)
      facts.append(
        failure.contains(BodyExcerpt.sentence(body)) ? body.count.bytes : "\(body.count.bytes): \(excerpt)")
    }
    return ReadableText.line("\(line) (\(facts.joined(separator: ", ")))")
  }
}
