/// The side of a WebSocket connection.
package enum WebSocketRole: Sendable {
  /// Sends masked frames, receives unmasked ones (RFC 6455 §5.1).
  case client
  /// Sends unmasked frames, receives masked ones.
  case server
}

/// The opcode of a frame (RFC 6455 §5.2).
package enum WebSocketOpcode: UInt8, Sendable {
  case continuation = 0x0
  case text = 0x1
  case binary = 0x2
  case close = 0x8
  case ping = 0x9
  case pong = 0xA

  package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The header of a frame (RFC 6455 §5.2).
package struct WebSocketFrameHeader: Sendable, Equatable {
  /// The largest payload of a control frame (RFC 6455 §5.5).
  package static let longestControlPayload = 125
  /// The number of bytes of the longest header.
  static let longestHeader = 14

  package var opcode: WebSocketOpcode
  /// Whether the frame is the last one of its message.
  package var isFinal = true
  /// The bit RSV1: the frame begins a compressed message (RFC 7692 §6).
  package var isCompressed = false
  /// The number of bytes of the payload.
  package var length: Int
  /// `nil` if the payload is not masked.
  package var mask: WebSocketMask?

  package init(
    _ opcode: WebSocketOpcode, length: Int, isFinal: Bool = true, isCompressed: Bool = false,
    mask: WebSocketMask? = nil
  ) {
    self.opcode = opcode
    self.length = length
    self.isFinal = isFinal
    self.isCompressed = isCompressed
    self.mask = mask
  }

  /// The first byte.
  var firstByte: UInt8 { (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue }
}

/// Masks or unmasks a payload, which is the same operation (RFC 6455 §5.3).
package struct WebSocketMask: Sendable, Equatable {
  /// The masking key with its first byte in the lowest bits.
  package let key: UInt32
  /// The key, rotated to the position in the payload.
  private var pattern: UInt32

  package init(key: UInt32) {
    self.key = key
    pattern = key
  }

  /// Masks the next bytes of the payload in place.
  package mutating func apply(to bytes: UnsafeMutableRawBufferPointer) {
    let wide = (UInt64(pattern) << 32 | UInt64(pattern)).littleEndian
    let wideCount = bytes.count & ~7
    var index = 0
    while index < wideCount {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      bytes.storeBytes(of: word ^ wide, toByteOffset: index, as: UInt64.self)
      index += 8
    }
    while index < bytes.count {
      bytes[index] ^= UInt8(truncatingIfNeeded: pattern)
      pattern = pattern >> 8 | pattern << 24
      index += 1
    }
  }
}
