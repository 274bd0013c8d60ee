extension Reply {
  /// Reads the request and never answers.
  public static let stall = Reply(effect: .stall)

  /// Sends the head of a body of 1000 bytes, then nothing.
  public static let stallAfterHead = Reply.bytes(1000).with(effect: .stallAfterHead)

  /// Sends this many bytes of a body that is 1000 bytes longer, then nothing.
  public static func stallAfterBody(bytes: Int) -> Reply {
    Reply.bytes(bytes + 1000).with(effect: .stallAfterBody(bytes: bytes))
  }

  /// Closes the connection in good order without an answer. Clients may send the request again; see ``reset``.
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

  /// Makes a reply whose body is cut: ``closeAfterBody(bytes:)``, but on TLS without the closing alert.
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

  /// Sends 100 bytes as a chunk, then a chunk whose size is no number.
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
