import Scorecard

/// One client with one large body: the medians of all rounds.
struct BodyResult: Encodable {
  var row: BodyRow
  var client: Client
  var megabytes: Int
  var cpuSeconds: Double
  var seconds: Double
  /// Processor time as a multiple of the floor's: the median of the ratios of all rounds.
  var ratioToFloor: Double
  var idleMegabytes: Double
  var peakMegabytes: Double
  /// The peak of memory, without what the client held before the transfer.
  var aboveIdleMegabytes: Double

  /// Computes the medians of the runs of a client.
  ///
  /// - Parameters:
  ///   - runs:   Of one client, one for each round.
  ///   - floors: Of the floor, of the same rounds.
  init(_ row: BodyRow, _ client: Client, runs: [BodyFigures], floors: [BodyFigures]) {
    self.row = row
    self.client = client
    func median(_ value: (BodyFigures) -> Double) -> Double { runs.map(value).median }
    megabytes = (runs.first?.bytes ?? 0) / 1_000_000
    cpuSeconds = median(\.cpuSeconds).rounded(toDigits: 3)
    seconds = median(\.seconds).rounded(toDigits: 3)
    ratioToFloor = zip(runs, floors).map { $0.cpuSeconds / max($1.cpuSeconds, .leastNonzeroMagnitude) }
      .median.rounded(toDigits: 2)
    idleMegabytes = median(\.idleMegabytes).rounded(toDigits: 1)
    peakMegabytes = median(\.peakMegabytes).rounded(toDigits: 1)
    aboveIdleMegabytes = median { $0.peakMegabytes - $0.idleMegabytes }.rounded(toDigits: 1)
  }

  static let header = line(["client", "row", "MB", "cpu s", "s", "ratio", "idle MB", "peak MB", "above"])

  /// The result as a line of text for the terminal.
  var line: String {
    Self.line([
      client.rawValue, row.rawValue, "\(megabytes)", "\(cpuSeconds)", "\(seconds)", "\(ratioToFloor)",
      "\(idleMegabytes)", "\(peakMegabytes)", "\(aboveIdleMegabytes)",
    ])
  }

  private static func line(_ cells: [String]) -> String { cells.aligned(names: [14, 14], numbers: 8) }

  private enum CodingKeys: String, CodingKey {
    case row
    case client
    case megabytes = "body_mb"
    case cpuSeconds = "cpu_seconds"
    case seconds
    case ratioToFloor = "ratio_to_floor"
    case idleMegabytes = "idle_rss_mb"
    case peakMegabytes = "peak_rss_mb"
    case aboveIdleMegabytes = "above_idle_mb"
  }
}
