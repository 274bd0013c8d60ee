import Foundation

/// Reads the clocks of the measurement by system calls.
enum Clock {
  /// Returns the time since an arbitrary moment, in nanoseconds.
  static func monotonic() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Returns the processor time of this process, user and system, in nanoseconds.
  static func processor() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  private static func read(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// The memory of this process.
enum Memory {
  /// Returns the peak of resident memory, in megabytes. `ru_maxrss` is not used, because it includes the program that
  /// started this one.
  static func peakMegabytes() -> Double { megabytes("VmHWM") }

  /// Returns the free memory of the allocator to the system.
  static func trim() {
    // The overlay of Glibc does not import it.
    typealias Trim = @convention(c) (Int) -> CInt
    guard let function = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(function, to: Trim.self)(0)
  }

  /// Returns a value of `/proc/self/status` in megabytes. `VmRSS` is the resident memory now.
  static func megabytes(_ name: String) -> Double {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") } ?? ""
    let kilobytes = line.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }.first ?? 0
    return kilobytes / 1024
  }
}
