public import Alamofire
public import Foundation
public import FoundationNetworking

/// A point in time, in seconds since the start of 2001 (`Date.timeIntervalSinceReferenceDate`).
public typealias CFAbsoluteTime = TimeInterval

/// The response of a request, without a value created from its body.
public struct DefaultDataResponse: Sendable {
  /// The request as it was sent.
  public let request: URLRequest?
  /// The response of the server.
  public let response: HTTPURLResponse?
  /// The body.
  public let data: Data?
  /// The error; `nil` after a success.
  public let error: (any Error)?
  /// The times at which the steps of the request happened.
  public let timeline: Timeline
  /// The metrics of the request; `nil` if nothing was sent.
  public internal(set) var metrics: URLSessionTaskMetrics?

  /// Makes a response of its parts.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?,
    timeline: Timeline = Timeline(), metrics: URLSessionTaskMetrics? = nil
  ) {
    self.request = request
    self.response = response
    self.data = data
    self.error = error
    self.timeline = timeline
    self.metrics = metrics
  }
}

/// The response of a request, with the value created from its body.
public struct DataResponse<Value> {
  /// The request as it was sent.
  public let request: URLRequest?
  /// The response of the server.
  public let response: HTTPURLResponse?
  /// The body.
  public let data: Data?
  /// The value, or the error.
  public let result: Result<Value>
  /// The times at which the steps of the request happened.
  public let timeline: Timeline
  /// The metrics of the request; `nil` if nothing was sent.
  public internal(set) var metrics: URLSessionTaskMetrics?

  /// The value, if there is one.
  public var value: Value? { result.value }
  /// The error; `nil` after a success.
  public var error: (any Error)? { result.error }

  /// Makes a response of its parts.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, result: Result<Value>,
    timeline: Timeline = Timeline()
  ) {
    self.request = request
    self.response = response
    self.data = data
    self.result = result
    self.timeline = timeline
  }
}

extension DataResponse: Sendable where Value: Sendable {}

