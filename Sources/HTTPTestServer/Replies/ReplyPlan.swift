import CZlib
import Glibc
import HTTPWire

/// The bytes and pauses that a connection sends for a reply, computed before the first byte is sent.
struct ReplyPlan: Sendable {
  private(set) var steps: [WireStep] = []
  private(set) var ending = ConnectionEnding.keepAlive

  /// The properties of a request that affect the reply.
  struct Question: Sendable {
    var isHead = false
    var minorVersion = 1
    var keepsConnection = true

    init(isHead: Bool = false, minorVersion: Int = 1, keepsConnection: Bool = true) {
      self.isHead = isHead
      self.minorVersion = minorVersion
      self.keepsConnection = keepsConnection
    }

    init(_ head: RequestHead) {
      self.init(
        isHead: head.method == "HEAD", minorVersion: head.minorVersion,
        keepsConnection: head.keepsConnection)
    }
  }

  init(_ reply: Reply, to question: Question) {
    switch reply.effect {
    case .stall: steps = [.stall]
    case .closeBeforeReply: ending = .close
    case .reset: ending = .reset
    case .garbage:
      steps = [.send(Array("\u{7}these bytes are no answer\n\u{0}\u{1}\u{2}\r\n\r\n".utf8))]
      ending = .close
    case .raw(let bytes, let closes):
      steps = [.send(bytes)]
      ending = closes ? .close : .keepAlive
    case .garbageHead(let kind):
      steps = [.send(kind == .endsEarly ? kind.head : kind.head + reply.body.collected())]
      ending = .close
    case .none, .stallAfterHead, .stallAfterBody, .resetAfterBody, .closeAfterBody, .cutAfterBody,
      .wrongLength, .slowDrip, .badChunk, .truncatedChunked, .badGzip, .truncatedGzip:
      planMessage(Self.prepared(reply), question)
    }
  }

  /// Puts the effects that are visible in the message itself into it.
  private static func prepared(_ reply: Reply) -> Reply {
    var reply = reply
    switch reply.effect {
    case .badGzip:
      reply.headers.append(.contentEncoding("gzip"))
    case .truncatedGzip:
      let coded = Compression.gzip(reply.body.collected())
      reply.headers.append(.contentEncoding("gzip"))
      reply.body = .bytes(Array(coded.prefix(coded.count / 2)))
    case .badChunk, .truncatedChunked:
      reply.framing = .chunked
    case .none, .stall, .stallAfterHead, .stallAfterBody, .closeBeforeReply, .reset, .resetAfterBody,
      .closeAfterBody, .cutAfterBody, .wrongLength, .slowDrip, .garbage, .garbageHead, .raw:
      break
    }
    return reply
  }

  private mutating func planMessage(_ reply: Reply, _ question: Question) {
    let head = ReplyHead(reply, to: question)
    ending = head.keepsConnection ? .keepAlive : .close
    steps = [.send(head.bytes)]
    if reply.effect == .stallAfterHead {
      steps.append(.stall)
      return
    }
    planBody(head.sendsBody ? reply.body.parts : [], of: reply, head)
  }

  /// Plans the bytes after the head. A response without a body fails as one with a body, but has no bytes.
  private mutating func planBody(_ parts: [Reply.Part], of reply: Reply, _ head: ReplyHead) {
    let isChunked = head.sendsBody && head.framing == .chunked
    switch reply.effect {
    case .stallAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      steps.append(.stall)
    case .resetAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      ending = .reset
    case .closeAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      ending = .close
    case .cutAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      ending = .cut
    case .wrongLength(let claimed):
      append(parts, isChunked)
      if head.sendsBody, claimed > reply.body.length { ending = .close }
    case .slowDrip(let step, let interval):
      append(parts.split(bytesPerStep: step, interval: interval), isChunked)
      finish(reply, isChunked)
    case .badChunk:
      append(parts, isChunked)
      if head.sendsBody { append(Array("not-a-size\r\nmore\r\n".utf8)) }
      ending = .close
    case .truncatedChunked:
      append(parts, isChunked)
      ending = .close
    case .none, .badGzip, .truncatedGzip:
      append(parts, isChunked)
      finish(reply, isChunked)
    case .stall, .stallAfterHead, .closeBeforeReply, .reset, .garbage, .garbageHead, .raw:
      preconditionFailure("the effect \(reply.effect) has no body")
    }
  }

  private mutating func finish(_ reply: Reply, _ isChunked: Bool) {
    guard isChunked else { return }
    append(Array("0\r\n".utf8) + ReplyHead.lines(reply.trailers) + Array("\r\n".utf8))
  }

