import FoundationEssentials
public import HTTPWire

/// A reply of the server: its content, its timing and its failure.
///
/// ```swift
/// server.enqueue(
///   .json(#"{"id": 1}"#),
///   .status(503).with(header: "Retry-After", value: "1"),
///   .text("slow").delayed(by: .seconds(2)),
///   .reset)
/// ```
///
/// The framing is automatic: a body of known length gets a `Content-Length`. A body in parts gets the chunked coding
/// (HTTP/1.1) or the end of the connection (HTTP/1.0). Replies to HEAD, and the statuses 1xx, 204 and 304, are sent
/// without a body. If ``headers`` contains a `Content-Length` or `Transfer-Encoding`, that field is sent unchanged,
/// and none is added.
public struct Reply: Sendable {
  /// The status code. Any number is sent unchanged.
  public var status: Int
  /// The reason phrase; `nil` for the usual one of the status.
  public var reason: String?
  /// The header fields, sent in this order and spelling, before those that the server adds.
  public var headers: [HTTPHeader]
  /// The body.
  public var body: Body
  /// Fields after the last chunk; a reply that has any is sent in the chunked coding.
  public var trailers: [HTTPHeader]
  /// Informational answers (1xx) that are sent before this one, in their order.
  public var informational: [Informational]
  /// The delimitation of the body.
  public var framing: Framing
  /// The failure of the reply; none by default.
  public var effect: Effect
  /// The time between reading the request and answering, after the gate has been opened.
  public var delay: Duration
  /// Holds the whole reply until it is opened.
  public var gate: Gate?
  /// The handling of the request body.
  public var requestBody: RequestBody
  /// Whether the connection is closed after this reply, with a `Connection: close` field.
  public var closesConnection: Bool
  /// Upgrades the connection instead of replying; see ``webSocket(_:)``.
  public var webSocket: WebSocketEndpoint?

  /// Makes a reply that is sent at once and well; all parts can be set afterwards too.
  public init(
    status: Int = 200, reason: String? = nil, headers: [HTTPHeader] = [], body: Body = .empty,
    effect: Effect = .none
  ) {
    self.status = status
    self.reason = reason
    self.headers = headers
    self.body = body
    self.effect = effect
    trailers = []
    informational = []
    framing = .automatic
    delay = .zero
    gate = nil
    requestBody = .recorded
    closesConnection = false
  }

  /// The delimitation of a body (RFC 9112 §6).
  public enum Framing: Sendable, Equatable {
    /// A length where it is known, else chunks.
    case automatic
    /// A `Content-Length`, also for a body in parts.
    case contentLength
    /// Chunks, even for a body of known length.
    case chunked
    /// Neither: the body ends with the connection.
    case untilClose
  }

  /// The handling of a request body by the server.
  public enum RequestBody: Sendable, Equatable {
    /// A body that is read before the reply is sent, and recorded.
    case recorded
    /// A body that is read before the reply is sent, and only counted.
    case counted
    /// A recorded body that is read only when the gate is opened; a large body makes the client wait.
    case held(Gate)
    /// The reply is sent first, then the body is read and recorded, and the connection lives on.
    case afterReply
    /// The reply is sent with `Connection: close`; the body is never read.
    case ignored

    /// Compares the kind, and gates by identity.
    public static func == (left: RequestBody, right: RequestBody) -> Bool {
      switch (left, right) {
      case (.recorded, .recorded), (.counted, .counted), (.afterReply, .afterReply),
        (.ignored, .ignored):
        true
      case (.held(let first), .held(let second)): first === second
      case (.recorded, _), (.counted, _), (.held, _), (.afterReply, _), (.ignored, _): false
      }
    }
  }

  /// An informational answer before the final one (RFC 9110 §15.2).
  public struct Informational: Sendable, Equatable {
    /// The status, 100 to 199.
    public var status: Int
    /// The header fields.
    public var headers: [HTTPHeader]

    /// Makes an informational answer.
    public init(status: Int, headers: [HTTPHeader] = []) {
      self.status = status
      self.headers = headers
    }
  }
}

