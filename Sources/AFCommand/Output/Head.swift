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

  /// Returns the lines of the head, each with its end, without the empty line after them.
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
  /// Makes the head of a response, with its fields as received.
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
}

extension Head {
  /// Makes the head of a request that is not sent, with its secrets masked.
  ///
  /// - Parameters:
  ///   - common:   The fields that the session adds.
  ///   - repeated: Further values of fields, which are separate fields.
  init(_ request: URLRequest, common: HTTPHeaders, repeated: [HTTPHeader] = [], bodyLength: Int?) {
    let url = request.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: false) }
    let path = url.map { $0.percentEncodedPath.isEmpty ? "/" : $0.percentEncodedPath } ?? "/"
    let query = url?.percentEncodedQuery.map { "?" + $0 } ?? ""
    let host = (url?.encodedHost ?? "") + (url?.port.map { ":\($0)" } ?? "")
    var headers = common
    for header in request.headers { headers.update(header) }
    if headers["Authorization"] == nil, url?.user != nil {
      headers.add(name: "Authorization", value: "Basic <redacted>")
    }
    if headers["Host"] == nil { headers.add(name: "Host", value: host) }
    if headers["Accept"] == nil { headers.add(name: "Accept", value: "*/*") }
    if let bodyLength { headers.update(name: "Content-Length", value: "\(bodyLength)") }
    self.init(
      start: .request(
        method: request.httpMethod ?? "GET", target: Redaction.standard.url(path + query)),
      version: "HTTP/1.1",
      fields: (headers.sorted() + repeated).map {
        ($0.name, Redaction.standard.value($0.value, ofHeaderField: $0.name))
      })
  }
}

/// The heads of a request as they are sent and received, of all hops and attempts.
final class HopLog: Sendable {
  /// A request that was sent, and the head of its response.
  struct Hop: Sendable {
    var request: Head
    var hasBody = false
    var response: Head?
  }

  private let entries: EntryList
  /// The monitor of the request.
  let log: WireLog

  private final class EntryList: Sendable {
    /// The entries of the wire log. The log's queue adds them, and the main thread reads them.
    let values = Mutex<[WireLog.Entry]>([])
  }

  init() {
    let entries = EntryList()
    self.entries = entries
    // The pieces of bodies are not stored, because there can be any number of them.
    log = WireLog { entry in
      if entry.part == .responseBody { return }
      entries.values.withLock { entries in
        if entry.part == .requestBody, entry.byteCount == 0 || entries.last?.part == .requestBody { return }
        entries.append(entry)
      }
    }
  }

  /// The number of entries that are stored.
  var count: Int {
    log.queue.sync {}
    return entries.values.withLock { $0.count }
  }

  /// The hops so far. Informational responses and trailers are left out.
  var hops: [Hop] {
    // The entries of a response are created before its head is delivered, but on the queue of the log.
    log.queue.sync {}
    return Self.hops(entries.values.withLock { $0 })
  }

  /// Returns the heads of the hops since the last call, an empty line after each.
  ///
  /// - Parameter hasRequests: Whether the heads of requests are among them.
  func takeText(_ palette: Palette, hasRequests: Bool) -> String {
    log.queue.sync {}
    let new = entries.values.withLock { entries in
      defer { entries = [] }
      return entries
    }
    return Self.hops(new).flatMap { [hasRequests ? $0.request : nil, $0.response] }
      .compactMap { $0.map { $0.text(palette) + "\n" } }.joined()
  }

  private static func hops(_ entries: [WireLog.Entry]) -> [Hop] {
    var hops: [Hop] = []
    for entry in entries {
      switch entry.part {
      case .requestHead: if let head = Head(wire: entry.text) { hops.append(Hop(request: head)) }
      case .requestBody: if !hops.isEmpty { hops[hops.count - 1].hasBody = true }
      case .responseHead:
        guard let head = Head(wire: entry.text), !hops.isEmpty, !head.isInformational else { continue }
        hops[hops.count - 1].response = head
      case .responseBody: continue
      }
    }
    return hops
  }
}

extension Head {
  /// Reads a head; `nil` for trailers.
  init?(wire text: String) {
    // A value may have other line breaks of Unicode, which would be fields that the server did not send.
    let lines = text.utf8.split(separator: 0x0A).map { line in
      String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
    }
    guard let words = lines.first?.split(separator: " ", maxSplits: 2).map(String.init), words.count > 1
    else {
      return nil
    }
    let fields = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
      guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let value = line[line.utf8.index(after: colon)...]
      return (String(line[..<colon]), value.trimmingCharacters(in: CharacterSet(charactersIn: " \t")))
    }
    if words[0].hasPrefix("HTTP/"), let status = Int(words[1]) {
      self.init(start: .response(status: status), version: words[0], fields: fields)
    } else if words.count == 3, words[2].hasPrefix("HTTP/"), !words[0].contains(":") {
      self.init(start: .request(method: words[0], target: words[1]), version: words[2], fields: fields)
    } else {
      return nil
    }
  }

  /// The head with its secrets masked.
  var masked: Head {
    var head = self
    if case .request(let method, let target) = start {
      head.start = .request(method: method, target: Redaction.standard.url(target))
    }
    head.fields = fields.map { ($0.name, Redaction.standard.value($0.value, ofHeaderField: $0.name)) }
    return head
  }

  var isRedirect: Bool {
    if case .response(let status) = start { [301, 302, 303, 307, 308].contains(status) } else { false }
  }

  var isInformational: Bool {
    if case .response(let status) = start { (100..<200).contains(status) } else { false }
  }
}

/// The usual phrases of status codes (RFC 9110 §15). HTTP/2 sends none, so servers' phrases are not shown.
enum ReasonPhrase {
  private static let phrases: [Int: String] = [
    200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
    205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported",
    226: "IM Used",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
    408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
    413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
    416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a teapot", 421: "Misdirected Request",
    422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency", 425: "Too Early",
    426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
    507: "Insufficient Storage", 508: "Loop Detected", 511: "Network Authentication Required",
  ]

  static func of(_ status: Int) -> String? { phrases[status] }

  /// Returns the sentence about a status of failure.
  static func sentence(_ code: Int) -> String {
    "The server answered \(code)\(of(code).map { " \($0)" } ?? "")."
  }
}
