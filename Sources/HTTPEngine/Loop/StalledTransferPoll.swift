/// How soon a loop looks again at transfers that share a connection although nobody has called it. Pure.
///
/// libcurl reads a connection of HTTP/2 for all of its streams, and sets a timer without length for each
/// stream that it finds bytes for. The end of `curl_multi_perform` clears the timers that are over, and 7.88
/// takes for "over" what lies before the last transfer that began to connect in the call: the timer of a
/// transfer that had its turn earlier is lost with its bytes unread. Without these looks such a request
/// stands still, with its response all there, until something else wakes the loop, for up to a minute.
package struct StalledTransferPoll {
  private static let first: UInt64 = 1
  private static let last: UInt64 = 1024
  private static let factor: UInt64 = 4

  private var next = Self.first

  package init() {}

  /// Something has come of the last turn, or was asked for.
  package mutating func somethingHappened() {
    next = Self.first
  }

  /// For how many milliseconds the loop may sleep now; each time longer, and without limit in the end.
  package mutating func pause() -> UInt64 {
    guard next <= Self.last else { return .max }
    defer { next *= Self.factor }
    return next
  }
}
