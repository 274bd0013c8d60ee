/// The status code of a Close frame (RFC 6455 §7.4), under the names of `URLSessionWebSocketTask.CloseCode`.
///
/// Any number can be represented, because codes from 3000 to 4999 belong to libraries and applications:
///
/// ```swift
/// let code = WebSocketCloseCode(rawValue: 4001)
/// ```
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
  /// The number of the code.
  public let rawValue: Int

  /// Makes a code of any number. Whether it can be sent is in ``canBeSent``.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// 0: not a code. The connection is not closed.
  public static let invalid = WebSocketCloseCode(rawValue: 0)
  /// 1000: the purpose of the connection is fulfilled.
  public static let normalClosure = WebSocketCloseCode(rawValue: 1000)
  /// 1001: the server stops, or the client leaves.
  public static let goingAway = WebSocketCloseCode(rawValue: 1001)
  /// 1002: the other side violated the protocol.
  public static let protocolError = WebSocketCloseCode(rawValue: 1002)
  /// 1003: a message of this type is not accepted.
  public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
  /// 1005: the Close frame contained no code. Never sent.
  public static let noStatusReceived = WebSocketCloseCode(rawValue: 1005)
  /// 1006: the connection ended without a Close frame. Never sent.
  public static let abnormalClosure = WebSocketCloseCode(rawValue: 1006)
  /// 1007: the content of a message does not match its type, such as text that is not UTF-8.
  public static let invalidFramePayloadData = WebSocketCloseCode(rawValue: 1007)
  /// 1008: a message violates a policy that no other code covers.
  public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
  /// 1009: a message is larger than the limit of its receiver.
  public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
  /// 1010: the server did not accept an extension that the client requires.
  public static let mandatoryExtensionMissing = WebSocketCloseCode(rawValue: 1010)
  /// 1011: an unexpected condition prevents an endpoint from fulfilling a request.
  public static let internalServerError = WebSocketCloseCode(rawValue: 1011)
  /// 1012: the server restarts. `URLSessionWebSocketTask` has no name for it.
  public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
  /// 1013: the server is overloaded, and the client can try again later. `URLSessionWebSocketTask` has no name for it.
  public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)
  /// 1014: a gateway received an invalid response. `URLSessionWebSocketTask` has no name for it.
  public static let badGateway = WebSocketCloseCode(rawValue: 1014)
  /// 1015: the TLS handshake failed. Never sent.
  public static let tlsHandshakeFailure = WebSocketCloseCode(rawValue: 1015)

  /// Whether a Close frame may contain the code (RFC 6455 §7.4.1 and §7.4.2). A received frame with another code
  /// violates the protocol.
  public var canBeSent: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}

extension WebSocketCloseCode: CustomStringConvertible {
  /// The number of the code.
  public var description: String { String(rawValue) }
}

/// The end of a WebSocket connection.
package struct WebSocketClosure: Sendable, Equatable {
  /// The code that the peer sent; 1005 if its Close frame had none, 1006 without a Close frame.
  package let code: WebSocketCloseCode
  package let reason: String
  /// Whether both sides sent a Close frame (RFC 6455 §7.1.4).
  package var isClean: Bool { code != .abnormalClosure }

  package init(code: WebSocketCloseCode, reason: String = "") {
    self.code = code
    self.reason = reason
  }

  /// Reads the payload of a Close frame (RFC 6455 §5.5.1).
  init(payload: [UInt8]) throws(WebSocketViolation) {
    guard payload.count != 1 else { throw .closePayload }
    guard payload.count > 1 else {
      self.init(code: .noStatusReceived)
      return
    }
    let code = WebSocketCloseCode(rawValue: Int(payload[0]) << 8 | Int(payload[1]))
    guard code.canBeSent else { throw .closeCode(code.rawValue) }
    guard let reason = String(validating: payload[2...], as: UTF8.self) else { throw .closeReason }
    self.init(code: code, reason: reason)
  }
}

/// A violation of the WebSocket protocol by the peer, or of a limit, which ends the connection.
package enum WebSocketViolation: Error, Sendable, Equatable {
  /// Reserved bits are set although no extension that uses them was negotiated. The first byte of the frame is
  /// attached.
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

  /// The code of the Close frame that notifies the peer.
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
