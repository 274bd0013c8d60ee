package import FoundationEssentials

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
  /// A reason needs a code in front of it.
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
