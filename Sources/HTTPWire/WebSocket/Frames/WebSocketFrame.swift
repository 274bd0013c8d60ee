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

extension WebSocketFrameHeader {
  /// Appends the header and its payload of ``length`` bytes. The payload is copied once and masked in the copy.
  package func append(payload: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    appendHeader(to: &output)
    let start = output.count
    output.append(contentsOf: payload)
    guard var mask else { return }
    output.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
  }

  /// Appends the header, with the length in the fewest bytes (RFC 6455 §5.2).
  func appendHeader(to output: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: Self.longestHeader, alignment: 8) { bytes in
      var count = 2
      let maskBit: UInt8 = mask == nil ? 0 : 0x80
      bytes[0] = firstByte
      switch length {
      case 0...125: bytes[1] = maskBit | UInt8(length)
      case 126...0xFFFF:
        bytes[1] = maskBit | 126
        bytes.storeBytes(of: UInt16(length).bigEndian, toByteOffset: count, as: UInt16.self)
        count += 2
      default:
        bytes[1] = maskBit | 127
        bytes.storeBytes(of: UInt64(length).bigEndian, toByteOffset: count, as: UInt64.self)
        count += 8
      }
      if let mask {
        bytes.storeBytes(of: mask.key.littleEndian, toByteOffset: count, as: UInt32.self)
        count += 4
      }
      output.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }
  }
}

/// Reads the headers of frames from bytes that come in chunks of any size. A violation is reported at the first byte
/// that shows it.
package struct WebSocketFrameDecoder: Sendable {
  private enum Part: Sendable {
    case firstByte
    case secondByte
    case length(bytesLeft: Int)
    case key(bytesLeft: Int)
  }

  private let role: WebSocketRole
  private let allowsCompression: Bool
  private var part = Part.firstByte
  private var header = WebSocketFrameHeader(.continuation, length: 0)
  private var isMasked = false
  private var length: UInt64 = 0
  /// The lengths below this one have a shorter encoding.
  private var shortestLength: UInt64 = 0
  private var key: UInt32 = 0

  /// Makes a decoder for the frames of one connection.
  ///
  /// - Parameters:
  ///   - role: The side that receives the frames.
  ///   - allowsCompression: Whether permessage-deflate was agreed on.
  package init(role: WebSocketRole, allowsCompression: Bool) {
    self.role = role
    self.allowsCompression = allowsCompression
  }

  /// Continues at `position`. Returns a complete header and moves `position` past it, or returns `nil` if bytes are
  /// missing.
  package mutating func read(
    _ bytes: UnsafeRawBufferPointer, from position: inout Int
  ) throws(WebSocketViolation) -> WebSocketFrameHeader? {
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if try readByte(byte) {
        part = .firstByte
        return header
      }
    }
    return nil
  }

  /// Returns whether the header is complete.
  private mutating func readByte(_ byte: UInt8) throws(WebSocketViolation) -> Bool {
    switch part {
    case .firstByte:
      try readFirst(byte)
      return false
    case .secondByte: return try readSecond(byte)
    case .length(let bytesLeft):
      length = length << 8 | UInt64(byte)
      part = .length(bytesLeft: bytesLeft - 1)
      return bytesLeft == 1 ? try endLength() : false
    case .key(let bytesLeft):
      key = key >> 8 | UInt32(byte) << 24
      part = .key(bytesLeft: bytesLeft - 1)
      guard bytesLeft == 1 else { return false }
      header.mask = WebSocketMask(key: key)
      return true
    }
  }

  private mutating func readFirst(_ byte: UInt8) throws(WebSocketViolation) {
    guard byte & 0x30 == 0, allowsCompression || byte & 0x40 == 0 else { throw .reservedBits(byte) }
    guard let opcode = WebSocketOpcode(rawValue: byte & 0x0F) else { throw .reservedOpcode(byte & 0x0F) }
    let isCompressed = byte & 0x40 != 0
    let isFinal = byte & 0x80 != 0
    guard !isCompressed || opcode == .text || opcode == .binary else { throw .misplacedCompression }
    guard isFinal || !opcode.isControl else { throw .fragmentedControlFrame }
    header = WebSocketFrameHeader(opcode, length: 0, isFinal: isFinal, isCompressed: isCompressed)
    part = .secondByte
  }

  private mutating func readSecond(_ byte: UInt8) throws(WebSocketViolation) -> Bool {
    isMasked = byte & 0x80 != 0
    switch role {
    case .client: guard !isMasked else { throw .maskedFrameOfServer }
    case .server: guard isMasked else { throw .unmaskedFrameOfClient }
    }
    length = 0
    switch byte & 0x7F {
    case 126:
      part = .length(bytesLeft: 2)
      shortestLength = 126
    case 127:
      part = .length(bytesLeft: 8)
      shortestLength = 1 << 16
    case let short:
      length = UInt64(short)
      shortestLength = 0
      return try endLength()
    }
    guard !header.opcode.isControl else { throw .longControlFrame }
    return false
  }

  private mutating func endLength() throws(WebSocketViolation) -> Bool {
    guard length >= shortestLength else { throw .lengthEncoding }
    guard let count = Int(exactly: length) else { throw .frameLength }
    header.length = count
    guard isMasked else { return true }
    part = .key(bytesLeft: 4)
    return false
  }
}
