/// The fields of interest that a head contains. They are noted while its lines are read, so that a response without such
/// fields is not searched for each of them.
package struct FieldMarks: OptionSet, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let setCookie = FieldMarks(rawValue: 1)
  package static let contentEncoding = FieldMarks(rawValue: 2)
  /// Fields without which a response cannot answer another request, because they give a freshness lifetime or a
  /// validator: `Cache-Control`, `Expires`, `ETag`, `Last-Modified`.
  package static let reusable = FieldMarks(rawValue: 4)

  /// The mark of the field `name`, if it has one.
  init(ofField name: UnsafeRawBufferPointer) {
    switch name.count {
    case 4 where FieldName.equal(name, lowercase: "etag"),
      7 where FieldName.equal(name, lowercase: "expires"),
      13 where FieldName.equal(name, lowercase: "cache-control"),
      13 where FieldName.equal(name, lowercase: "last-modified"):
      self = .reusable
    case 10 where FieldName.equal(name, lowercase: "set-cookie"): self = .setCookie
    case 16 where FieldName.equal(name, lowercase: "content-encoding"): self = .contentEncoding
    default: self = []
    }
  }

  /// The marks of field lines, each ended by a line feed.
  init(ofLines bytes: [UInt8]) {
    var marks: FieldMarks = []
    bytes.withUnsafeBytes { bytes in
      var start = 0
      while start < bytes.count {
        let end = bytes[start...].firstIndex(of: 0x0A) ?? bytes.count
        if let colon = bytes[start..<end].firstIndex(of: UInt8(ascii: ":")) {
          marks.formUnion(FieldMarks(ofField: UnsafeRawBufferPointer(rebasing: bytes[start..<colon])))
        }
        start = end + 1
      }
    }
    self = marks
  }
}
