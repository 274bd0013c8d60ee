public import Foundation

/// A moment, in seconds since the start of 2001 (`Date.timeIntervalSinceReferenceDate`).
public typealias CFAbsoluteTime = TimeInterval

/// When the steps of a request happened, and how long they took, in seconds.
public struct Timeline: Sendable {
  /// When the request was started.
  public let requestStartTime: CFAbsoluteTime
  /// When the first byte of a response arrived, or the request ended without one.
  public let initialResponseTime: CFAbsoluteTime
  /// When the request ended.
  public let requestCompletedTime: CFAbsoluteTime
  /// When the response had become a value.
  public let serializationCompletedTime: CFAbsoluteTime
  /// From the start to the first byte.
  public let latency: TimeInterval
  /// From the start to the end of the request.
  public let requestDuration: TimeInterval
  /// From the end of the request to the value.
  public let serializationDuration: TimeInterval
  /// From the start to the value.
  public let totalDuration: TimeInterval

  /// Makes a timeline of its moments; the durations follow from them.
  public init(
    requestStartTime: CFAbsoluteTime = 0, initialResponseTime: CFAbsoluteTime = 0,
    requestCompletedTime: CFAbsoluteTime = 0, serializationCompletedTime: CFAbsoluteTime = 0
  ) {
    self.requestStartTime = requestStartTime
    self.initialResponseTime = initialResponseTime
    self.requestCompletedTime = requestCompletedTime
    self.serializationCompletedTime = serializationCompletedTime
    latency = initialResponseTime - requestStartTime
    requestDuration = requestCompletedTime - requestStartTime
    serializationDuration = serializationCompletedTime - requestCompletedTime
    totalDuration = serializationCompletedTime - requestStartTime
  }
}

extension Timeline: CustomStringConvertible, CustomDebugStringConvertible {
  /// The four durations, with three decimals.
  public var description: String { "Timeline: { \(durations.joined(separator: ", ")) }" }

  /// The four moments and the four durations, with three decimals.
  public var debugDescription: String { "Timeline: { \((moments + durations).joined(separator: ", ")) }" }

  private var moments: [String] {
    [
      ("Request Start Time", requestStartTime), ("Initial Response Time", initialResponseTime),
      ("Request Completed Time", requestCompletedTime),
      ("Serialization Completed Time", serializationCompletedTime),
    ]
    .map { "\"\($0)\": \(Self.rounded($1))" }
  }

  private var durations: [String] {
    [
      ("Latency", latency), ("Request Duration", requestDuration),
      ("Serialization Duration", serializationDuration), ("Total Duration", totalDuration),
    ]
    .map { "\"\($0)\": \(Self.rounded($1)) secs" }
  }

  private static func rounded(_ time: TimeInterval) -> String { String(format: "%.3f", time) }
}
