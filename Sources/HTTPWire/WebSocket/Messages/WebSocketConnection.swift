package import FoundationEssentials

/// A WebSocket connection after its opening handshake (RFC 6455, RFC 7692), for either side. Pure: the owner passes
/// the bytes of the transport to the connection and writes its output.
///
/// ```
/// open ── closing ── closed ── ended
///   └────────────────┘
/// ```
///
/// - The owner applies back-pressure by not calling ``receive(_:from:)``: no byte after the returned event is read.
/// - The owner limits the time in `closing`, because a peer may never send its Close frame, and in `closed`.
/// - The memory is limited to one message of the maximum size, the buffers of the decompressor, and the output.
package struct WebSocketConnection: ~Copyable {
  package enum WebSocketPhase: Sendable, Equatable {
    case open
    /// Our Close frame is in the output; the peer's Close frame is awaited. Messages of the peer are still delivered.
    case closing
    /// Both Close frames were exchanged, or the connection failed. Nothing more is read or sent.
    case closed
    /// The transport has ended.
    case ended
  }

  private struct Frame {
    var header: WebSocketFrameHeader
    var mask: WebSocketMask?
    var bytesLeft: Int
  }

  package internal(set) var phase = WebSocketPhase.open
  private var hasFailed = false
  /// Whether messages are skipped instead of delivered, because no reader takes them.
  package private(set) var skipsMessages = false
  private let role: WebSocketRole
  private var decoder: WebSocketFrameDecoder
  private var frame: Frame?
  private var assembly: WebSocketMessageAssembly
  /// The payload of the current control frame.
  private var controlPayload: [UInt8] = []
  var output: WebSocketOutput

  /// Makes the state of a connection after its handshake.
  ///
  /// - Parameters:
  ///   - compression: Makes the compressors, if `options` has parameters of permessage-deflate.
  ///   - makeKey: Returns a masking key that cannot be predicted (RFC 6455 §5.3). Called for each frame of a client.
  package init(
    _ options: WebSocketOptions, compression: (any MessageCompression)? = nil,
    makeKey: @escaping () -> UInt32
  ) {
    role = options.role
    let deflate = compression == nil ? nil : options.deflate
    decoder = WebSocketFrameDecoder(role: role, allowsCompression: deflate != nil)
    var inflation: MessageInflation?
    if let compression, let deflate {
      inflation = MessageInflation(deflate.incoming(of: role), compression)
    }
    assembly = WebSocketMessageAssembly(limit: options.maximumMessageSize, inflation: inflation)
    output = WebSocketOutput(options, compression: compression, makeKey: makeKey)
  }

  /// Whether the owner ends the transport as soon as the output is written. After a clean closure the client waits for
  /// the server to do it (RFC 6455 §7.1.1).
  package var endsTransport: Bool { phase == .closed && (hasFailed || role == .server) }

  /// The number of bytes of the message that is being received.
  package var assembledByteCount: Int { assembly.count + controlPayload.count }

  // MARK: Receiving

  /// Continues at `position` up to the next event. Returns `nil` after the last byte. Skips bytes after a Close frame.
  package mutating func receive(
    _ bytes: UnsafeRawBufferPointer, from position: inout Int
  ) -> WebSocketEvent? {
    do throws(WebSocketViolation) {
      while phase == .open || phase == .closing {
        guard try readHeader(bytes, &position) else { return nil }
        let (isComplete, event) = try readPayload(bytes, &position)
        if event != nil || !isComplete { return event }
      }
    } catch {
      return fail(error)
    }
    position = bytes.count
    return nil
  }

  /// Takes note that the transport has ended, with or without an error.
  package mutating func transportEnded() -> WebSocketEvent? {
    let wasConnected = phase == .open || phase == .closing
    phase = .ended
    assembly.discard()
    output.discard()
    return wasConnected ? .closed(WebSocketClosure(code: .abnormalClosure)) : nil
  }

  /// Returns whether the payload of a frame is to be read.
  private mutating func readHeader(
    _ bytes: UnsafeRawBufferPointer, _ position: inout Int
  ) throws(WebSocketViolation) -> Bool {
    guard frame == nil else { return true }
    guard let header = try decoder.read(bytes, from: &position) else { return false }
    if header.opcode.isControl {
      controlPayload.removeAll(keepingCapacity: true)
    } else if !skipsMessages {
      try assembly.begin(header)
    }
    frame = Frame(header: header, mask: header.mask, bytesLeft: header.length)
    return true
  }

  /// Reads the payload of the current frame as far as it has arrived.
  private mutating func readPayload(
    _ bytes: UnsafeRawBufferPointer, _ position: inout Int
  ) throws(WebSocketViolation) -> (isComplete: Bool, event: WebSocketEvent?) {
    guard var frame else { return (true, nil) }
    let end = position + min(frame.bytesLeft, bytes.count - position)
    let payload = UnsafeRawBufferPointer(rebasing: bytes[position..<end])
    position = end
    frame.bytesLeft -= payload.count
    let header = frame.header
    if header.opcode.isControl {
      controlPayload.append(contentsOf: payload)
    } else if !skipsMessages {
      if payload.count == header.length, let message = try assembly.message(of: payload, header) {
        self.frame = nil
        return (true, .message(message))
      }
      try assembly.append(payload, mask: &frame.mask)
    }
    guard frame.bytesLeft == 0 else {
      self.frame = frame
      return (false, nil)
    }
    self.frame = nil
    return (true, try endFrame(header))
  }

  private mutating func endFrame(
    _ header: WebSocketFrameHeader
  ) throws(WebSocketViolation) -> WebSocketEvent? {
    if header.opcode.isControl, var mask = header.mask {
      controlPayload.withUnsafeMutableBytes { mask.apply(to: $0) }
    }
    switch header.opcode {
    case .continuation, .text, .binary:
      return header.isFinal && !skipsMessages ? .message(try assembly.finish()) : nil
    case .close: return try close(WebSocketClosure(payload: controlPayload))
    case .ping:
      guard mayAnswer else { return nil }
      output.answerPing(controlPayload)
      return .ping(Data(controlPayload))
    case .pong: return .pong(Data(controlPayload))
    }
  }

  /// Whether a Ping frame is answered. No frame may follow a Close frame, but one that waits behind messages is not
  /// sent yet (RFC 6455 §5.5.2).
  private var mayAnswer: Bool { phase == .open || phase == .closing && output.hasFrames }

  private mutating func close(_ closure: WebSocketClosure) -> WebSocketEvent {
    if phase == .open { output.appendClose(closure.code.canBeSent ? closure.code : nil, reason: "") }
    phase = .closed
    assembly.discard()
    return .closed(closure)
  }

  private mutating func fail(_ violation: WebSocketViolation) -> WebSocketEvent {
    if phase == .open { output.appendClose(violation.closeCode, reason: "") }
    phase = .closed
    hasFailed = true
    frame = nil
    assembly.discard()
    return .failed(violation)
  }

  /// Begins the closing handshake.
  mutating func beginClosing() { phase = .closing }

  /// Stops delivering messages, so that the Close frame after them can be read.
  package mutating func skipMessages() {
    skipsMessages = true
    assembly.discard()
  }
}

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

  /// Adds a Close frame to the output. Nothing can be sent after it. Does nothing if the connection is closing already.
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

  /// The number of bytes that were taken from the output, without answers to Ping frames.
  package var takenByteCount: UInt64 { output.takenCount }

  /// The value of ``takenByteCount`` once all messages so far were taken.
  package var outputEnd: UInt64 { output.end }

  /// Returns the next bytes to write; `nil` if there are none.
  ///
  /// - Parameter limit: The number of bytes after which a large message is interrupted. Default: none, which empties
  ///   the output.
  package mutating func takeOutput(_ limit: Int = .max) -> Data? {
    let taken = output.take(limit)
    // A message that has begun cannot be completed, so the transport ends without a Close frame.
    if output.hasFailed, phase != .ended {
      phase = .closed
      hasFailed = true
    }
    return taken
  }

  /// Drops the bytes to write, because the peer does not take them any more.
  package mutating func discardOutput() { output.discard() }

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

