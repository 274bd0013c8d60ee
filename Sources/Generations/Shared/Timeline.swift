public import Foundation

/// The points in time of a request and its durations, in seconds.
///
/// Points in time count from the start of 2001, UTC (`Date.timeIntervalSinceReferenceDate`).
public struct Timeline: Sendable {
  /// The time at which the request was first resumed, or its last retry began.
  public let requestStartTime: TimeInterval
  /// The time at which the first byte of a response arrived, or the request ended without one.
  public let initialResponseTime: TimeInterval
  /// The time at which the request ended.
  public let requestCompletedTime: TimeInterval
  /// The time at which the serializer returned.
  public let serializationCompletedTime: TimeInterval

  /// From the start to the first byte.
  public var latency: TimeInterval { initialResponseTime - requestStartTime }
  /// From the start to the end of the request.
  public var requestDuration: TimeInterval { requestCompletedTime - requestStartTime }
  /// From the end of the request to the end of the serialization, waiting included.
  public var serializationDuration: TimeInterval { serializationCompletedTime - requestCompletedTime }
  /// From the start to the end of the serialization.
  public var totalDuration: TimeInterval { serializationCompletedTime - requestStartTime }

  /// Makes a timeline of points in time; the durations follow from them.
  public init(
    requestStartTime: TimeInterval = 0, initialResponseTime: TimeInterval = 0,
    requestCompletedTime: TimeInterval = 0, serializationCompletedTime: TimeInterval = 0
  ) {
    self.requestStartTime = requestStartTime
    self.initialResponseTime = initialResponseTime
    self.requestCompletedTime = requestCompletedTime
    self.serializationCompletedTime = serializationCompletedTime
  }

  /// The current time.
  static var now: TimeInterval { Date().timeIntervalSinceReferenceDate }
}

extension Timeline: CustomStringConvertible, CustomDebugStringConvertible {
  /// The four durations, with three decimals.
  public var description: String { "Timeline: { \(durations.joined(separator: ", ")) }" }

  /// The four points in time and the four durations, with three decimals.
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
