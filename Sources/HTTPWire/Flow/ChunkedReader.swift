/// A strict reader of the chunked transfer coding (RFC 9112 §7.1). Pure: it receives the bytes as they arrive, in
/// pieces of any size, and reports which of them are content.
package struct ChunkedReader: Sendable {
  package enum ChunkStep: Sendable, Equatable {
    /// The range of bytes that are content. The bytes count as read once ``ChunkedReader/contentTaken(_:)`` was
    /// called.
    case content(Range<Int>)
    /// All bytes have been read.
    case needsMore
    /// The trailer section is over. Later bytes are not part of the message.
    case end
    /// The trailer section is larger than the limit.
    case refuseTrailers
    case refuse(HeadViolation)
  }

  private enum State: Sendable, Equatable {
    /// In a chunk size, of which this many digits were read.
    case size(Int64, digits: Int)
    /// White space after a chunk size, which some servers write.
    case behindSize(Int64)
    case chunkExtension(Int64, ChunkExtension)
    /// After the carriage return of a line with a chunk size.
    case sizeEnd(Int64)
    case content(left: Int64)
    /// After the content of a chunk; a carriage return may have been read.
    case contentEnd(hasReturn: Bool)
    case trailer
    case end
    case failed(HeadViolation)
  }

  private var state = State.size(0, digits: 0)
  /// The length of the line with the chunk size.
  private var lineLength = 0
  private var trailerLine: [UInt8] = []
  private var trailerSize = 0
  /// The lines of the trailer section that have arrived; folded ones are joined (RFC 9112 §5.2).
  package private(set) var trailers: [UInt8] = []
  private let trailerSizeLimit: Int

  /// The longest line with a chunk size and its extensions.
  package static let longestSizeLine = 16_384

  package init(trailerSizeLimit: Int = 262_144) {
    self.trailerSizeLimit = trailerSizeLimit
  }

  /// Whether the last chunk and the trailer section were read.
  package var isComplete: Bool { state == .end }

  /// Continues at `position`, which it moves past bytes that are not content.
  package mutating func read(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> ChunkStep {
    do throws(HeadViolation) {
      while position < bytes.count {
        switch state {
        case .content(let left):
          return .content(position..<position + Int(min(left, Int64(bytes.count - position))))
        case .end: return .end
        case .failed(let violation): throw violation
        case .trailer:
          try trailerByte(bytes[position])
          guard trailerSize <= trailerSizeLimit else { return .refuseTrailers }
        default:
          state = try nextState(after: bytes[position])
        }
        position += 1
      }
      return state == .end ? .end : .needsMore
    } catch {
      state = .failed(error)
      return .refuse(error)
    }
  }

  /// Records that the first `count` bytes of the current content were used.
  package mutating func contentTaken(_ count: Int) {
    guard case .content(let left) = state, count > 0, Int64(count) <= left else {
      preconditionFailure("\(count) bytes of content taken in state \(state)")
    }
    state = Int64(count) == left ? .contentEnd(hasReturn: false) : .content(left: left - Int64(count))
  }

  private mutating func nextState(after byte: UInt8) throws(HeadViolation) -> State {
    switch state {
    case .contentEnd(let hasReturn):
      if byte == 0x0D, !hasReturn { return .contentEnd(hasReturn: true) }
      guard byte == 0x0A else { throw .chunkEnd }
      lineLength = 0
      return .size(0, digits: 0)
    case .size, .behindSize, .chunkExtension, .sizeEnd:
      lineLength += 1
      guard lineLength <= Self.longestSizeLine else { throw .chunkExtension }
      return try nextStateInSizeLine(after: byte)
    case .content, .trailer, .end, .failed: preconditionFailure("a byte of framing in state \(state)")
    }
  }

  private func nextStateInSizeLine(after byte: UInt8) throws(HeadViolation) -> State {
    switch state {
    case .size(let size, let digits):
      if let digit = Self.digit(byte) {
        guard size <= Int64.max >> 4 else { throw .chunkSize }
        return .size(size << 4 | digit, digits: digits + 1)
      }
      guard digits > 0 else { throw .chunkSize }
      return try stateBehindSize(size, byte)
    case .behindSize(let size): return try stateBehindSize(size, byte)
    case .chunkExtension(let size, var parts):
      switch parts.read(byte) {
      case .next: return .chunkExtension(size, parts)
      case .lineEnd: return .sizeEnd(size)
      case .malformed: throw .chunkExtension
      }
    default:
      guard case .sizeEnd(let size) = state, byte == 0x0A else { throw .chunkExtension }
      return behindLine(size)
    }
  }

  /// Returns the state after a size. A bare line feed ends the line too (RFC 9112 §2.2), but not after an extension.
  /// Other readers may continue the extension there, and find another end of the body.
  private func stateBehindSize(_ size: Int64, _ byte: UInt8) throws(HeadViolation) -> State {
    switch byte {
    case 0x0D: return .sizeEnd(size)
    case 0x0A: return behindLine(size)
    case 0x20, 0x09: return .behindSize(size)
    case UInt8(ascii: ";"): return .chunkExtension(size, ChunkExtension())
    default: throw .chunkSize
    }
  }

  private func behindLine(_ size: Int64) -> State {
    size == 0 ? .trailer : .content(left: size)
  }

  private mutating func trailerByte(_ byte: UInt8) throws(HeadViolation) {
    // The empty line at the end does not count towards the limit; neither does the empty line after a head.
    let isEmptyLine =
      byte == 0x0D && trailerLine.isEmpty || byte == 0x0A && (trailerLine.isEmpty || trailerLine == [0x0D])
    if !isEmptyLine { trailerSize += 1 }
    trailerLine.append(byte)
    guard byte == 0x0A else { return }
    let isFirst = trailers.isEmpty
    if try trailerLine.withUnsafeBytes({ Self.endsTrailers($0, isFirst: isFirst) }).get() {
      state = .end
      trailerLine = []
    } else {
      if trailerLine.withUnsafeBytes(FieldLineRules.isContinuation) {
        while let last = trailers.last, last == 0x0D || last == 0x0A { trailers.removeLast() }
      }
      trailers += trailerLine
      trailerLine.removeAll(keepingCapacity: true)
    }
  }

  /// Checks a line of the trailer section. Returns whether it ends the section.
  private static func endsTrailers(
    _ line: UnsafeRawBufferPointer, isFirst: Bool
  ) -> Result<Bool, HeadViolation> {
    do throws(HeadViolation) {
      if FieldLineRules.isEmpty(line) { return .success(true) }
      if FieldLineRules.isContinuation(line), !isFirst {
        try FieldLineRules.checkContinuation(line, of: "Trailer")
      } else {
        _ = try FieldLineRules.field(line)
      }
      return .success(false)
    } catch {
      return .failure(error)
    }
  }

  private static func digit(_ byte: UInt8) -> Int64? {
    switch byte {
    case 0x30...0x39: Int64(byte - 0x30)
    case 0x41...0x46: Int64(byte - 0x41 + 10)
    case 0x61...0x66: Int64(byte - 0x61 + 10)
    default: nil
    }
  }
}

/// The extensions of a chunk (RFC 9112 §7.1.1): read for their form, and not used.
struct ChunkExtension: Sendable, Equatable {
  enum LineOutcome { case next, lineEnd, malformed }

  private enum State: Sendable, Equatable {
    case beforeName, name, behindName, beforeValue, token, quoted, escaped, behindValue
  }

  private var state = State.beforeName

  /// Reads one byte after the semicolon.
  mutating func read(_ byte: UInt8) -> LineOutcome {
    let next: State? =
      switch state {
      case .beforeName: Self.isSpace(byte) ? .beforeName : HeaderFieldRules.isTokenByte(byte) ? .name : nil
      case .name: HeaderFieldRules.isTokenByte(byte) ? .name : behindName(byte)
      case .behindName: behindName(byte)
      case .beforeValue: beforeValue(byte)
      case .token: HeaderFieldRules.isTokenByte(byte) ? .token : behindValue(byte)
      case .quoted: quoted(byte)
      case .escaped: Self.isText(byte) ? .quoted : nil
      case .behindValue: behindValue(byte)
      }
    if let next {
      state = next
      return .next
    }
    return byte == 0x0D && mayEnd ? .lineEnd : .malformed
  }

  private var mayEnd: Bool {
    switch state {
    case .name, .behindName, .token, .behindValue: true
    case .beforeName, .beforeValue, .quoted, .escaped: false
    }
  }

  private func behindName(_ byte: UInt8) -> State? {
    byte == UInt8(ascii: "=") ? .beforeValue : behindPart(byte, .behindName)
  }

  private func behindValue(_ byte: UInt8) -> State? { behindPart(byte, .behindValue) }

  private func behindPart(_ byte: UInt8, _ here: State) -> State? {
    if byte == UInt8(ascii: ";") { return .beforeName }
    return Self.isSpace(byte) ? here : nil
  }

  private func beforeValue(_ byte: UInt8) -> State? {
    if Self.isSpace(byte) { return .beforeValue }
    if byte == UInt8(ascii: "\"") { return .quoted }
    return HeaderFieldRules.isTokenByte(byte) ? .token : nil
  }

  private func quoted(_ byte: UInt8) -> State? {
    switch byte {
    case UInt8(ascii: "\""): .behindValue
    case UInt8(ascii: "\\"): .escaped
    default: Self.isText(byte) ? .quoted : nil
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isText(_ byte: UInt8) -> Bool { byte == 0x09 || byte >= 0x20 && byte != 0x7F }
}
