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

  /// Reads on at `position`. Returns a complete header, behind which `position` then is, or `nil` if bytes are missing.
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
