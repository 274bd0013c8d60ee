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
    /// The connection is closed in good order (FIN) without a byte of an answer.
    case closeBeforeReply
    /// The connection is reset (RST) without a byte of an answer.
    case reset
    /// The head and this many bytes are sent, then the connection is reset (RST).
    case resetAfterBody(bytes: Int)
    /// The head and this many bytes are sent, then the connection is closed in good order.
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
    /// The chunked coding with the body as first chunk, then a chunk whose size is no number.
    case badChunk
    /// The chunked coding that ends with the connection, before the last chunk.
    case truncatedChunked
    /// `Content-Encoding: gzip` with a body that is not gzip.
    case badGzip
    /// The body as gzip, of which only the first half is sent, with the length of that half.
    case truncatedGzip
    /// These bytes and nothing else.
    case raw([UInt8], closes: Bool)
  }

  /// A head of a response that no client should accept.
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
