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
  /// The status code. Any number is sent as it is.
  public var status: Int
  /// The reason phrase; `nil` for the usual one of the status.
  public var reason: String?
  /// The header fields, sent in this order and spelling, before those that the server adds.
  public var headers: [HTTPHeader]
  /// The body.
  public var body: Body
  /// Fields behind the last chunk; a reply that has any is sent in the chunked coding.
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
  /// Upgrades the connection in place of a reply; see ``webSocket(_:)``.
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
    /// Chunks, also for a body whose length is known.
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
    /// The reply is sent with `Connection: close`; the body is never looked at.
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
