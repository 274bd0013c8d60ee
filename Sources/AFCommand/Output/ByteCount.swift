extension Int64 {
  /// Makes a whole number of one that is computed, towards zero. What is no number is 0, and one beyond the range is
  /// the nearest within.
  init(clamping value: Double) {
    if value.isNaN {
      self = 0
    } else {
      self = Int64(exactly: value.rounded(.towardZero)) ?? (value < 0 ? .min : .max)
    }
  }
}

/// Sizes and times as people read them.
enum ByteCount {
  /// Returns a text such as `512 B`, `1.5 kB` or `12 MB`, in steps of a thousand and with two digits at least.
  static func text(_ count: Int64) -> String {
    guard count >= 1000 else { return "\(count) B" }
    var value = Double(count)
    for unit in ["kB", "MB", "GB"] {
      value /= 1000
      // 999.95 would be written as 1000.0.
      if value < 999.5 || unit == "GB" { return "\(digits(value)) \(unit)" }
    }
    return "\(count) B"
  }

  private static func digits(_ value: Double) -> String {
    let tenths = Int64(clamping: (value * 10).rounded())
    return tenths < 100 ? "\(tenths / 10).\(tenths % 10)" : "\(Int64(clamping: value.rounded()))"
  }
}

/// A time in milliseconds as people read it.
enum Milliseconds {
  /// Returns a text such as `0.4 ms`, `12.3 ms` or `1.25 s`.
  static func text(_ milliseconds: Double) -> String {
    guard milliseconds < 999.95 else {
      let hundredths = Int64(clamping: (milliseconds / 10).rounded())
      let fraction = hundredths % 100
      return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction) s"
    }
    let tenths = Int64(clamping: (milliseconds * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) ms"
  }
}
