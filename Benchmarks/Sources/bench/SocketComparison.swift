import Foundation
import Scorecard

/// Compares WebSocket connections with plain sockets in C.
struct SocketComparison {
  let harness: SocketHarness
  let rounds: Int

  /// Prints each row when it is done, and returns all results.
  func perform(_ rows: [SocketRow]) throws -> [SocketResult] {
    Console.say(SocketResult.header)
    return try rows.flatMap { row in
      var runs: [Client: [SocketFigures]] = [:]
      for _ in 0..<rounds {
        for client in [Client.floor, .alamofire] {
          runs[client, default: []].append(try harness.run(client, row, row.work))
        }
      }
      let results = [Client.floor, .alamofire].map { client in
        SocketResult(row, client, runs: runs[client] ?? [], floors: runs[.floor] ?? [])
      }
      results.forEach { Console.say($0.line) }
      Console.say()
      return results
    }
  }
}

/// One client with one row of WebSocket connections: the medians of all rounds.
struct SocketResult: Encodable {
  var row: SocketRow
  var client: Client
  var messages: Int
  var cpuMicroseconds: Double
  var messagesPerSecond: Double
  /// Processor time as a multiple of the floor's: the median of the ratios of all rounds.
  var ratioToFloor: Double
  var idleMegabytes: Double
  var peakMegabytes: Double
  /// The peak of memory, without what the client held before the messages.
  var aboveIdleMegabytes: Double

  /// Computes the medians of the runs of a client.
  ///
  /// - Parameters:
  ///   - runs:   Of one client, one for each round.
  ///   - floors: Of the floor, of the same rounds.
  init(_ row: SocketRow, _ client: Client, runs: [SocketFigures], floors: [SocketFigures]) {
    self.row = row
    self.client = client
    func median(_ value: (SocketFigures) -> Double) -> Double { runs.map(value).median }
    messages = runs.first?.messages ?? 0
    cpuMicroseconds = median { $0.cpuSeconds * 1e6 / Double($0.messages) }.rounded(toDigits: 2)
    messagesPerSecond = median { Double($0.messages) / $0.seconds }.rounded(toDigits: 0)
    ratioToFloor = zip(runs, floors).map { $0.cpuSeconds / max($1.cpuSeconds, .leastNonzeroMagnitude) }
      .median.rounded(toDigits: 2)
    idleMegabytes = median(\.idleMegabytes).rounded(toDigits: 1)
    peakMegabytes = median(\.peakMegabytes).rounded(toDigits: 1)
    aboveIdleMegabytes = median { $0.peakMegabytes - $0.idleMegabytes }.rounded(toDigits: 1)
  }

  static let header = line([
    "client", "row", "number", "cpu us", "per s", "ratio", "idle MB", "peak MB", "above",
  ])

  /// The result as a line of text for the terminal.
  var line: String {
    Self.line([
      client.rawValue, row.rawValue, "\(messages)", "\(cpuMicroseconds)",
      String(format: "%.0f", messagesPerSecond), "\(ratioToFloor)", "\(idleMegabytes)", "\(peakMegabytes)",
      "\(aboveIdleMegabytes)",
    ])
  }

  private static func line(_ cells: [String]) -> String { cells.aligned(names: [10, 20], numbers: 9) }

  private enum CodingKeys: String, CodingKey {
    case row
    case client
    case messages
    case cpuMicroseconds = "cpu_us_per_message"
    case messagesPerSecond = "messages_per_second"
    case ratioToFloor = "ratio_to_floor"
    case idleMegabytes = "idle_rss_mb"
    case peakMegabytes = "peak_rss_mb"
    case aboveIdleMegabytes = "above_idle_mb"
  }
}
