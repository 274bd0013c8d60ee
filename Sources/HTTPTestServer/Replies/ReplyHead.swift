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
    // HTTP/1.0 knows no informational answers (RFC 9110 §15.2).
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