extension Reply: CustomStringConvertible {
  /// The status, the length of the body and the failure, such as `200, 1001 bytes, closeAfterBody(bytes: 1)`.
  /// Parameterized tests show the text in their names.
  public var description: String {
    if webSocket != nil { return "WebSocket connection" }
    let text = "\(status), \(body.length) bytes"
    return switch effect {
    case .none: text
    case .raw(let bytes, _): "\(bytes.count) raw bytes"
    default: "\(text), \(effect)"
    }
  }
}

extension Reply {
  /// The content of a reply.
  public enum Body: Sendable {
    /// An empty body, with a length of 0.
    case empty
    /// These bytes.
    case bytes([UInt8])
    /// The given number of bytes of ``Reply/patternByte(at:)``, generated while they are sent.
    case pattern(Int)
    /// Part after part, each as a separate chunk, with pauses and gates between them.
    case parts([Part])

    /// Makes a body of text chunks.
    public static func chunks(_ chunks: [String]) -> Body {
      .parts(chunks.map { .bytes(Array($0.utf8)) })
    }

    /// The parts that it consists of.
    var parts: [Part] {
      switch self {
      case .empty: []
      case .bytes(let bytes): [.bytes(bytes)]
      case .pattern(let count): [.pattern(count)]
      case .parts(let parts): parts
      }
    }

    /// The length in bytes.
    var length: Int {
      parts.reduce(0) { sum, part in
        let (length, isTooLong) = sum.addingReportingOverflow(part.length)
        return isTooLong ? .max : length
      }
    }
  }

  /// A part of a body that is sent bit by bit.
  ///
  /// ```swift
  /// let gate = Gate()
  /// let reply = Reply(body: .parts(["first ", .gate(gate), .text(rest)]))
  /// ```
  public enum Part: Sendable, ExpressibleByStringLiteral {
    /// These bytes, as one chunk; an empty part sends nothing.
    case bytes([UInt8])
    /// The given number of bytes of ``Reply/patternByte(at:)``, which starts over with every such part.
    case pattern(Int)
    /// A pause of this duration.
    case pause(Duration)
    /// A pause until the gate is opened.
    case gate(Gate)

    /// Makes a part of the UTF-8 of a text.
    public static func text(_ text: some StringProtocol) -> Part {
      .bytes(Array(text.utf8))
    }

    /// Makes a part of the UTF-8 of a literal. For a text that is not a literal, see ``text(_:)``.
    public init(stringLiteral value: String) {
      self = .text(value)
    }

    /// The length in bytes.
    var length: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .pattern(let count): max(0, count)
      case .pause, .gate: 0
      }
    }
  }
}

extension Reply {
  /// Returns the byte at an offset of the deterministic content of `/bytes/{n}` and of pattern bodies. The content
  /// has a prime period, so that blocks which were lost, doubled or exchanged are noticed. It continues before its
  /// beginning, at negative offsets.
  public static func patternByte(at offset: Int) -> UInt8 {
    let index = offset % patternPeriod
    return pattern[index < 0 ? index + patternPeriod : index]
  }

  /// Returns the first bytes of the deterministic content; none for a negative count.
  public static func patternBytes(_ count: Int) -> [UInt8] {
    patternBytes(0..<max(0, count))
  }

  static func patternBytes(_ range: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    while bytes.count < range.count {
      let rest = pattern[((range.lowerBound + bytes.count) % patternPeriod)...]
      bytes += rest.prefix(range.count - bytes.count)
    }
    return bytes
  }

  private static let patternPeriod = 65_521

  private static let pattern: [UInt8] = (0..<patternPeriod).map { offset in
    UInt8(truncatingIfNeeded: offset &* 167 &+ (offset >> 7) &* 13)
  }
}

extension Reply {
  /// 200 without a body.
  public static let ok = Reply()

  /// Makes a 200 with `text/plain; charset=utf-8`.
  public static func text(_ text: String) -> Reply {
    Reply(headers: [.contentType("text/plain; charset=utf-8")], body: .bytes(Array(text.utf8)))
  }

