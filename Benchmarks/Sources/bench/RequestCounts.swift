import Foundation
import Scorecard

/// The counts of one request on average, or their limits.
struct RequestCounts: Codable {
  var row: Row
  var client: Client
  var concurrency: Int
  /// Blocks of memory asked for.
  var allocations: Double
  /// Blocks and functions handed to a dispatch queue.
  var dispatches: Double
  /// Jobs handed to Swift's pool or main thread, and wake-ups of the event loop.
  var crossings: Double
  /// Calls into the kernel, futexes of libdispatch among them; in a limit, those beyond the floor's.
  var systemCalls: Double

  private enum CodingKeys: String, CodingKey {
    case row
    case client
    case concurrency
    case allocations
    case dispatches
    case crossings
    case systemCalls = "system_calls_beyond_floor"
  }

  /// The four counts with their names.
  static let kinds: [(name: String, value: any KeyPath<RequestCounts, Double> & Sendable)] = [
    ("allocations", \.allocations), ("dispatches", \.dispatches), ("crossings", \.crossings),
    ("system calls", \.systemCalls),
  ]

  /// The medians of some runs; of the system calls the fewest, since a loop that is disturbed asks the
  /// kernel more often, and never less.
  init(_ contender: Plan.Contender, concurrency: Int, runs: [RunFigures]) {
    func perRequest(_ names: String...) -> [Double] {
      runs.map { run in
        Double(names.reduce(0) { $0 + (run.counts?[$1] ?? 0) }) / Double(run.requests)
      }
    }
    row = contender.row
    client = contender.client
    self.concurrency = concurrency
    allocations = perRequest("allocations").median.rounded(toDigits: 2)
    dispatches = perRequest("dispatches").median.rounded(toDigits: 2)
    crossings = perRequest("global_jobs", "main_jobs", "loop_wakeups").median.rounded(toDigits: 2)
    systemCalls = (perRequest("system_calls", "futexes").min() ?? 0).rounded(toDigits: 2)
  }

  /// Whether two values speak of the same requests.
  func matches(_ other: RequestCounts) -> Bool {
    row == other.row && client == other.client && concurrency == other.concurrency
  }

  /// Returns the limit for runs in which the floor makes so many system calls.
  func withSystemCalls(above floor: Double) -> RequestCounts {
    var limit = self
    limit.systemCalls = (systemCalls + floor).rounded(toDigits: 2)
    return limit
  }

  /// Returns the limit that these counts suggest, with some room for the scheduler. It has most influence on the number of
  /// system calls, and none on what is asked of libdispatch.
  func limit(above floor: Double) -> RequestCounts {
    func limit(_ value: Double, _ share: Double, _ more: Double) -> Double {
      (value * (1 + share) + more).rounded(toDigits: 1)
    }
    var limits = self
    limits.allocations = limit(allocations, 0.05, 1)
    limits.dispatches = limit(dispatches, 0, 0.1)
    limits.crossings = limit(crossings, 0.05, 0.1)
    limits.systemCalls = limit(systemCalls - floor, 0, 0.8)
    return limits
  }
}
