import Scorecard

/// One line of the table and one object of `bench.json`: the medians of all rounds.
struct BenchResult: Encodable {
  var row: Row
  var client: Client
  var wire: WireProtocol
  var concurrency: Int
  var cpuMicroseconds: Double
  var requestsPerSecond: Double
  var medianMicroseconds: Double
  var p99Microseconds: Double
  var peakMegabytes: Double
  /// Processor time as a multiple of the floor's, or of `get-data` for everyday requests. It is the median of the
  /// ratios of all rounds, under the same protocol and concurrency.
  var ratioToFloor: Double?
  /// The largest number of connections that a run opened, as the server counted them.
  var connections: Int

  /// Computes the medians of the runs of a client.
  ///
  /// - Parameters:
  ///   - runs:   Of one client, one for each round.
  ///   - floors: Of the contender that the others are compared with, of the same rounds.
  init(_ contender: Plan.Contender, in cell: Plan.Cell, runs: [Harness.Run], floors: [Harness.Run]) {
    row = contender.row
    client = contender.client
    wire = cell.wire
    concurrency = cell.concurrency
    func median(_ value: (RunFigures) -> Double) -> Double { runs.map { value($0.figures) }.median }
    cpuMicroseconds = median(\.cpuMicroseconds).rounded(toDigits: 2)
    let ratios = zip(runs, floors).map { run, floor in
      run.figures.cpuMicroseconds / max(floor.figures.cpuMicroseconds, .leastNonzeroMagnitude)
    }
    ratioToFloor = ratios.isEmpty ? nil : ratios.median.rounded(toDigits: 2)
    requestsPerSecond = median { Double($0.requests) / $0.seconds }.rounded(toDigits: 0)
    medianMicroseconds = median(\.medianMicroseconds).rounded(toDigits: 1)
    p99Microseconds = median(\.p99Microseconds).rounded(toDigits: 1)
    peakMegabytes = median(\.peakMegabytes).rounded(toDigits: 1)
    connections = runs.map(\.connections).max() ?? 0
  }

  private enum CodingKeys: String, CodingKey {
    case row
    case client
    case wire = "protocol"
    case concurrency
    case cpuMicroseconds = "cpu_us_per_request"
    case requestsPerSecond = "requests_per_second"
    case medianMicroseconds = "p50_us"
    case p99Microseconds = "p99_us"
    case peakMegabytes = "peak_rss_mb"
    case ratioToFloor = "ratio_to_floor"
  }
}

extension RunFigures {
  /// The processor time of one request.
  fileprivate var cpuMicroseconds: Double { cpuSeconds * 1e6 / Double(requests) }
}
