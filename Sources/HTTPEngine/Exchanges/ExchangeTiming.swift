import HTTPWire

/// The times and the time limits of one exchange. Pure: the caller reads the clocks.
struct ExchangeTiming: Sendable {
  /// The start of the exchange, in seconds since 1970.
  let start: Double
  /// The start on the monotonic clock, in nanoseconds like the other times.
  let begun: UInt64
  /// The time at which the exchange left its queue; 0 before.
  var started: UInt64 = 0
  /// The last time at which bytes moved or were allowed to move.
  var lastActivity: UInt64
  /// The longest silence, in nanoseconds.
  let idleLimit: UInt64
  /// The end of the whole exchange, on the monotonic clock.
  let deadline: UInt64

  init(start: Double = 0, now: UInt64 = 0, idleLimit: UInt64 = .max, deadline: UInt64 = .max) {
    self.start = start
    begun = now
    lastActivity = now
    self.idleLimit = idleLimit
    self.deadline = deadline
  }

  /// Returns the microseconds from the start of the exchange to a time; −1 for 0.
  func microseconds(_ time: UInt64) -> Int64 {
    time == 0 ? -1 : Int64(clamping: (max(time, begun) - begun) / 1000)
  }
}
