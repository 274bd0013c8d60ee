import Foundation
import Scorecard

/// Formats the results as a table for the terminal.
enum Table {
  private static let widths = [8, 5, 10, 14, 8, 8, 9, 9, 7, 7, 6]

  static let header = line([
    "protocol", "conc", "client", "row", "cpu us", "rps", "p50 us", "p99 us", "MB", "ratio", "conns",
  ])

  /// Returns a line. An exclamation mark follows a number of connections above the concurrency, unless each request
  /// needs its own.
  static func line(_ result: BenchResult) -> String {
    let isMore = result.connections > result.concurrency && !result.row.isHandshake
    let connections = String(result.connections) + (isMore ? "!" : "")
    return line([
      result.wire.rawValue, String(result.concurrency), result.client.rawValue, result.row.rawValue,
      number(result.cpuMicroseconds, digits: 1), number(result.requestsPerSecond, digits: 0),
      number(result.medianMicroseconds, digits: 0), number(result.p99Microseconds, digits: 0),
      number(result.peakMegabytes, digits: 1), result.ratioToFloor.map { number($0, digits: 2) } ?? "",
      connections,
    ])
  }

  /// Returns a line with names aligned left and numbers aligned right.
  private static func line(_ cells: [String]) -> String {
    zip(cells, widths).enumerated().map { place, cell in
      [0, 2, 3].contains(place) ? cell.0.rightPadded(to: cell.1) : cell.0.leftPadded(to: cell.1)
    }.joined(separator: " ")
  }

  private static func number(_ value: Double, digits: Int) -> String {
    String(format: "%.\(digits)f", value)
  }
}
