import Alamofire
import Foundation

/// The head of a message: its first line and its fields.
package struct Head: Equatable, Sendable {
  package enum Start: Equatable, Sendable {
    case request(method: String, target: String)
    case response(status: Int)
  }

  package var start: Start
  /// `HTTP/1.1`, `HTTP/2`.
  package var version: String
  /// The fields in the order in which they are shown.
  package var fields: [(name: String, value: String)]

  package init(start: Start, version: String, fields: [(name: String, value: String)]) {
    self.start = start
    self.version = version
    self.fields = fields
  }

  package static func == (left: Head, right: Head) -> Bool {
    left.start == right.start && left.version == right.version
      && left.fields.elementsEqual(right.fields, by: ==)
  }

  /// Returns the lines of the head, each with its end, without the empty line behind them.
  package func text(_ palette: Palette) -> String {
    firstLine(palette) + "\n" + Self.lines(of: fields, palette)
  }

  /// Returns the lines of fields, each with its end.
  static func lines(of fields: [(name: String, value: String)], _ palette: Palette) -> String {
    fields.map { name, value in
      "\(palette.paint(ReadableText.line(name), .name)): \(ReadableText.line(value))\n"
    }.joined()
  }

  private func firstLine(_ palette: Palette) -> String {
    switch start {
    case .request(let method, let target):
      return
        "\(palette.paint(ReadableText.line(method), .good)) \(ReadableText.line(target)) \(palette.paint(ReadableText.line(version), .faint))"
    case .response(let status):
      let phrase = ReasonPhrase.of(status).map { "\(status) \($0)" } ?? "\(status)"
      return
        "\(palette.paint(ReadableText.line(version), .faint)) \(palette.paint(phrase, Self.style(of: status)))"
    }
  }

  private static func style(of status: Int) -> Palette.Style {
    switch status {
    case ..<300: .good
    case 300..<400: .notice
    default: .bad
    }
  }
}

extension Head {
  /// Makes the head of a request as it was sent, with its secrets masked.
  init(_ transaction: TransactionMetrics) {
    if let sent = transaction.requestHead.flatMap({ Head(wire: $0) }) {
      self = sent.masked
      return
    }
    let url = transaction.request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: false) }
    let path = url.map { $0.percentEncodedPath.isEmpty ? "/" : $0.percentEncodedPath } ?? "/"
    let query = url?.percentEncodedQuery.map { "?" + $0 } ?? ""
    let host = (url?.encodedHost ?? "") + (url?.port.map { ":\($0)" } ?? "")
    var fields = Self.sorted(transaction.request.allHTTPHeaderFields ?? [:])
    if !fields.contains(where: { $0.name.lowercased() == "host" }) { fields.insert(("Host", host), at: 0) }
    self.init(
      start: .request(
        method: transaction.request.httpMethod ?? "GET", target: Redaction.standard.url(path + query)),
      version: Self.version(transaction),
      fields: fields.map { ($0.name, Redaction.standard.value($0.value, ofHeaderField: $0.name)) })
  }

  /// Makes the head of a response, with its fields as they came.
  ///
  /// - Parameter version: The version for a response that does not know its own.
  init(_ response: HTTPURLResponse, version: String = "HTTP/1.1") {
    self.init(
      start: .response(status: response.statusCode), version: response.af.httpVersion ?? version,
      fields: response.af.headerFields.map { ($0.name, $0.value) })
  }

  /// Returns the version as it is written in a start line; ALPN calls HTTP/2 `h2`.
  static func version(_ transaction: TransactionMetrics) -> String {
    switch transaction.networkProtocolName {
    case "h2": "HTTP/2"
    case "h3": "HTTP/3"
    case let name?: name.uppercased()
    case nil: "HTTP/1.1"
    }
  }

  private static func sorted(_ fields: [String: String]) -> [(name: String, value: String)] {
    fields.map { (name: $0.key, value: $0.value) }.sorted { $0.name.lowercased() < $1.name.lowercased() }
  }
}