extension DataResponse: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`, and the value or the error.
  public var description: String { result.debugDescription }

  /// A line each for the request, the response, the length of the body, the result and the timeline. Secrets of URLs
  /// and header fields are left out; see `Redaction`. The value is shown unchanged.
  public var debugDescription: String {
    """
    [Request]: \((request?.debugLine).shown)
    [Response]: \((response?.debugLine).shown)
    [Data]: \(data?.count ?? 0) bytes
    [Result]: \(result.debugDescription)
    [Timeline]: \(timeline.debugDescription)
    """
  }
}

extension DataResponse {
  /// Makes another value of the value; see ``Result/map(_:)``.
  public func map<T>(_ transform: (Value) -> T) -> DataResponse<T> { with(result.map(transform)) }

  /// Makes another value of the value, or the error that is thrown; see ``Result/flatMap(_:)``.
  public func flatMap<T>(_ transform: (Value) throws -> T) -> DataResponse<T> {
    with(result.flatMap(transform))
  }

  /// Makes another error of the error; see ``Result/mapError(_:)``.
  public func mapError<E: Error>(_ transform: (any Error) -> E) -> DataResponse {
    with(result.mapError(transform))
  }

  /// Transforms the error, or replaces it by the error that the closure throws; see ``Result/flatMapError(_:)``.
  public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DataResponse {
    with(result.flatMapError(transform))
  }

  private func with<T>(_ result: Result<T>) -> DataResponse<T> {
    var response = DataResponse<T>(
      request: request, response: self.response, data: data, result: result, timeline: timeline)
    response.metrics = metrics
    return response
  }
}

extension Optional {
  /// The text of the value, or `nil`.
  var shown: String { map { ReadableText.lines("\($0)") } ?? "nil" }
}

/// The metrics of a request, phase by phase. This type has the name of Foundation's class, because only Foundation
/// can make objects of that.
public typealias URLSessionTaskMetrics = Alamofire::TaskMetrics

/// One exchange of ``URLSessionTaskMetrics``.
public typealias URLSessionTaskTransactionMetrics = Alamofire::TransactionMetrics

/// The response of a download, without a value created from its file.
public struct DefaultDownloadResponse: Sendable {
  /// The request as it was sent.
  public let request: URLRequest?
  /// The response of the server.
  public let response: HTTPURLResponse?
  /// The URL of the file to which the body was downloaded.
  public let temporaryURL: URL?
  /// The URL to which the file was moved; `nil` without a destination.
  public let destinationURL: URL?
  /// The data with which an interrupted download can be resumed.
  public let resumeData: Data?
  /// The error; `nil` after a success.
  public let error: (any Error)?
  /// The times at which the steps of the request happened.
  public let timeline: Timeline
  /// The metrics of the request; `nil` if nothing was sent.
  public internal(set) var metrics: URLSessionTaskMetrics?

  /// Makes a response of its parts.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, temporaryURL: URL?, destinationURL: URL?,
    resumeData: Data?, error: (any Error)?, timeline: Timeline = Timeline(),
    metrics: URLSessionTaskMetrics? = nil
  ) {
    self.request = request
    self.response = response
    self.temporaryURL = temporaryURL
    self.destinationURL = destinationURL
    self.resumeData = resumeData
    self.error = error
    self.timeline = timeline
    self.metrics = metrics
  }
}

/// The response of a download, with the value created from its file.
public struct DownloadResponse<Value> {
  /// The request as it was sent.
  public let request: URLRequest?
  /// The response of the server.
  public let response: HTTPURLResponse?
  /// The URL of the file to which the body was downloaded.
  public let temporaryURL: URL?
  /// The URL to which the file was moved; `nil` without a destination.
  public let destinationURL: URL?
  /// The data with which an interrupted download can be resumed.
  public let resumeData: Data?
  /// The value, or the error.
  public let result: Result<Value>
  /// The times at which the steps of the request happened.
  public let timeline: Timeline
  /// The metrics of the request; `nil` if nothing was sent.
  public internal(set) var metrics: URLSessionTaskMetrics?

  /// The value, if there is one.
  public var value: Value? { result.value }
  /// The error; `nil` after a success.
  public var error: (any Error)? { result.error }

  /// Makes a response of its parts.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, temporaryURL: URL?, destinationURL: URL?,
    resumeData: Data?, result: Result<Value>, timeline: Timeline = Timeline()
  ) {
    self.request = request
    self.response = response
    self.temporaryURL = temporaryURL
    self.destinationURL = destinationURL
    self.resumeData = resumeData
    self.result = result
    self.timeline = timeline
  }
}

extension DownloadResponse: Sendable where Value: Sendable {}

extension DownloadResponse: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`, and the value or the error.
  public var description: String { result.debugDescription }

  /// A line each for the request, the response, both locations of the file, the length of the resume data, the result
  /// and the timeline. Secrets of URLs and header fields are left out; see `Redaction`. The value is shown unchanged.
  public var debugDescription: String {
    """
    [Request]: \((request?.debugLine).shown)
    [Response]: \((response?.debugLine).shown)
    [TemporaryURL]: \((temporaryURL?.path).shown)
    [DestinationURL]: \((destinationURL?.path).shown)
    [ResumeData]: \(resumeData?.count ?? 0) bytes
    [Result]: \(result.debugDescription)
    [Timeline]: \(timeline.debugDescription)
    """
  }
}

extension DownloadResponse {
  /// Makes another value of the value; see ``Result/map(_:)``.
  public func map<T>(_ transform: (Value) -> T) -> DownloadResponse<T> { with(result.map(transform)) }

  /// Makes another value of the value, or the error that is thrown; see ``Result/flatMap(_:)``.
  public func flatMap<T>(_ transform: (Value) throws -> T) -> DownloadResponse<T> {
    with(result.flatMap(transform))
  }

  /// Makes another error of the error; see ``Result/mapError(_:)``.
  public func mapError<E: Error>(_ transform: (any Error) -> E) -> DownloadResponse {
    with(result.mapError(transform))
  }

