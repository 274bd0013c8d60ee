package import FoundationEssentials

/// Finds the JSON texts (RFC 8259) in a stream of chunks with arbitrary boundaries. Texts follow one another with or
/// without white space, one a line, or as a JSON text sequence (RFC 7464).
///
/// It counts brackets and recognizes strings; the decoder validates the texts. Bytes that cannot begin a JSON text
/// form one text up to the end of their line, so that the next line can be valid. So do the bytes of a text that is
/// longer than the limit, of which only the beginning is returned. A byte order mark before the first text is passed
/// over (RFC 8259 §8.1).
package struct JSONFramer: Sendable {
  private enum State: Sendable {
    /// At the start of the stream, after this many bytes of a byte order mark.
    case mark(count: Int)
    /// Between two texts.
    case between
    /// Inside of an object or array, so deep.
    case nested(depth: Int)
    /// Inside of a string, which is itself inside so deep.
    case string(depth: Int)
    /// After a backslash in such a string.
    case escape(depth: Int)
    /// A number, `true`, `false` or `null`.
    case word
    case rubbish
    /// In the rest of a text that was too long.
    case skipped
  }

  /// The meaning of a byte for the current text.
  private enum Cut {
    case nothing
    /// A text begins with it.
    case begins
    /// The text ends with it.
    case endsWith
    /// The text ended before it, and it is examined again.
    case endsBefore
    /// A text began with bytes that are kept already, and it is examined again.
    case beganBefore
  }

  private var state = State.mark(count: 0)
  /// The beginning of a text that is still incomplete.
  private var kept = Data()
  private let limit: Int

  /// Makes a framer.
  ///
  /// - Parameter limit: The number of bytes from which on a text is too long. Default: 64 MiB.
  package init(limit: Int = 67_108_864) { self.limit = limit }

  /// Returns the texts that are complete with `chunk`, in their order.
  package mutating func push(_ chunk: Data) -> [Data] {
    var texts: [Data] = []
    // The beginning of the current text in this chunk.
    var begin = 0
    chunk.withUnsafeBytes { bytes in
      var index = 0
      while index < bytes.count {
        switch step(bytes[index]) {
        case .nothing: break
        case .begins: begin = index
        case .endsWith:
          texts.append(text(in: chunk, begin..<index + 1))
          begin = index + 1
        case .endsBefore:
          texts.append(text(in: chunk, begin..<index))
          begin = index
          continue
        case .beganBefore:
          begin = index
          continue
        }
        index += 1
      }
    }
    switch state {
    case .mark, .between, .skipped: return texts
    case .nested, .string, .escape, .word, .rubbish: break
    }
    kept.append(chunk[(chunk.startIndex + begin)...])
    if kept.count > limit {
      texts.append(kept.prefix(limit))
      kept = Data()
      state = .skipped
    }
    return texts
  }

  /// Returns the rest at the end, a number or word without a delimiter or an incomplete text, and empties the framer.
  package mutating func finish() -> Data? {
    defer {
      kept = Data()
      state = .mark(count: 0)
    }
    if case .mark(let count) = state { kept.append(contentsOf: Self.byteOrderMark.prefix(count)) }
    return kept.isEmpty ? nil : kept
  }

  /// Returns the text that ends in `range` of the chunk, including its part in earlier chunks.
  private mutating func text(in chunk: Data, _ range: Range<Int>) -> Data {
    let part = chunk[(chunk.startIndex + range.lowerBound)..<(chunk.startIndex + range.upperBound)]
    guard !kept.isEmpty else { return part }
    defer { kept = Data() }
    kept.append(part)
    return kept
  }

  private mutating func step(_ byte: UInt8) -> Cut {
    if case .mark(let count) = state, let cut = readMark(byte, count) { return cut }
    // No text has this byte, so the next one follows also if this one is incomplete (RFC 7464 §2.1).
    if byte == Self.recordSeparator {
      defer { state = .between }
      switch state {
      case .mark, .between, .skipped: return .nothing
      case .nested, .string, .escape, .word, .rubbish: return .endsBefore
      }
    }
    switch state {
    case .mark, .between: return begin(byte)
    case .nested(let depth): return nested(byte, depth)
    case .string(let depth):
      if byte == UInt8(ascii: "\\") { state = .escape(depth: depth) }
      guard byte == UInt8(ascii: "\"") else { return .nothing }
      state = depth == 0 ? .between : .nested(depth: depth)
      return depth == 0 ? .endsWith : .nothing
    case .escape(let depth):
      state = .string(depth: depth)
      return .nothing
    case .word:
      guard Self.isSpace(byte) || Self.opens(byte) else { return .nothing }
      state = .between
      return .endsBefore
    case .rubbish:
      guard byte == UInt8(ascii: "\n") else { return .nothing }
      state = .between
      return .endsBefore
    case .skipped:
      if byte == UInt8(ascii: "\n") { state = .between }
      return .nothing
    }
  }

  /// Reads a byte that may belong to a byte order mark. Returns `nil` for the first byte of a stream without one.
  private mutating func readMark(_ byte: UInt8, _ count: Int) -> Cut? {
    if byte == Self.byteOrderMark[count] {
      state = count == 2 ? .between : .mark(count: count + 1)
      return .nothing
    }
    state = .between
    guard count > 0 else { return nil }
    // The bytes before it were not a mark, and cannot begin a text either.
    kept.append(contentsOf: Self.byteOrderMark.prefix(count))
    state = .rubbish
    return .beganBefore
  }

  private mutating func begin(_ byte: UInt8) -> Cut {
    if Self.isSpace(byte) { return .nothing }
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["): state = .nested(depth: 1)
    case UInt8(ascii: "\""): state = .string(depth: 0)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "t"), UInt8(ascii: "f"),
      UInt8(ascii: "n"):
      state = .word
    default: state = .rubbish
    }
    return .begins
  }

  private mutating func nested(_ byte: UInt8, _ depth: Int) -> Cut {
    switch byte {
    case UInt8(ascii: "\""): state = .string(depth: depth)
    case UInt8(ascii: "{"), UInt8(ascii: "["): state = .nested(depth: depth + 1)
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      guard depth > 1 else {
        state = .between
        return .endsWith
      }
      state = .nested(depth: depth - 1)
    default: break
    }
    return .nothing
  }

  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The byte before each text of a sequence.
  private static let recordSeparator: UInt8 = 0x1E

  private static func isSpace(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x20, 0x09, 0x0A, 0x0D: true
    default: false
    }
  }

  private static func opens(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\"")
  }
}

