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
