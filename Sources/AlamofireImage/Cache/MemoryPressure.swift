import Foundation

/// The question whether memory runs low, in the control group of the process or in the system.
final class MemoryPressure: Sendable {
  /// The content of the files.
  struct Reading: Equatable {
    /// Bytes in use and allowed, if the control group has a limit.
    var used: UInt64?
    var limit: UInt64?
    /// The share of the last ten seconds, in percent, in which all tasks waited for memory (PSI).
    var stall: Double?

    /// Less than a twentieth of the memory is free, or the system waits for memory a tenth of the time.
    var isLow: Bool {
      if let used, let limit, limit > 0, used >= limit - limit / 20 { return true }
      return (stall ?? 0) >= 10
    }
  }

  private let read: @Sendable () -> Reading
  private let now: @Sendable () -> ContinuousClock.Instant
  // A lock, because images are added from any thread.
  private let last = Mutex<(time: ContinuousClock.Instant, isLow: Bool)?>(nil)

  init(
    read: @escaping @Sendable () -> Reading = MemoryPressure.readFiles,
    now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.read = read
    self.now = now
  }

  /// Whether memory runs low. The files are read once per second at most.
  func isLow() -> Bool {
    let time = now()
    if let known = last.withLock({ $0 }), time - known.time < .seconds(1) { return known.isLow }
    let isLow = read().isLow
    last.withLock { $0 = (time, isLow) }
    return isLow
  }

  /// Reads the files of the control group (version 2) and of the pressure stall information.
  static func readFiles() -> Reading {
    reading { path in
      FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Takes the numbers from the texts of files, each of which may be missing.
  static func reading(_ text: (_ path: String) -> String?) -> Reading {
    let group = text("/proc/self/cgroup").flatMap(groupPath) ?? ""
    let folder = "/sys/fs/cgroup" + group
    return Reading(
      used: text(folder + "/memory.current").flatMap(number).map { total in
        // Files that were read and can be dropped at any time.
        total - min(total, text(folder + "/memory.stat").flatMap { field("inactive_file", $0) } ?? 0)
      },
      limit: text(folder + "/memory.max").flatMap(number),
      stall: text("/proc/pressure/memory").flatMap(stall))
  }

  /// Finds the path of the group of the process in `/proc/self/cgroup`.
  static func groupPath(_ text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix("0::/") }.map { String($0.dropFirst(3)) }
      .flatMap { $0 == "/" ? "" : $0 }
  }

  /// Reads a file that contains only a number; `max` is not a number.
  static func number(_ text: String) -> UInt64? {
    UInt64(text.trimmingCharacters(in: .whitespacesAndNewlines))
  }

  /// Reads a line with a name and a number.
  static func field(_ name: String, _ text: String) -> UInt64? {
    text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap {
      UInt64($0.dropFirst(name.count + 1))
    }
  }

  /// Reads `avg10` in the line `full`.
  static func stall(_ text: String) -> Double? {
    text.split(separator: "\n").first { $0.hasPrefix("full ") }?.split(separator: " ")
      .first { $0.hasPrefix("avg10=") }.flatMap { Double($0.dropFirst(6)) }
  }
}
