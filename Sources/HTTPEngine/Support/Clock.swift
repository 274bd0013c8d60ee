import CCurl
import Glibc
import HTTPWire

/// The two clocks of the engine: the monotonic clock for timeouts, and the calendar's.
package enum Clock {
  /// Returns the monotonic time in nanoseconds.
  @inline(__always)
  package static func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Returns the time after a duration, at most the end of the clock.
  package static func now(plus duration: Duration) -> UInt64 {
    let sum = now().addingReportingOverflow(nanoseconds(duration))
    return sum.overflow ? .max : sum.partialValue
  }

  /// Returns the seconds since 1970.
  @inline(__always)
  package static func wall() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  /// Returns a duration in nanoseconds: 0 if it is negative, and the maximum if it is longer than 500 years.
  package static func nanoseconds(_ duration: Duration) -> UInt64 {
    let nanoseconds = duration.attoseconds / 1_000_000_000
    guard nanoseconds > 0 else { return 0 }
    return nanoseconds < 16_000_000_000_000_000_000 ? UInt64(nanoseconds) : .max
  }
}

/// The lock of this module; see ``TrackedMutex``.
typealias Mutex = TrackedMutex
