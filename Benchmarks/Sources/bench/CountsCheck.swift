import Foundation
import Scorecard

/// Counts the operations of a request, and compares them with the limits of `Thresholds/counts.json`. Counts depend
/// little on the load of the machine, so they can fail a build where times cannot.
struct CountsCheck {
  /// Runs clients with the counting library preloaded and with all cores. On one core, a thread that is woken replaces
  /// the one that woke it, so that the loop would rarely be found asleep.
  let harness: Harness
  let sockets: SocketHarness
  let thresholds: URL

  private static let requests = 2000
  private static let runs = 5
  /// The pause between two requests that are sent one after the other, in microseconds.
  private static let pause = 300

  /// A row with its counts for the floor and for this package.
  private struct Row {
    var floor: RequestCounts
    var ours: [RequestCounts]
  }

  /// Prints the counts of the floor and of this package.
  ///
  /// - Returns: Whether no limit is exceeded, and none is missing.
  func perform() throws -> Bool {
    let limits = try JSONDecoder().decode([RequestCounts].self, from: Data(contentsOf: thresholds))
    Console.say(Self.header)
    var found: [RequestCounts] = []
    var isWithin = true
    for concurrency in [1, 64] {
      for row in try requestCounts(concurrency) + socketCounts(concurrency) {
        Console.say(Self.line(row.floor, nil))
        for counts in row.ours {
          let limit = limits.first(where: counts.matches)
          Console.say(Self.line(counts, limit))
          found.append(counts.limit)
          isWithin = isWithin && Self.isWithin(counts, limit)
        }
      }
    }
    if !isWithin {
      Console.say(
        "\nA limit is exceeded or missing. If that is meant, \(thresholds.lastPathComponent) becomes:\n")
      Console.say(try Self.json(found))
    }
    return isWithin
  }

  private func requestCounts(_ concurrency: Int) throws -> [Row] {
    var harness = harness
    harness.pause = concurrency == 1 ? Self.pause : nil
    func count(
      _ client: Client, _ row: Scorecard.Row, over wire: WireProtocol = .http1
    ) throws -> RequestCounts {
      let runs = try (0..<Self.runs).map { _ in
        try harness.run(
          .init(client: client, row: row), over: wire, concurrency: concurrency, requests: Self.requests
        ).figures
      }
      let name = wire == .http1 ? row.rawValue : "\(row.rawValue) \(wire.rawValue)"
      return try counts(
        name, client, concurrency, runs.map { .init(requests: $0.requests, counts: $0.counts) })
    }
    var rows = [
      Row(
        floor: try count(.floor, .getData), ours: try Scorecard.Row.plain.map { try count(.alamofire, $0) })
    ]
    // One request after the other costs the same calls over each protocol.
    if concurrency > 1 {
      rows += try [.https1, .h2].map { wire in
        Row(
          floor: try count(.floor, .getData, over: wire),
          ours: [try count(.alamofire, .getData, over: wire)])
      }
    }
    return rows
  }

  private func socketCounts(_ concurrency: Int) throws -> [Row] {
    let row = concurrency == 1 ? SocketRow.echo : .echoes
    var work = row.work
    work.messages = Self.requests
    func count(_ client: Client) throws -> RequestCounts {
      let runs = try (0..<Self.runs).map { _ in
        try sockets.run(
          client, row, work, preload: harness.preload, pause: concurrency == 1 ? Self.pause : nil)
      }
      return try counts(
        row.rawValue, client, concurrency, runs.map { .init(requests: $0.messages, counts: $0.counts) })
    }
    return [Row(floor: try count(.floor), ours: [try count(.alamofire)])]
  }

  private func counts(
    _ row: String, _ client: Client, _ concurrency: Int, _ runs: [RequestCounts.Run]
  ) throws -> RequestCounts {
    guard runs.allSatisfy({ $0.counts != nil }) else {
      throw CommandFailure(
        description: "nothing was counted; is \(harness.preload ?? "the library") preloaded?")
    }
    return RequestCounts(row, client, concurrency: concurrency, runs: runs)
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
    "per request or message, and the limit\nconc client    row            "
    + RequestCounts.kinds.map { $0.name.leftPadded(to: 19) }.joined()

  /// Returns a line of text, with an exclamation mark after each count that exceeds its limit.
  private static func line(_ counts: RequestCounts, _ limit: RequestCounts?) -> String {
    let cells = RequestCounts.kinds.map { kind in
      let value = counts[keyPath: kind.value]
      guard let most = limit?[keyPath: kind.value] else { return "\(value)".leftPadded(to: 19) }
      return "\(value) (\(most))\(value > most ? "!" : " ")".leftPadded(to: 19)
    }
    let name = "\(counts.concurrency)".leftPadded(to: 4) + " " + counts.client.rawValue.rightPadded(to: 10)
    return name + counts.row.rightPadded(to: 15) + cells.joined()
  }
}
