/// A time of the monotonic clock, by which requests end.
///
/// The compiler does not know the size of `ContinuousClock.Instant`, but of this type. Therefore values that contain a
/// time are copied at little cost.
package struct MonotonicTime: Hashable, Sendable {
  @usableFromInline package let nanoseconds: UInt64

  @inlinable package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  /// Returns the time after a duration, at most the end of the clock. A negative duration counts as none.
  package static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
    let sum = time.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
    return MonotonicTime(nanoseconds: sum.overflow ? .max : sum.partialValue)
  }

  /// Returns the duration until another time, which is negative if that time is earlier.
  package func duration(to other: MonotonicTime) -> Duration {
    let isLater = other >= self
    let distance = isLater ? other.nanoseconds - nanoseconds : nanoseconds - other.nanoseconds
    let duration = Duration.nanoseconds(Int64(clamping: distance))
    return isLater ? duration : .zero - duration
  }
}

extension MonotonicTime: Comparable {
  @inlinable package static func < (first: MonotonicTime, second: MonotonicTime) -> Bool {
    first.nanoseconds < second.nanoseconds
  }
}
