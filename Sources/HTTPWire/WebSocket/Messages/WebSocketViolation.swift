/// A violation of the WebSocket protocol by the peer, or of a limit, which ends the connection.
package enum WebSocketViolation: Error, Sendable, Equatable {
  /// Reserved bits for which no extension was agreed on. The first byte of the frame is attached.
  case reservedBits(UInt8)
  case reservedOpcode(UInt8)
  /// A compressed control frame or continuation frame.
  case misplacedCompression
  case fragmentedControlFrame
  case longControlFrame
  /// A length that has a shorter encoding.
  case lengthEncoding
  /// A length of 2^63 bytes or more.
  case frameLength
  case maskedFrameOfServer
  case unmaskedFrameOfClient
  /// A continuation frame without a message to continue.
  case strayContinuation
  /// A new message before the end of a fragmented one.
  case interleavedMessage
  case closePayload
  case closeCode(Int)
  case closeReason
  case text
  case messageTooLarge(limit: Int)
  /// Compressed data is malformed; the message of the decompressor is attached.
  case compressedData(String)
  case outOfMemory

  /// The code of the Close frame that tells the peer.
  package var closeCode: WebSocketCloseCode {
    switch self {
    case .text, .closeReason, .compressedData: .invalidFramePayloadData
    case .messageTooLarge: .messageTooBig
    case .outOfMemory: .internalServerError
    case .reservedBits, .reservedOpcode, .misplacedCompression, .fragmentedControlFrame, .longControlFrame,
      .lengthEncoding, .frameLength, .maskedFrameOfServer, .unmaskedFrameOfClient, .strayContinuation,
      .interleavedMessage, .closePayload, .closeCode:
      .protocolError
    }
  }

  /// One sentence with the section of the RFC.
  package var message: String {
    switch self {
    case .reservedBits, .reservedOpcode, .misplacedCompression, .lengthEncoding, .frameLength,
      .maskedFrameOfServer, .unmaskedFrameOfClient:
      headerMessage
    case .fragmentedControlFrame, .longControlFrame, .closePayload, .closeCode, .closeReason:
      controlMessage
    case .strayContinuation, .interleavedMessage, .text, .messageTooLarge, .compressedData, .outOfMemory:
      dataMessage
    }
  }

  private var headerMessage: String {
    switch self {
    case .reservedBits(let byte):
      "A frame begins with 0x\(String(byte, radix: 16)), whose reserved bits no extension defines (RFC 6455 §5.2)."
    case .reservedOpcode(let opcode): "A frame has the reserved opcode \(opcode) (RFC 6455 §5.2)."
    case .misplacedCompression:
      "A control frame or a continuation frame is marked as compressed (RFC 7692 §6.1)."
    case .lengthEncoding: "The length of a frame is not encoded in the fewest bytes (RFC 6455 §5.2)."
    case .maskedFrameOfServer: "The server sent a masked frame (RFC 6455 §5.1)."
    case .unmaskedFrameOfClient: "The client sent an unmasked frame (RFC 6455 §5.1)."
    default: "The length of a frame is 2^63 bytes or more (RFC 6455 §5.2)."
    }
  }

  private var controlMessage: String {
    switch self {
    case .fragmentedControlFrame: "A control frame is fragmented (RFC 6455 §5.5)."
    case .longControlFrame: "A control frame has more than 125 bytes of payload (RFC 6455 §5.5)."
    case .closeCode(let code):
      "A Close frame has the code \(code), which must not be sent (RFC 6455 §7.4)."
    case .closeReason: "The reason of a Close frame is not UTF-8 (RFC 6455 §5.5.1)."
    default: "A Close frame has a payload of one byte (RFC 6455 §5.5.1)."
    }
  }

  private var dataMessage: String {
    switch self {
    case .strayContinuation: "A continuation frame follows no fragment (RFC 6455 §5.4)."
    case .interleavedMessage: "A message begins before the last fragment of another one (RFC 6455 §5.4)."
    case .text: "A text message is not UTF-8 (RFC 6455 §8.1)."
    case .messageTooLarge(let limit):
      "A message is larger than the limit of \(limit) bytes. Raise the maximum message size to receive it."
    case .compressedData(let reason):
      "A compressed message cannot be decompressed: \(reason) (RFC 7692 §7.2.2)."
    default: "There is not enough memory to decompress a message."
    }
  }
}
