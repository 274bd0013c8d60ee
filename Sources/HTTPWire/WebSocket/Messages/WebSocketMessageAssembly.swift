import FoundationEssentials

/// Joins the payloads of data frames to messages. Text is validated, and the size limited, as the bytes come.
struct WebSocketMessageAssembly {
  /// Storage up to this size is reused for the next text message.
  private static let keptCapacity = 65_536

  private let limit: Int
  private let inflation: MessageInflation?
  /// The opcode of the message that has begun.
  private var opcode: WebSocketOpcode?
  private var isCompressed = false
  private var text: [UInt8] = []
  private var validator = UTF8Validator()
  private var binary = Data()
  /// The capacity of `binary` that was reserved.
  private var reserved = 0
  /// The size of the message at the end of the current frame. The limit if the message is compressed.
  private var expected = 0

  init(limit: Int, inflation: MessageInflation?) {
    self.limit = max(0, limit)
    self.inflation = inflation
  }

  /// The number of bytes that are stored.
  var count: Int { opcode == .text ? text.count : binary.count }

  /// Takes note of the header of a data frame.
  mutating func begin(_ header: WebSocketFrameHeader) throws(WebSocketViolation) {
    if header.opcode == .continuation {
      guard opcode != nil else { throw .strayContinuation }
    } else {
      guard opcode == nil else { throw .interleavedMessage }
      opcode = header.opcode
      isCompressed = header.isCompressed
    }
    guard !isCompressed else { return expected = limit }
    guard header.length <= limit - count else { throw .messageTooLarge(limit: limit) }
    expected = count + header.length
  }

  /// Returns the message of a frame that is the whole message, and that was begun and received as a whole. The
  /// message is copied once. `nil` if the message has to be assembled.
  mutating func message(
    of payload: UnsafeRawBufferPointer, _ header: WebSocketFrameHeader
  ) throws(WebSocketViolation) -> WebSocketMessage? {
    guard header.isFinal, !isCompressed, header.opcode != .continuation else { return nil }
    switch header.opcode {
    case .binary:
      var data = Data(payload)
      if var mask = header.mask { data.withUnsafeMutableBytes { mask.apply(to: $0) } }
      opcode = nil
      return .binary(data)
    default:
      // A masked text would have to be unmasked in a copy first.
      guard header.mask == nil else { return nil }
      var validator = UTF8Validator()
      guard validator.validate(payload), validator.isComplete else { throw .text }
      opcode = nil
      return .text(String(decoding: payload, as: UTF8.self))
    }
  }

  /// Adds bytes of the payload of a frame.
  mutating func append(
    _ payload: UnsafeRawBufferPointer, mask: inout WebSocketMask?
  ) throws(WebSocketViolation) {
    guard !payload.isEmpty else { return }
    guard isCompressed, let inflation else { return try store(payload, mask: &mask) }
    var start = 0
    while start < payload.count {
      let input = inflation.unmask(UnsafeRawBufferPointer(rebasing: payload[start...]), &mask)
      start += input.count
      try inflate(input, inflation)
    }
  }

  /// Ends the message after its last frame.
  mutating func finish() throws(WebSocketViolation) -> WebSocketMessage {
    if isCompressed, let inflation {
      try inflate(inflation.messageEnd, inflation)
      try inflation.endMessage()
    }
    guard validator.isComplete else { throw .text }
    let message: WebSocketMessage =
      opcode == .text ? .text(String(decoding: text, as: UTF8.self)) : .binary(binary)
    discard()
    return message
  }

  /// Forgets the message that has begun.
  mutating func discard() {
    opcode = nil
    text.removeAll(keepingCapacity: text.capacity <= Self.keptCapacity)
    binary = Data()
    reserved = 0
  }

  private mutating func inflate(
    _ input: UnsafeRawBufferPointer, _ inflation: MessageInflation
  ) throws(WebSocketViolation) {
    var start = 0
    while true {
      let step = try inflation.step(UnsafeRawBufferPointer(rebasing: input[start...]))
      // Violations are found in the order of the bytes, whatever the chunks are.
      let room = limit - count
      var mask: WebSocketMask?
      try store(UnsafeRawBufferPointer(rebasing: step.output.prefix(room)), mask: &mask)
      guard step.output.count <= room else { throw .messageTooLarge(limit: limit) }
      if let fault = step.fault { throw fault }
      start += step.consumed
      if step.output.count < inflation.bufferSize, start == input.count { return }
      guard step.consumed > 0 || !step.output.isEmpty else { throw .compressedData("it has no end") }
    }
  }

  /// Copies bytes into the message and unmasks them there.
  private mutating func store(
    _ bytes: UnsafeRawBufferPointer, mask: inout WebSocketMask?
  ) throws(WebSocketViolation) {
    guard !bytes.isEmpty else { return }
    guard opcode == .text else {
      let start = binary.count
      reserve(start + bytes.count)
      binary.append(contentsOf: bytes)
      guard mask != nil else { return }
      return binary.withUnsafeMutableBytes {
        mask?.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...]))
      }
    }
    let start = text.count
    text.append(contentsOf: bytes)
    let isValid = text.withUnsafeMutableBytes { whole in
      let tail = UnsafeMutableRawBufferPointer(rebasing: whole[start...])
      mask?.apply(to: tail)
      return validator.validate(UnsafeRawBufferPointer(tail))
    }
    guard isValid else { throw .text }
  }

  /// Doubles the storage when it is full. The announced size is not reserved, because it may never come.
  private mutating func reserve(_ count: Int) {
    guard count > reserved else { return }
    let next = max(isCompressed ? 0 : Self.keptCapacity, 2 * reserved)
    reserved = max(count, min(expected, next))
    binary.reserveCapacity(reserved)
  }
}

/// Validates UTF-8 (RFC 3629) that comes in chunks of any size. A fault is found at its first byte.
package struct UTF8Validator: Sendable, Equatable {
  /// The number of continuation bytes that are missing.
  private var missing: UInt8 = 0
  /// The range of the next continuation byte, which excludes surrogates, long forms and scalars above U+10FFFF.
  private var lower: UInt8 = 0x80
  private var upper: UInt8 = 0xBF

  package init() {}

  /// Whether the bytes do not end inside of a character.
  package var isComplete: Bool { missing == 0 }

  /// Returns whether the next bytes continue valid UTF-8. Nothing may be added after an invalid byte.
  package mutating func validate(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var index = 0
    while index < bytes.count {
      if missing == 0 {
        index = Self.endOfASCII(bytes, from: index)
        guard index < bytes.count else { return true }
        guard begin(bytes[index]) else { return false }
      } else {
        guard (lower...upper).contains(bytes[index]) else { return false }
        missing -= 1
        lower = 0x80
        upper = 0xBF
      }
      index += 1
    }
    return true
  }

  /// Reads the first byte of a character that is not ASCII.
  private mutating func begin(_ byte: UInt8) -> Bool {
    switch byte {
    case 0xC2...0xDF: missing = 1
    case 0xE0...0xEF:
      missing = 2
      if byte == 0xE0 { lower = 0xA0 }
      if byte == 0xED { upper = 0x9F }
    case 0xF0...0xF4:
      missing = 3
      if byte == 0xF0 { lower = 0x90 }
      if byte == 0xF4 { upper = 0x8F }
    default: return false
    }
    return true
  }

  private static func endOfASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while index + 8 <= bytes.count,
      bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
    {
      index += 8
    }
    while index < bytes.count, bytes[index] < 0x80 { index += 1 }
    return index
  }
}