  /// Makes a 200 with `application/json`; the text is sent unchanged, valid or not.
  public static func json(_ text: String) -> Reply {
    Reply(headers: [.contentType("application/json")], body: .bytes(Array(text.utf8)))
  }

  /// Makes a 200 with `application/json`, written by `JSONEncoder` with sorted keys.
  public static func json(encoding value: some Encodable) throws -> Reply {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let data = try encoder.encode(value)
    return Reply(headers: [.contentType("application/json")], body: .bytes(Array(data)))
  }

  /// Makes a reply of this status, without a body.
  public static func status(_ status: Int) -> Reply { Reply(status: status) }

  /// Makes a 200 with `count` bytes of ``patternByte(at:)`` as `application/octet-stream`.
  public static func bytes(_ count: Int) -> Reply {
    Reply(headers: [.contentType("application/octet-stream")], body: .pattern(count))
  }

  /// Makes a 200 with these bytes as `application/octet-stream`.
  public static func data(_ bytes: [UInt8]) -> Reply {
    Reply(headers: [.contentType("application/octet-stream")], body: .bytes(bytes))
  }

  /// Makes a 200 with these parts in the chunked coding, each as a separate chunk.
  public static func parts(_ parts: Part...) -> Reply {
    Reply(headers: [.contentType("application/octet-stream")], body: .parts(parts))
  }

  /// Makes a redirect to `location`, an absolute URL or a reference, 302 by default.
  public static func redirect(to location: String, status: Int = 302) -> Reply {
    Reply(status: status, headers: [HTTPHeader(name: "Location", value: location)])
  }

  /// Makes a reply that sends only these bytes, then ends the connection unless `closes` is `false`.
  public static func raw(_ bytes: [UInt8], closes: Bool = true) -> Reply {
    Reply(effect: .raw(bytes, closes: closes))
  }

  /// Makes a reply that sends only the UTF-8 of a text, then ends the connection unless `closes` is `false`.
  public static func raw(_ text: String, closes: Bool = true) -> Reply {
    raw(Array(text.utf8), closes: closes)
  }
}

extension Reply {
  /// Returns a copy with another status, such as a body of an error.
  public func with(status: Int) -> Reply {
    changed { $0.status = status }
  }

  /// Returns a copy with one more header field.
  public func with(header name: String, value: String) -> Reply {
    changed { $0.headers.append(HTTPHeader(name: name, value: value)) }
  }

  /// Returns a copy that is sent so much later.
  public func delayed(by delay: Duration) -> Reply {
    changed { $0.delay = delay }
  }

  /// Returns a copy that is held, as a whole, until the gate is opened.
  public func held(by gate: Gate) -> Reply {
    changed { $0.gate = gate }
  }

  /// Returns a copy that fails by this effect.
  public func with(effect: Effect) -> Reply {
    changed { $0.effect = effect }
  }

  /// Returns a copy with a body that is delimited by this framing.
  public func framed(_ framing: Framing) -> Reply {
    changed { $0.framing = framing }
  }

  /// Returns a copy with these fields after its last chunk.
  public func with(trailers: [HTTPHeader]) -> Reply {
    changed { $0.trailers = trailers }
  }

  /// Returns a copy that sends an informational answer first, such as 103 with `Link` fields.
  public func preceded(by status: Int, headers: [HTTPHeader] = []) -> Reply {
    changed { $0.informational.append(Informational(status: status, headers: headers)) }
  }

  /// Returns a copy that treats the body of the request in this way.
  public func requestBody(_ treatment: RequestBody) -> Reply {
    changed { $0.requestBody = treatment }
  }

  /// Returns a copy after which the connection is closed, announced by `Connection: close`.
  public func closing() -> Reply {
    changed { $0.closesConnection = true }
  }

  private func changed(_ change: (inout Reply) -> Void) -> Reply {
    var copy = self
    change(&copy)
    return copy
  }
}
