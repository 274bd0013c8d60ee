import Foundation

/// The clocks of the measurement, read without a detour.
enum Clock {
  /// Nanoseconds that passed.
  static func monotonic() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Nanoseconds that the threads of this process spent, in the program and in the kernel.
  static func processor() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  private static func read(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// The memory of this process.
enum Memory {
  /// The high-water mark of the program itself, in megabytes; `ru_maxrss` would count the program that
  /// started it, too.
  static func peakMegabytes() -> Double { megabytes("VmHWM") }

  /// An amount that the kernel gives under this name (proc(5)), in megabytes: `VmRSS` is what is held now.
  static func megabytes(_ name: String) -> Double {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") } ?? ""
    let kilobytes = line.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }.first ?? 0
    return kilobytes / 1024
  }
}
