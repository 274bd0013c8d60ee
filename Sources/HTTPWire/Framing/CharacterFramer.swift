package import FoundationEssentials

/// Cuts text that arrives in chunks between characters (Unicode scalars in UTF-8, RFC 3629), so that each piece can
/// be decoded separately. The decoded pieces, joined, equal the decoded text.
package struct CharacterFramer: Sendable {
  /// The beginning of a character whose rest has not come; three bytes at most.
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
