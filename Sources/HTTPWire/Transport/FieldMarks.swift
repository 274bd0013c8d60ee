/// What the names of a head's fields say, found in passing while its lines are read, so that a response without such
/// fields is not searched for each of them.
package struct FieldMarks: OptionSet, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let setCookie = FieldMarks(rawValue: 1)
  package static let contentEncoding = FieldMarks(rawValue: 2)
  /// By the rules of HTTP a response could answer another request only if it says how long it is good for, or can be
  /// validated: `Cache-Control`, `Expires`, `ETag`, `Last-Modified`.
  package static let reusable = FieldMarks(rawValue: 4)

  /// What one line says, with its line break or without.
  init(ofLine line: UnsafeRawBufferPointer) {
    switch line.first.map(FieldName.lowercased) {
    case UInt8(ascii: "c")?:
      if Self.begins(line, with: "cache-control:") {
        self = .reusable
      } else {
        self = Self.begins(line, with: "content-encoding:") ? .contentEncoding : []
      }
    case UInt8(ascii: "e")?:
      self = Self.begins(line, with: "etag:") || Self.begins(line, with: "expires:") ? .reusable : []
    case UInt8(ascii: "l")?: self = Self.begins(line, with: "last-modified:") ? .reusable : []
    case UInt8(ascii: "s")?: self = Self.begins(line, with: "set-cookie:") ? .setCookie : []
    default: self = []
    }
  }

  /// What many lines say, each ended by a line feed.
  init(ofLines bytes: [UInt8]) {
    var marks: FieldMarks = []
    bytes.withUnsafeBytes { bytes in
      var start = 0
      while start < bytes.count {
        let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
        marks.formUnion(FieldMarks(ofLine: UnsafeRawBufferPointer(rebasing: bytes[start..<end])))
        start = end + 1
      }
    }
    self = marks
  }

  private static func begins(_ line: UnsafeRawBufferPointer, with name: StaticString) -> Bool {
    guard line.count >= name.utf8CodeUnitCount else { return false }
    for index in 0..<name.utf8CodeUnitCount
    where FieldName.lowercased(line[index]) != name.utf8Start[index] {
      return false
    }
    return true
  }
}