/// A message of a WebSocket connection (RFC 6455 §5.6).
package enum WebSocketMessage: Sendable, Equatable {
  case text(String)
  case binary(Data)
}

/// An event of a WebSocket connection for its owner.
package enum WebSocketEvent: Sendable, Equatable {
  case message(WebSocketMessage)
  /// A Ping frame with its payload. The Pong frame is in the output already.
  case ping(Data)
  case pong(Data)
  /// Both sides sent a Close frame, or the transport ended without one (``WebSocketClosure/isClean``). The last event.
  case closed(WebSocketClosure)
  /// The connection failed (RFC 6455 §7.1.7). A Close frame is in the output, unless one was sent before. The last
  /// event.
  case failed(WebSocketViolation)
}

/// The reason why something cannot be sent.
package enum WebSocketSendError: Error, Sendable, Equatable {
  /// The connection is closing or closed.
  case notOpen
  /// The payload of a Ping or Pong frame is longer than 125 bytes.
  case longControlPayload(count: Int)
  case closeCode(WebSocketCloseCode)
  /// The reason is longer than 123 bytes of UTF-8.
  case longReason(count: Int)
  /// A reason needs a code before it.
  case reasonWithoutCode
  case compressionFailed
  /// The bytes to write have reached the limit.
  case outputFull(count: Int)

  package var message: String {
    switch self {
    case .notOpen: "The WebSocket connection is closing or closed. Nothing more can be sent."
    case .longControlPayload(let count):
      "The payload of a ping has \(count) bytes. At most 125 are allowed (RFC 6455 §5.5)."
    case .closeCode(let code):
      "The close code \(code) must not be sent. Use 1000 to 1003, 1007 to 1014 or 3000 to 4999 (RFC 6455 §7.4)."
    case .longReason(let count):
      "The close reason has \(count) bytes of UTF-8. At most 123 are allowed (RFC 6455 §5.5)."
    case .reasonWithoutCode: "A close reason is sent behind a close code. Add a code (RFC 6455 §5.5.1)."
    case .outputFull(let count):
      "\(count) bytes of earlier messages are not sent yet. Wait until a message was sent, or raise the limit."
    case .compressionFailed: "The message could not be compressed. There may not be enough memory."
    }
  }
}
