import Glibc

/// The two clocks of the engine: one that only goes forward, for timeouts, and the calendar's.
package enum Clock {
  /// Nanoseconds since some moment in the past.
  @inline(__always)
  package static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// The time after a duration; the end of the clock if that is beyond it.
  package static func now(plus duration: Duration) -> UInt64 {
    let sum = now().addingReportingOverflow(nanoseconds(duration))
    return sum.overflow ? .max : sum.partialValue
  }

  /// Seconds since 1970.
  @inline(__always)
  package static func wall() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  /// A duration as nanoseconds; negative ones are nothing, ones beyond 500 years are for ever.
  package static func nanoseconds(_ duration: Duration) -> UInt64 {
    let nanoseconds = duration.attoseconds / 1_000_000_000
    guard nanoseconds > 0 else { return 0 }
    return nanoseconds < 16_000_000_000_000_000_000 ? UInt64(nanoseconds) : .max
  }
}
