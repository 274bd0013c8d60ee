import Foundation
import Scorecard

/// The average numbers of operations of one request or message, or their limits.
struct RequestCounts: Codable {
  /// The counts of one run.
  struct Run {
    /// The number of requests or messages.
    var requests: Int
    var counts: [String: Int]?
  }

  /// The name of the row.
  var row: String
  var client: Client
  var concurrency: Int
  /// Allocated blocks of memory.
  var allocations: Double
  /// Blocks and functions handed to a dispatch queue.
  var dispatches: Double
  /// Jobs for the threads of Swift or for the main thread, and wake-ups of the event loop.
  var threadHops: Double
  /// System calls, the futexes of libdispatch among them.
  var systemCalls: Double

  private enum CodingKeys: String, CodingKey {
    case row
    case client
    case concurrency
    case allocations
    case dispatches
    case threadHops = "thread_hops"
    case systemCalls = "system_calls"
  }

  /// The four counts with their names.
  static let kinds: [(name: String, value: any KeyPath<RequestCounts, Double> & Sendable)] = [
    ("allocations", \.allocations), ("dispatches", \.dispatches), ("thread hops", \.threadHops),
    ("system calls", \.systemCalls),
  ]

  /// Takes the medians of some runs. Of system calls it takes the minimum, because a disturbed loop makes more of
  /// them and never fewer.
  init(_ row: String, _ client: Client, concurrency: Int, runs: [Run]) {
    func perRequest(_ names: String...) -> [Double] {
      runs.map { run in
        Double(names.reduce(0) { $0 + (run.counts?[$1] ?? 0) }) / Double(run.requests)
      }
    }
    self.row = row
    self.client = client
    self.concurrency = concurrency
    allocations = perRequest("allocations").median.rounded(toDigits: 2)
    dispatches = perRequest("dispatches").median.rounded(toDigits: 2)
    threadHops = perRequest("global_jobs", "main_jobs", "loop_wakeups").median.rounded(toDigits: 2)
    systemCalls = (perRequest("system_calls", "futexes").min() ?? 0).rounded(toDigits: 2)
  }

  /// Returns whether two values belong to the same kind of request.
  func matches(_ other: RequestCounts) -> Bool {
    row == other.row && client == other.client && concurrency == other.concurrency
  }

  /// The limit, which allows for variation by the scheduler. The scheduler does not affect calls of libdispatch.
  var limit: RequestCounts {
    func limit(_ value: Double, _ share: Double, _ more: Double) -> Double {
      (value * (1 + share) + more).rounded(toDigits: 1)
    }
    var limits = self
    limits.allocations = limit(allocations, 0.05, 1)
    limits.dispatches = limit(dispatches, 0, 0.1)
    limits.threadHops = limit(threadHops, 0.05, 0.1)
    limits.systemCalls = limit(systemCalls, 0.05, 0.1)
    return limits
  }
}
