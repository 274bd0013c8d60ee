import Alamofire
import Foundation

/// The phases of a request: for every hop a line a phase, with a bar that begins and ends where the phase did.
package struct TimingTable: Equatable, Sendable {
  /// A phase; milliseconds since the start of the first hop.
  package struct TimingPhase: Equatable, Sendable {
    package let name: String
    package let start: Double
    package let end: Double

    package init(_ name: String, from start: Double, to end: Double) {
      self.name = name
      self.start = start
      self.end = end
    }
  }

  /// One request over the wire.
  package struct Hop: Equatable, Sendable {
    package let title: String
    package let details: [String]
    package let phases: [TimingPhase]

    package init(title: String, details: [String], phases: [TimingPhase]) {
      self.title = title
      self.details = details
      self.phases = phases
    }
  }

  private static let nameWidth = 15
  private static let timeWidth = 9
  private static let widestBar = 60

  package let hops: [Hop]
  /// Milliseconds.
  package let total: Double

  package init(hops: [Hop], total: Double) {
    self.hops = hops
    self.total = total
  }

  /// Returns the lines of the table for a terminal of `width` columns; without bars if they do not fit.
  package func text(width: Int, palette: Palette) -> String {
    let barWidth = min(Self.widestBar, width - 2 - Self.nameWidth - Self.timeWidth - 3)
    var lines: [String] = []
    for hop in hops {
      lines.append(palette.paint(hop.title, .good))
      lines += hop.details.map { "  " + palette.paint($0, .faint) }
      for phase in hop.phases { lines.append(line(phase, barWidth: barWidth, palette)) }
    }
    lines.append("  " + Self.cells("total", total))
    return lines.map { $0 + "\n" }.joined()
  }

  private func line(_ phase: TimingPhase, barWidth: Int, _ palette: Palette) -> String {
    let cells = "  " + Self.cells(phase.name, phase.end - phase.start)
    guard barWidth >= 8, total > 0 else { return cells }
    let scale = Double(barWidth) / total
    let first = max(0, min(barWidth - 1, Int(Int64(clamping: phase.start * scale))))
    let last = max(first + 1, min(barWidth, Int(Int64(clamping: (phase.end * scale).rounded()))))
    let bar = String(repeating: "█", count: last - first)
    return cells + "  " + String(repeating: " ", count: first) + palette.paint(bar, .name)
  }

  private static func cells(_ name: String, _ time: Double) -> String {
    let time = Milliseconds.text(time)
    return name + String(repeating: " ", count: max(1, nameWidth - name.count))
      + String(repeating: " ", count: max(0, timeWidth - time.count)) + time
  }
}

extension TimingTable {
  /// Makes the table of the metrics of a request.
  init(_ metrics: TaskMetrics) {
    let origin = metrics.taskInterval.start
    self.init(
      hops: metrics.transactionMetrics.map { Hop($0, origin: origin) },
      total: metrics.taskInterval.duration * 1000)
  }
}

extension TimingTable.Hop {
  fileprivate init(_ transaction: TransactionMetrics, origin: Date) {
    let status = (transaction.response as? HTTPURLResponse).map { "\($0.statusCode)" } ?? "no response"
    let request = transaction.request
    func phase(_ name: String, _ start: Date?, _ end: Date?) -> TimingTable.TimingPhase? {
      guard let start, let end else { return nil }
      return TimingTable.TimingPhase(
        name, from: start.timeIntervalSince(origin) * 1000, to: end.timeIntervalSince(origin) * 1000)
    }
    let connectionEnd = transaction.secureConnectionStartDate ?? transaction.connectEndDate
    self.init(
      title:
        ReadableText.line(
          "\(request.httpMethod ?? "GET") \(Redaction.standard.url(request.url?.absoluteString ?? ""))")
        + " → \(status)",
      details: Self.details(transaction),
      phases: [
        phase("look-up", transaction.domainLookupStartDate, transaction.domainLookupEndDate),
        phase("connection", transaction.connectStartDate, connectionEnd),
        phase("TLS handshake", transaction.secureConnectionStartDate, transaction.secureConnectionEndDate),
        // A response can come before all of the request is sent.
        phase(
          "request", transaction.requestStartDate,
          transaction.requestEndDate ?? transaction.responseStartDate),
        phase("waiting", transaction.requestEndDate, transaction.responseStartDate),
        phase("response", transaction.responseStartDate, transaction.responseEndDate),
      ].compactMap { $0 })
  }

  private static func details(_ transaction: TransactionMetrics) -> [String] {
    var connection = [Head.version(transaction)]
    if let address = transaction.remoteAddress {
      connection.append("\(address)" + (transaction.remotePort.map { " port \($0)" } ?? ""))
    }
    if let version = transaction.negotiatedTLSProtocolVersion { connection.append(version.description) }
    if transaction.isProxyConnection { connection.append("through a proxy") }
    if transaction.isReusedConnection { connection.append("connection used again") }
    let sent = transaction.countOfRequestHeaderBytesSent + transaction.countOfRequestBodyBytesSent
    let received =
      transaction.countOfResponseHeaderBytesReceived + transaction.countOfResponseBodyBytesReceived
    return [
      connection.joined(separator: ", "),
      "\(ByteCount.text(sent)) sent, \(ByteCount.text(received)) received",
    ]
  }
}
