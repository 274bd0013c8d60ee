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

  /// The processor time of all threads.
  static var processorTime: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
