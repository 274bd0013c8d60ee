import Foundation

extension PropertyListSerialization {
  /// Parses a property list from a server.
  ///
  /// Foundation limits the nesting of arrays and dictionaries to 512. It does not limit `plist` elements, and too many
  /// of them end the process. A document has one.
  static func untrusted(_ data: Data, options: ReadOptions) throws -> Any {
    guard countOfRoots(data) <= 512 else { throw CocoaError(.propertyListReadCorrupt) }
    return try propertyList(from: data, options: options, format: nil)
  }

  /// Returns the number of `<plist` in the text, whose encoding is UTF-8, UTF-16 or UTF-32.
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