/// Cuts text that arrives in chunks between characters (Unicode scalars in UTF-8, RFC 3629), so that each piece can
/// be decoded separately. The decoded pieces, joined, equal the decoded text.
package struct CharacterFramer: Sendable {
  /// The beginning of a character that is still incomplete; three bytes at most.
  private var kept = Data()

  package init() {}

  /// Returns the bytes up to the last whole character; `nil` when there is none.
  package mutating func push(_ chunk: Data) -> Data? {
    let bytes = kept.isEmpty ? chunk : kept + chunk
    let length = bytes.count - Self.unfinishedCount(of: bytes)
    kept = length < bytes.count ? Data(bytes.suffix(bytes.count - length)) : Data()
    return length > 0 ? bytes.prefix(length) : nil
  }

  /// Returns the rest at the end, an incomplete character, and empties the framer.
  package mutating func finish() -> Data? {
    defer { kept = Data() }
    return kept.isEmpty ? nil : kept
  }

  /// Returns the number of bytes at the end that begin an incomplete character.
  private static func unfinishedCount(of bytes: Data) -> Int {
    var count = 0
    for byte in bytes.suffix(3).reversed() {
      count += 1
      if byte & 0b1100_0000 == 0b1000_0000 { continue }
      let length =
        switch byte {
        case 0xC2...0xDF: 2
        case 0xE0...0xEF: 3
        case 0xF0...0xF4: 4
        default: 1
        }
      return length > count ? count : 0
    }
    return 0
  }
}
