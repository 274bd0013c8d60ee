public import Foundation

/// When a request began, was answered, was over and was serialized; and what took how long.
///
/// Points in time are seconds since 1 January 2001, UTC; durations are seconds.
public struct Timeline: Sendable {
  /// When the request was first resumed.
  public let requestStartTime: TimeInterval
  /// When the response began to come; the end of the request where it never did.
  public let initialResponseTime: TimeInterval
  /// When the request was over.
  public let requestCompletedTime: TimeInterval
  /// When the serializer was done.
  public let serializationCompletedTime: TimeInterval

  /// From the start to the beginning of the response.
  public var latency: TimeInterval { initialResponseTime - requestStartTime }
  /// From the start to the end of the request.
  public var requestDuration: TimeInterval { requestCompletedTime - requestStartTime }
  /// From the end of the request to the end of the serialization, waiting included.
  public var serializationDuration: TimeInterval { serializationCompletedTime - requestCompletedTime }
  /// From the start to the end of the serialization.
  public var totalDuration: TimeInterval { serializationCompletedTime - requestStartTime }

  /// Makes a timeline of points in time.
  public init(
    requestStartTime: TimeInterval = 0, initialResponseTime: TimeInterval = 0,
    requestCompletedTime: TimeInterval = 0, serializationCompletedTime: TimeInterval = 0
  ) {
    self.requestStartTime = requestStartTime
    self.initialResponseTime = initialResponseTime
    self.requestCompletedTime = requestCompletedTime
    self.serializationCompletedTime = serializationCompletedTime
  }

  static var now: TimeInterval { Date().timeIntervalSinceReferenceDate }
}

extension Timeline: CustomStringConvertible, CustomDebugStringConvertible {
  /// The four durations, with three decimals.
  public var description: String { "Timeline: { \(durations.joined(separator: ", ")) }" }

  /// The points in time, and the durations.
  public var debugDescription: String {
    let times = [
      ("Request Start Time", requestStartTime), ("Initial Response Time", initialResponseTime),
      ("Request Completed Time", requestCompletedTime),
      ("Serialization Completed Time", serializationCompletedTime),
    ].map { "\"\($0)\": \(Self.text($1))" }
    return "Timeline: { \((times + durations).joined(separator: ", ")) }"
  }

  private var durations: [String] {
    [
      ("Latency", latency), ("Request Duration", requestDuration),
      ("Serialization Duration", serializationDuration), ("Total Duration", totalDuration),
    ].map { "\"\($0)\": \(Self.text($1)) secs" }
  }

  private static func text(_ seconds: TimeInterval) -> String { String(format: "%.3f", seconds) }
}
