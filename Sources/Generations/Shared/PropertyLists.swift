import Foundation

extension PropertyListSerialization {
  /// Parses a property list from a server.
  ///
  /// Foundation limits the nesting of arrays and dictionaries to 512. It does not limit `plist` elements, and too many
  /// of them end the process. A document has one.
  static func untrusted(_ data: Data, options: ReadOptions) throws -> Any {
    guard hasKnownEncoding(data), countOfRoots(data) <= 512 else {
      throw CocoaError(.propertyListReadCorrupt)
    }
    return try propertyList(from: data, options: options, format: nil)
  }

  /// The encodings in which the bytes of a tag follow each other, apart from zeros.
  private static let knownEncodings: Set<String> = [
    "utf-8", "utf8", "us-ascii", "iso-8859-1", "utf-16", "utf-16le", "utf-16be", "utf-32", "utf-32le",
    "utf-32be",
  ]

  /// Returns whether the XML declaration, if there is one, names no encoding in which a tag can be hidden. In
  /// ISO-2022-JP, for example, an escape sequence may stand within each word.
  private static func hasKnownEncoding(_ data: Data) -> Bool {
    guard data.starts(with: Data("<?xml".utf8)) else { return true }
    let end = data.range(of: Data("?>".utf8))?.lowerBound ?? data.endIndex
    let parts = String(decoding: data[..<end], as: UTF8.self).lowercased()
      .components(separatedBy: "encoding")
    // Foundation might read another one than this function.
    guard parts.count == 2 else { return parts.count == 1 }
    let value = parts[1].drop { $0.isWhitespace || $0 == "=" }
    guard let quote = value.first, quote == "\"" || quote == "'" else { return false }
    return knownEncodings.contains(String(value.dropFirst().prefix { $0 != quote }))
  }

  /// Returns the number of `<plist` in the text, whose encoding is one of the known ones.
  private static func countOfRoots(_ data: Data) -> Int {
    var count = 0
    var window: UInt64 = 0
    let root = "<plist".utf8.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    data.withUnsafeBytes { bytes in
      for byte in bytes where byte != 0 {
        window = window << 8 | UInt64(byte)
        if window & 0xFFFF_FFFF_FFFF == root { count += 1 }
      }
    }
    return count
  }
}
