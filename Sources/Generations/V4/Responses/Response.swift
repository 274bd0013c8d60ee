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
