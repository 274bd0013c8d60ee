/// Header fields as bytes: lines `name: value`, each ended by CRLF or LF, in the order in which they
/// came. Looking one up scans the bytes and allocates only the answer.
package struct FieldBlock: Sendable, Equatable {
  package let bytes: [UInt8]
  /// Marks of the fields that are looked up in every response.
  package let marks: FieldMarks

  package init(bytes: [UInt8]) {
    self.init(bytes: bytes, marks: FieldMarks(ofLines: bytes))
  }

  /// With the marks of all lines, where each has been looked at already.
  init(bytes: [UInt8], marks: FieldMarks) {
    self.bytes = bytes
    self.marks = marks
  }

  package init(_ fields: [HTTPHeader]) {
    self.init(bytes: fields.flatMap { Array("\($0.name): \($0.value)\r\n".utf8) })
  }

  /// The values of all fields of this name, joined by `, ` (RFC 9110 §5.3), or `nil` if there is none.
  package func value(of name: StaticString) -> String? {
    var result: String?
    forEachLine { field in
      guard field.isNamed(name) else { return }
      if let first = result {
        result = first + ", " + field.value
      } else {
        result = field.value
      }
    }
    return result
  }

  /// The values of all fields of this name, each by itself.
  package func values(of name: StaticString) -> [String] {
    var values: [String] = []
    forEachLine { if $0.isNamed(name) { values.append($0.value) } }
    return values
  }

  /// Whether there is a field of this name.
  package func contains(_ name: StaticString) -> Bool {
    var found = false
    forEachLine { if $0.isNamed(name) { found = true } }
    return found
  }

  /// All fields in their order, repeated ones kept apart.
  package var fields: [HTTPHeader] {
    var fields: [HTTPHeader] = []
    fields.reserveCapacity(12)
    forEachLine { fields.append(HTTPHeader(name: $0.name, value: $0.value)) }
    return fields
  }

  /// The values of the fields of this name as they came, each by itself.
  package func rawValues(of name: StaticString) -> [[UInt8]] {
    var values: [[UInt8]] = []
    forEachLine { if $0.isNamed(name) { values.append(Array($0.valueBytes)) } }
    return values
  }

  private func forEachLine(_ body: (Line) -> Void) {
    bytes.withUnsafeBufferPointer { buffer in
      var start = 0
      while start < buffer.count {
        var end = start
        while end < buffer.count, buffer[end] != 0x0A { end += 1 }
        if let line = Line(UnsafeBufferPointer(rebasing: buffer[start..<end])) { body(line) }
        start = end + 1
      }
    }
  }

  /// One line, cut at its colon; white space around the value is not part of it (RFC 9112 §5.1).
  private struct Line {
    let nameBytes: UnsafeBufferPointer<UInt8>
    let valueBytes: UnsafeBufferPointer<UInt8>

    init?(_ line: UnsafeBufferPointer<UInt8>) {
      guard let colon = line.firstIndex(of: 0x3A), colon > 0 else { return nil }
      var start = colon + 1
      var end = line.count
      while end > start, Self.isSpace(line[end - 1]) { end -= 1 }
      while start < end, Self.isSpace(line[start]) { start += 1 }
      nameBytes = UnsafeBufferPointer(rebasing: line[0..<colon])
      valueBytes = UnsafeBufferPointer(rebasing: line[start..<end])
    }

    var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// The value; bytes that are no UTF-8 are read as ISO Latin 1, so that none is lost.
    var value: String {
      String(validating: valueBytes, as: UTF8.self)
        ?? String(String.UnicodeScalarView(valueBytes.map { Unicode.Scalar($0) }))
    }

    func isNamed(_ name: StaticString) -> Bool {
      guard name.utf8CodeUnitCount == nameBytes.count else { return false }
      return (0..<nameBytes.count).allSatisfy {
        FieldName.lowercased(nameBytes[$0]) == FieldName.lowercased(name.utf8Start[$0])
      }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
      byte == 0x20 || byte == 0x09 || byte == 0x0D
    }
  }
}
