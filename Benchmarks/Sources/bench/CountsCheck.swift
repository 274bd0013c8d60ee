import Foundation
import Scorecard

/// Counts the operations of a request, and compares them with the limits of `Thresholds/counts.json`. Counts depend
/// little on the load of the machine, so they can fail a build where times cannot. The limit of system calls
/// is the number beyond those of the floor in the same run.
struct CountsCheck {
  /// Runs clients with the counting library preloaded and with all cores. On one core, a thread that is woken replaces
  /// the one that woke it, so that the loop would rarely be found asleep.
  let harness: Harness
  let thresholds: URL

  private static let requests = 2000
  private static let runs = 5

  /// Prints the counts of the floor and of this package.
  ///
  /// - Returns: Whether no limit is exceeded, and none is missing.
  func perform() throws -> Bool {
    let limits = try JSONDecoder().decode([RequestCounts].self, from: Data(contentsOf: thresholds))
    Console.say(Self.header)
    let contenders =
      [Plan.Contender(client: .floor, row: .getData)]
      + Row.allCases.map { Plan.Contender(client: .alamofire, row: $0) }
    var ours: [RequestCounts] = []
    var isWithin = true
    for concurrency in [1, 64] {
      var floor = 0.0
      for contender in contenders {
        let counts = try count(contender, concurrency: concurrency)
        // The number of system calls of a loop depends on the machine, for bare libcurl as well.
        if contender.client == .floor { floor = counts.systemCalls }
        let limit = limits.first(where: counts.matches)?.withSystemCalls(above: floor)
        Console.say(Self.line(counts, limit))
        guard contender.client == .alamofire else { continue }
        ours.append(counts.limit(above: floor))
        isWithin = isWithin && Self.isWithin(counts, limit)
      }
    }
    if !isWithin {
      Console.say(
        "\nA limit is exceeded or missing. If that is meant, \(thresholds.lastPathComponent) becomes:\n")
      Console.say(try Self.json(ours))
    }
    return isWithin
  }

  private func count(_ contender: Plan.Contender, concurrency: Int) throws -> RequestCounts {
    var harness = harness
    harness.pause = concurrency == 1 ? 300 : nil
    let runs = try (0..<Self.runs).map { _ in
      try harness.run(contender, over: .http1, concurrency: concurrency, requests: Self.requests).figures
    }
    guard runs.allSatisfy({ $0.counts != nil }) else {
      throw CommandFailure(
        description: "nothing was counted; is \(harness.preload ?? "the library") preloaded?")
    }
    return RequestCounts(contender, concurrency: concurrency, runs: runs)
  }

  static func isWithin(_ counts: RequestCounts, _ limit: RequestCounts?) -> Bool {
    guard let limit else { return false }
    return RequestCounts.kinds.allSatisfy { counts[keyPath: $0.value] <= limit[keyPath: $0.value] }
  }

  private static func json(_ limits: [RequestCounts]) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return String(decoding: try encoder.encode(limits), as: UTF8.self)
  }

  private static let header =
    "per request, and the limit\nconc client    row           "
    + RequestCounts.kinds.map { $0.name.leftPadded(to: 19) }.joined()

  /// Returns a line of text, with an exclamation mark behind each count that exceeds its limit.
  private static func line(_ counts: RequestCounts, _ limit: RequestCounts?) -> String {
    let cells = RequestCounts.kinds.map { kind in
      let value = counts[keyPath: kind.value]
      guard let most = limit?[keyPath: kind.value] else { return "\(value)".leftPadded(to: 19) }
      return "\(value) (\(most))\(value > most ? "!" : " ")".leftPadded(to: 19)
    }
    let name = "\(counts.concurrency)".leftPadded(to: 4) + " " + counts.client.rawValue.rightPadded(to: 10)
    return name + counts.row.rawValue.rightPadded(to: 14) + cells.joined()
  }
}
