import Foundation

/// The resources that this process uses.
struct ProcessFigures: Codable {
  /// Resident memory in KiB.
  let memory: Int
  let threads: Int
  let descriptors: Int

  init() throws {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    func number(_ name: String) -> Int {
      let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
      return line?.split { !$0.isNumber }.first.flatMap { Int($0) } ?? -1
    }
    memory = number("VmRSS")
    threads = number("Threads")
    descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
  }

  /// Returns the figures as soon as they satisfy a condition, or ten seconds later. They are polled, because the kernel
  /// does not report the end of a thread.
  static func settled(_ isSettled: (ProcessFigures) -> Bool) async throws -> ProcessFigures {
    let end = ContinuousClock.now + .seconds(10)
    var figures = try ProcessFigures()
    while !isSettled(figures), ContinuousClock.now < end {
      try await Task.sleep(for: .milliseconds(100))
      figures = try ProcessFigures()
    }
    return figures
  }

  /// The processor time of all threads.
  static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
