import Foundation
import Scorecard

/// Measures the memory of requests in flight and of idle connections.
struct HeldComparison {
  let server: Server
  let core: Int?
  let client: String

  /// Prints each row when it is done, and returns all results.
  func perform(_ rows: [HeldRow], rounds: Int) throws -> [HeldResult] {
    Console.say(HeldResult.header)
    let results = try rows.map { row in
      var runs: [HeldFigures] = []
      var connections = 0
      for _ in 0..<rounds {
        runs.append(try run(row))
        connections = max(connections, try server.openings().count)
      }
      let result = HeldResult(row, connections: connections, runs: runs)
      Console.say(result.line)
      return result
    }
    Console.say()
    return results
  }

  private func run(_ row: HeldRow) throws -> HeldFigures {
    let listener = row == .secured ? Listener.https1 : .http1
    let words = [
      client, "held", "--row", row.rawValue, "--url", server.url(listener, path: "/held"),
      "--warmup-url", server.url(listener, path: "/item"), "--ca", server.authority,
    ]
    let output = try Command(words: words, environment: [:], core: core).run()
    return try JSONDecoder().decode(HeldFigures.self, from: output)
  }
}

/// The memory of one row: the medians of all rounds.
struct HeldResult: Encodable {
  var row: HeldRow
  var requests: Int
  /// The largest number of connections of a run, as the server counted them.
  var connections: Int
  /// The memory of a request in flight, with its connection.
  var requestKilobytes: Double
  /// The memory of an idle connection; `nil` if the requests had to wait for few connections.
  var connectionKilobytes: Double?

  init(_ row: HeldRow, connections: Int, runs: [HeldFigures]) {
    self.row = row
    self.connections = connections
    requests = row.requests
    requestKilobytes = runs.map { ($0.peakMegabytes - $0.idleMegabytes) * 1024 / Double(row.requests) }
      .median.rounded(toDigits: 1)
    let held = runs.map { ($0.heldMegabytes - $0.idleMegabytes) * 1024 / Double(max(1, connections)) }
    connectionKilobytes = row == .queued ? nil : held.median.rounded(toDigits: 1)
  }

  static let header = line(["row", "requests", "conns", "KB each", "KB idle"])

  /// The result as a line of text for the terminal.
  var line: String {
    Self.line([
      row.rawValue, "\(requests)", "\(connections)", "\(requestKilobytes)",
      connectionKilobytes.map { "\($0)" } ?? "",
    ])
  }

  private static func line(_ cells: [String]) -> String { cells.aligned(names: [20], numbers: 9) }

  private enum CodingKeys: String, CodingKey {
    case row
    case requests
    case connections
    case requestKilobytes = "kb_per_request"
    case connectionKilobytes = "kb_per_idle_connection"
  }
}
