import Alamofire
import Foundation

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
    func phase(_ name: String, _ start: Date?, _ end: Date?) -> TimingTable.Phase? {
      guard let start, let end else { return nil }
      return TimingTable.Phase(
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
        phase("request", transaction.requestStartDate, transaction.requestEndDate),
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
