extension Duration {
  /// The whole nanoseconds: 0 of a negative duration, and the largest number of one that is longer than 500 years.
  package var wholeNanoseconds: UInt64 {
    let nanoseconds = attoseconds / 1_000_000_000
    guard nanoseconds > 0 else { return 0 }
    return nanoseconds < 16_000_000_000_000_000_000 ? UInt64(nanoseconds) : .max
  }

  /// The whole milliseconds: 0 of a negative duration, and at most the largest number.
  package var wholeMilliseconds: Int64 {
    max(0, Int64(clamping: attoseconds / 1_000_000_000_000_000))
  }
}
