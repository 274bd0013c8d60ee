extension Reply {
  /// Reads the request and never answers.
  public static let stall = Reply(effect: .stall)

  /// Sends the head of a body of 1000 bytes, then nothing.
  public static let stallAfterHead = Reply.bytes(1000).with(effect: .stallAfterHead)

  /// Sends this many bytes of a body that is 1000 bytes longer, then nothing.
  public static func stallAfterBody(bytes: Int) -> Reply {
    Reply.bytes(bytes + 1000).with(effect: .stallAfterBody(bytes: bytes))
  }

  /// Closes the connection gracefully without an answer. Clients may send the request again; see ``reset``.
  public static let closeBeforeReply = Reply(effect: .closeBeforeReply)

  /// Resets the connection without an answer.
  ///
  /// Clients send an idempotent request again if its connection had carried another one (RFC 9110 §9.2.2), and so does
  /// `Alamofire`. To see the error, reset the first request of a session, or enqueue two resets, or send a POST.
  public static let reset = Reply(effect: .reset)

  /// Sends this many bytes of a body that is 1000 bytes longer, then resets the connection.
  public static func resetAfterBody(bytes: Int) -> Reply {
    Reply.bytes(bytes + 1000).with(effect: .resetAfterBody(bytes: bytes))
  }

  /// Sends this many bytes of a body that is 1000 bytes longer, then closes the connection.
  public static func closeAfterBody(bytes: Int) -> Reply {
    Reply.bytes(bytes + 1000).with(effect: .closeAfterBody(bytes: bytes))
  }

  /// Makes a reply with a truncated body: ``closeAfterBody(bytes:)``, but on TLS without the closing alert.
  public static func cutAfterBody(bytes: Int) -> Reply {
    Reply.bytes(bytes + 1000).with(effect: .cutAfterBody(bytes: bytes))
  }

  /// Sends 100 bytes under another `Content-Length`.
  public static func wrongLength(claimed: Int) -> Reply {
    Reply.bytes(100).with(effect: .wrongLength(claimed: claimed))
  }

  /// Sends ten steps of this many bytes, with a pause between them.
  public static func slowDrip(bytesPerStep: Int, interval: Duration) -> Reply {
    Reply.bytes(max(1, bytesPerStep) * 10)
      .with(effect: .slowDrip(bytesPerStep: bytesPerStep, interval: interval))
  }

  /// Answers with bytes that are not HTTP.
  public static let garbage = Reply(effect: .garbage)

  /// Answers with a head that breaks the rules.
  public static func garbageHead(_ kind: GarbageHead) -> Reply {
    Reply.bytes(100).with(effect: .garbageHead(kind))
  }

  /// Sends 100 bytes as a chunk, then a chunk with a size that is not a number.
  public static let badChunk = Reply.bytes(100).with(effect: .badChunk)

  /// Sends 100 bytes as a chunk, then closes the connection before the last chunk.
  public static let truncatedChunked = Reply.bytes(100).with(effect: .truncatedChunked)

  /// Claims gzip for a body that is not gzip.
  public static let badGzip = Reply.bytes(100).with(effect: .badGzip)

  /// Sends the first half of 10000 bytes as gzip.
  public static let truncatedGzip = Reply.bytes(10_000).with(effect: .truncatedGzip)

  /// Answers with this status before the body of the request is read; see ``RequestBody``.
  public static func earlyReply(_ status: Int = 200, then treatment: RequestBody = .ignored) -> Reply {
    Reply.status(status).requestBody(treatment)
  }
}

extension Reply {
  /// A failure of a reply. Lengths count bytes of the body, before the chunked coding.
  public enum Effect: Sendable, Equatable {
    /// No failure.
    case none
    /// The request is read and never answered, until the client goes or the server is stopped.
    case stall
    /// The head is sent, then nothing more.
    case stallAfterHead
    /// The head and this many bytes are sent, then nothing more.
    case stallAfterBody(bytes: Int)
    /// The connection is closed gracefully (FIN) without a byte of an answer.
    case closeBeforeReply
    /// The connection is reset (RST) without a byte of an answer.
    case reset
    /// The head and this many bytes are sent, then the connection is reset (RST).
    case resetAfterBody(bytes: Int)
    /// The head and this many bytes are sent, then the connection is closed gracefully.
    case closeAfterBody(bytes: Int)
    /// An attacker's cut: `closeAfterBody`, but on TLS without the closing alert (RFC 8446 §6.1).
    case cutAfterBody(bytes: Int)
    /// The whole body under a `Content-Length` that is not its length. The connection is closed when
    /// more was claimed than is sent, and stays open otherwise.
    case wrongLength(claimed: Int)
    /// The body in steps of this many bytes, with a pause between them.
    case slowDrip(bytesPerStep: Int, interval: Duration)
    /// Bytes that are not HTTP, then the end of the connection.
    case garbage
    /// A head that breaks the rules, then the end of the connection.
    case garbageHead(GarbageHead)
    /// The chunked coding with the body as first chunk, then a chunk with a size that is not a number.
    case badChunk
    /// The chunked coding that ends with the connection, before the last chunk.
    case truncatedChunked
    /// `Content-Encoding: gzip` with a body that is not gzip.
    case badGzip
    /// The body as gzip, of which only the first half is sent, with the length of that half.
    case truncatedGzip
    /// Only these bytes.
    case raw([UInt8], closes: Bool)
  }

  /// A head of a response that clients should refuse.
  public enum GarbageHead: Sendable, Equatable, CaseIterable {
    /// All kinds, the huge one with a megabyte.
    public static let allCases: [GarbageHead] = [
      .statusLine, .fieldWithoutColon, .huge(bytes: 1 << 20), .negativeLength, .contradictingLengths,
      .lengthIsNoNumber, .endsEarly,
    ]

    /// A status line without a number: `HTTP/1.1 abc OK`.
    case statusLine
    /// A field line without a colon.
    case fieldWithoutColon
    /// A valid field of this many bytes.
    case huge(bytes: Int)
    /// `Content-Length: -5`.
    case negativeLength
    /// Two fields `Content-Length` that do not agree.
    case contradictingLengths
    /// `Content-Length: many`.
    case lengthIsNoNumber
    /// The connection is closed in the middle of a field.
    case endsEarly
  }
}
