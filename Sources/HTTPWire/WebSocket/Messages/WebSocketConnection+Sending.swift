package import FoundationEssentials

extension WebSocketConnection {
  /// Adds a message to the output.
  ///
  /// - Parameter outputLimit: The number of bytes to write from which on the message is refused. Default: none.
  package mutating func send(
    _ message: WebSocketMessage, outputLimit: Int = .max
  ) throws(WebSocketSendError) {
    guard phase == .open else { throw .notOpen }
    guard outputLimit == .max || outputByteCount < outputLimit else {
      throw .outputFull(count: outputByteCount)
    }
    guard output.append(message) else { throw .compressionFailed }
  }

  /// Adds a Ping frame with at most 125 bytes to the output.
  package mutating func sendPing(_ payload: Data = Data()) throws(WebSocketSendError) {
    try sendControl(.ping, payload)
  }

  /// Adds a Pong frame that answers no Ping frame, as a heartbeat in one direction (RFC 6455 §5.5.3).
  package mutating func sendPong(_ payload: Data = Data()) throws(WebSocketSendError) {
    try sendControl(.pong, payload)
  }

  /// Adds a Close frame to the output. Nothing can be sent behind it. Does nothing if the connection is closing
  /// already.
  ///
  /// - Parameters:
  ///   - code: `nil` sends a frame without a payload.
  ///   - reason: At most 123 bytes of UTF-8.
  package mutating func close(
    _ code: WebSocketCloseCode? = .normalClosure, reason: String = ""
  ) throws(WebSocketSendError) {
    if let code {
      guard code.canBeSent else { throw .closeCode(code) }
    } else {
      guard reason.isEmpty else { throw .reasonWithoutCode }
    }
    guard reason.utf8.count <= WebSocketFrameHeader.longestControlPayload - 2 else {
      throw .longReason(count: reason.utf8.count)
    }
    guard phase == .open else { return }
    output.appendClose(code, reason: reason)
    beginClosing()
  }

  /// Whether there are bytes to write.
  package var hasOutput: Bool { output.hasBytes }

  /// The number of bytes to write.
  package var outputByteCount: Int { output.byteCount }

  /// The number of bytes that were taken from the output, except for those of answers to Ping frames.
  package var takenByteCount: UInt64 { output.takenCount }

  /// The value of ``takenByteCount`` once all messages so far were taken.
  package var outputEnd: UInt64 { output.end }

  /// Returns the next bytes to write; `nil` if there are none.
  ///
  /// - Parameter limit: The number of bytes after which a large message is interrupted. Default: none, which empties
  ///   the output.
  package mutating func takeOutput(_ limit: Int = .max) -> Data? { output.take(limit) }

  private mutating func sendControl(
    _ opcode: WebSocketOpcode, _ payload: Data
  ) throws(WebSocketSendError) {
    guard phase == .open else { throw .notOpen }
    guard payload.count <= WebSocketFrameHeader.longestControlPayload else {
      throw .longControlPayload(count: payload.count)
    }
    payload.withUnsafeBytes { output.appendControl(opcode, $0) }
  }
}
