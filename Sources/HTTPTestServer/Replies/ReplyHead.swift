import Glibc
import HTTPWire

/// The bytes of a reply's head, and the framing of its body.
struct ReplyHead: Sendable {
  /// The delimitation of the body, resolved from ``Reply/Framing-swift.enum``.
  enum Framing: Equatable {
    /// The reply has its own framing fields, or can have no body.
    case asGiven
    case length(Int)
    case chunked
    case untilClose
  }

  let framing: Framing
  /// Informational answers and the head itself, up to the empty line.
  let bytes: [UInt8]
  let sendsBody: Bool
  let keepsConnection: Bool

  init(_ reply: Reply, to question: ReplyPlan.Question) {
    let framing = Self.framing(of: reply, question)
    var headers = reply.headers
    switch framing {
    case .asGiven, .untilClose: break
    case .length(let length): headers.append(HTTPHeader(name: "Content-Length", value: "\(length)"))
    case .chunked: headers.append(HTTPHeader(name: "Transfer-Encoding", value: "chunked"))
    }
    let own = headers.first { FieldName.equal($0.name, "Connection") }?.value
    let keeps =
      question.keepsConnection && !reply.closesConnection && framing != .untilClose
      && !FieldName.equal(own ?? "", "close")
    if own == nil, !keeps {
      headers.append(HTTPHeader(name: "Connection", value: "close"))
    } else if own == nil, question.minorVersion == 0 {
      headers.append(HTTPHeader(name: "Connection", value: "keep-alive"))
    }
    self.framing = framing
    keepsConnection = keeps
    sendsBody = !question.isHead && !Self.isBodyless(reply.status)
    var bytes: [UInt8] = []
    // HTTP/1.0 does not have informational responses (RFC 9110 §15.2).
    for early in reply.informational where question.minorVersion > 0 {
      bytes += Self.head(status: early.status, reason: nil, headers: early.headers)
    }
    self.bytes = bytes + Self.head(status: reply.status, reason: reply.reason, headers: headers)
  }

  /// Whether answers of a status end with their head (RFC 9112 §6.3).
  private static func isBodyless(_ status: Int) -> Bool {
    (100..<200).contains(status) || status == 204 || status == 304
  }

  private static func framing(of reply: Reply, _ question: ReplyPlan.Question) -> Framing {
    let isGiven = reply.headers.contains {
      FieldName.equal($0.name, "Content-Length") || FieldName.equal($0.name, "Transfer-Encoding")
    }
    if isGiven || isBodyless(reply.status) { return .asGiven }
    if case .wrongLength(let claimed) = reply.effect { return .length(claimed) }
    let chunked = question.minorVersion == 0 ? Framing.untilClose : .chunked
    switch reply.framing {
    case .untilClose: return .untilClose
    case .contentLength: return .length(reply.body.length)
    case .chunked: return chunked
    case .automatic:
      if case .parts = reply.body { return chunked }
      return reply.trailers.isEmpty ? .length(reply.body.length) : chunked
    }
  }

  static func head(status: Int, reason: String?, headers: [HTTPHeader]) -> [UInt8] {
    let code = (0..<100).contains(status) ? "\(1000 + status)".suffix(3) : "\(status)"
    return Array("HTTP/1.1 \(code) \(reason ?? ReasonPhrase.of(status))\r\n".utf8) + lines(headers)
      + Array("\r\n".utf8)
  }

  static func lines(_ headers: [HTTPHeader]) -> [UInt8] {
    headers.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) }
  }
}

extension Reply.GarbageHead {
  /// The bytes up to where the body would start.
  var head: [UInt8] {
    let text =
      switch self {
      case .statusLine: "HTTP/1.1 abc OK\r\nContent-Length: 100\r\n\r\n"
      case .fieldWithoutColon: "HTTP/1.1 200 OK\r\nthis line has no colon\r\nContent-Length: 100\r\n\r\n"
      case .huge(let bytes):
        "HTTP/1.1 200 OK\r\nX-Huge: \(String(repeating: "x", count: max(0, bytes)))\r\n"
          + "Content-Length: 100\r\n\r\n"
      case .negativeLength: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"
      case .contradictingLengths: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Length: 50\r\n\r\n"
      case .lengthIsNoNumber: "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"
      case .endsEarly: "HTTP/1.1 200 OK\r\nContent-Le"
      }
    return Array(text.utf8)
  }
}

/// The usual reason phrases (RFC 9110 §15, RFC 6585).
enum ReasonPhrase {
  static func of(_ status: Int) -> String { phrases[status] ?? "Unknown" }

  private static let phrases: [Int: String] = [
    100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
    200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information",
    204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
    304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
    407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
    411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
    417: "Expectation Failed", 418: "I'm a teapot", 421: "Misdirected Request",
    422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency", 425: "Too Early",
    426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
    511: "Network Authentication Required",
  ]
}

/// Dates as header fields carry them (RFC 9110 §5.6.7).
enum HTTPDate {
  /// The present second.
  static var now: String { text(secondsSince1970: time(nil)) }

  static func text(secondsSince1970 seconds: Int) -> String {
    var seconds = seconds
    var parts = tm()
    gmtime_r(&seconds, &parts)
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(twoDigits).joined(separator: ":")
    return "\(days[Int(parts.tm_wday)]), \(twoDigits(parts.tm_mday)) \(months[Int(parts.tm_mon)]) "
      + "\(1900 + Int(parts.tm_year)) \(clock) GMT"
  }

  private static func twoDigits(_ number: Int32) -> String {
    number < 10 ? "0\(number)" : "\(number)"
  }
}