  private mutating func append(_ parts: [Reply.Part], _ isChunked: Bool) {
    for part in parts {
      switch part {
      case .pause(let duration): steps.append(.pause(duration))
      case .gate(let gate): steps.append(.gate(gate))
      case .bytes(let bytes) where !bytes.isEmpty:
        append(isChunked ? Self.chunkSize(bytes.count) + bytes + Array("\r\n".utf8) : bytes)
      case .pattern(let count) where count > 0:
        if isChunked { append(Self.chunkSize(count)) }
        steps.append(.sendPattern(0..<count))
        if isChunked { append(Array("\r\n".utf8)) }
      case .bytes, .pattern: break
      }
    }
  }

  /// Appends bytes; small pieces that follow each other are sent in one write.
  private mutating func append(_ bytes: [UInt8]) {
    if case .send(let last)? = steps.last, last.count + bytes.count <= 65_536 {
      steps[steps.count - 1] = .send(last + bytes)
    } else {
      steps.append(.send(bytes))
    }
  }

  private static func chunkSize(_ count: Int) -> [UInt8] {
    Array("\(String(count, radix: 16))\r\n".utf8)
  }
}

/// One thing that a connection does to answer a request.
enum WireStep: Sendable {
  case send([UInt8])
  /// A range of the deterministic content, generated while it is sent.
  case sendPattern(Range<Int>)
  case pause(Duration)
  case gate(Gate)
  /// The end of all sending, until the client closes its side or the server is stopped.
  case stall
}

/// The fate of a connection after the last step.
enum ConnectionEnding: Sendable, Equatable {
  case keepAlive
  /// Gracefully: the closing alert of TLS, then FIN.
  case close
  /// FIN without the closing alert of TLS.
  case cut
  /// RST.
  case reset
}

/// Cutting bodies that come in parts.
extension [Reply.Part] {
  /// Returns the parts up to `limit` bytes; later parts are omitted.
  func prefix(bytes limit: Int) -> [Reply.Part] {
    var result: [Reply.Part] = []
    var left = Swift.max(0, limit)
    for part in self {
      guard left > 0 else { break }
      switch part {
      case .bytes(let bytes): result.append(.bytes([UInt8](bytes.prefix(left))))
      case .pattern(let count): result.append(.pattern(Swift.min(count, left)))
      case .pause, .gate: result.append(part)
      }
      left -= part.length
    }
    return result
  }

  /// Returns the parts as steps of at most `bytesPerStep` bytes, with a pause between steps.
  func split(bytesPerStep: Int, interval: Duration) -> [Reply.Part] {
    let step = Swift.max(1, bytesPerStep)
    var result: [Reply.Part] = []
    var isFirst = true
    for part in self {
      guard part.length > 0 else {
        result.append(part)
        continue
      }
      let bytes = part.collected()
      for start in stride(from: 0, to: bytes.count, by: step) {
        if !isFirst { result.append(.pause(interval)) }
        isFirst = false
        result.append(.bytes([UInt8](bytes[start..<Swift.min(start + step, bytes.count)])))
      }
    }
    return result
  }
}

extension Reply.Part {
  func collected() -> [UInt8] {
    switch self {
    case .bytes(let bytes): bytes
    case .pattern(let count): Reply.patternBytes(count)
    case .pause, .gate: []
    }
  }
}

extension Reply.Body {
  /// Returns all bytes, in memory.
  func collected() -> [UInt8] { parts.flatMap { $0.collected() } }
}

/// Content codings of replies (RFC 1950, RFC 1952).
enum Compression {
  /// Compresses bytes in the gzip format.
  static func gzip(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, windowBits: 15 + 16) }

  /// Compresses bytes in the zlib format, which HTTP calls `deflate` (RFC 9110 §8.4.1.2).
  static func zlib(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, windowBits: 15) }

  private static func compress(_ bytes: [UInt8], windowBits: Int32) -> [UInt8] {
    var stream = z_stream()
    let status = deflateInit2_(
      &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
    defer { deflateEnd(&stream) }
    var input = bytes
    return input.withUnsafeMutableBufferPointer { input in
      let capacity = Int(deflateBound(&stream, UInt(input.count)))
      return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(capacity)
        let status = deflate(&stream, Z_FINISH)
        precondition(status == Z_STREAM_END, "zlib needs more room than it asked for")
        count = capacity - Int(stream.avail_out)
      }
    }
  }
}

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
