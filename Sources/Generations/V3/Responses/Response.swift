import Alamofire
public import Foundation
public import FoundationNetworking

/// The argument of a response handler.
public struct Response<Value, Error: Swift.Error> {
  /// The request as it was created; `nil` if it could not be.
  public let request: URLRequest?
  /// The server's answer; `nil` when there was none.
  public let response: HTTPURLResponse?
  /// The body. `nil` for streams; for downloads, the resume data of one that failed.
  public let data: Data?
  /// The value of the serializer, or the error.
  public let result: Result<Value, Error>
  /// The points in time of the request.
  public let timeline: Timeline

  /// Makes a response of its parts.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, result: Result<Value, Error>,
    timeline: Timeline = Timeline()
  ) {
    self.request = request
    self.response = response
    self.data = data
    self.result = result
    self.timeline = timeline
  }
}

extension Response: Sendable where Value: Sendable {}

extension Response: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`, with the value or the error.
  public var description: String { result.debugDescription }

  /// Everything, a line each. Secrets of URLs and header fields are left out; see `Redaction`. The value is shown
  /// unchanged.
  public var debugDescription: String {
    [
      "[Request]: \(request?.debugLine ?? "nil")",
      "[Response]: \(response?.debugLine ?? "nil")",
      "[Data]: \(data?.count ?? 0) bytes",
      "[Result]: \(result.debugDescription)",
      "[Timeline]: \(timeline.debugDescription)",
    ].joined(separator: "\n")
  }
}