  /// Transforms the error, or replaces it by the error that the closure throws; see ``Result/flatMapError(_:)``.
  public func flatMapError<E: Error>(_ transform: (any Error) throws -> E) -> DownloadResponse {
    with(result.flatMapError(transform))
  }

  private func with<T>(_ result: Result<T>) -> DownloadResponse<T> {
    var response = DownloadResponse<T>(
      request: request, response: self.response, temporaryURL: temporaryURL, destinationURL: destinationURL,
      resumeData: resumeData, result: result, timeline: timeline)
    response.metrics = metrics
    return response
  }
}

/// A value, or an error.
///
/// This type replaces `Swift.Result` wherever the module is imported.
public enum Result<Value> {
  /// A success, with its value.
  case success(Value)
  /// A failure, with its error.
  case failure(any Error)

  /// Calls a closure, and stores its value or its error.
  public init(value: () throws -> Value) {
    do { self = .success(try value()) } catch { self = .failure(error) }
  }

  /// Whether there is a value.
  public var isSuccess: Bool { if case .success = self { true } else { false } }
  /// Whether there is an error.
  public var isFailure: Bool { !isSuccess }
  /// The value, if there is one.
  public var value: Value? { if case .success(let value) = self { value } else { nil } }
  /// The error, if there is one.
  public var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }

  /// Returns the value, or throws the error.
  public func unwrap() throws -> Value {
    switch self {
    case .success(let value): return value
    case .failure(let error): throw error
    }
  }
}

extension Result: Sendable where Value: Sendable {}

extension Result: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`.
  public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

  /// `SUCCESS` or `FAILURE`, with the value or the error: `SUCCESS: 3`. Secrets are left out of the error.
  public var debugDescription: String {
    switch self {
    case .success(let value): ReadableText.lines("SUCCESS: \(value)")
    case .failure(let error): ReadableText.lines("FAILURE: " + Redaction.standard.urls(in: "\(error)"))
    }
  }
}

extension Result {
  /// Makes another value of the value; an error stays.
  public func map<T>(_ transform: (Value) -> T) -> Result<T> {
    switch self {
    case .success(let value): .success(transform(value))
    case .failure(let error): .failure(error)
    }
  }

  /// Makes another value of the value, or the error that this throws; an error stays.
  public func flatMap<T>(_ transform: (Value) throws -> T) -> Result<T> {
    switch self {
    case .success(let value): Result<T> { try transform(value) }
    case .failure(let error): .failure(error)
    }
  }

  /// Makes another error of the error; a value stays.
  public func mapError<T: Error>(_ transform: (any Error) -> T) -> Result {
    switch self {
    case .success: self
    case .failure(let error): .failure(transform(error))
    }
  }

  /// Transforms the error, or replaces it by the error that the closure throws; a value is unchanged.
  public func flatMapError<T: Error>(_ transform: (any Error) throws -> T) -> Result {
    switch self {
    case .success: return self
    case .failure(let error):
      do { return .failure(try transform(error)) } catch { return .failure(error) }
    }
  }

  /// Calls a closure with the value, if there is one, and returns itself.
  @discardableResult
  public func withValue(_ closure: (Value) throws -> Void) rethrows -> Result {
    if case .success(let value) = self { try closure(value) }
    return self
  }

  /// Calls a closure with the error, if there is one, and returns itself.
  @discardableResult
  public func withError(_ closure: (any Error) throws -> Void) rethrows -> Result {
    if case .failure(let error) = self { try closure(error) }
    return self
  }

  /// Calls a closure if there is a value, and returns itself.
  @discardableResult
  public func ifSuccess(_ closure: () throws -> Void) rethrows -> Result {
    if isSuccess { try closure() }
    return self
  }

  /// Calls a closure if there is an error, and returns itself.
  @discardableResult
  public func ifFailure(_ closure: () throws -> Void) rethrows -> Result {
    if isFailure { try closure() }
    return self
  }
}
