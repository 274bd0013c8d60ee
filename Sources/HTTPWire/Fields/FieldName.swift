/// Comparison and form of field names (RFC 9110 §5.1).
package enum FieldName {
  /// Whether two names are the same without regard to ASCII case; allocates nothing.
  package static func equal(_ left: String, _ right: String) -> Bool {
    let left = left.utf8
    let right = right.utf8
    guard left.count == right.count else { return false }
    return zip(left, right).allSatisfy { lowercased($0) == lowercased($1) }
  }

  /// Whether a name is `other`, which has no capitals, without regard to ASCII case.
  static func equal(_ name: UnsafeRawBufferPointer, lowercase other: StaticString) -> Bool {
    guard other.utf8CodeUnitCount == name.count else { return false }
    for index in 0..<name.count where lowercased(name[index]) != other.utf8Start[index] { return false }
    return true
  }

  /// Returns the lower-case letter of an ASCII capital, or any other byte as it is.
  @inline(__always)
  package static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
  }
}

/// The positions of field names in a long list. Searching such a list for each field that is set would take time that
/// grows with the square of their number.
struct FieldIndex: Sendable {
  /// The length from which a list has an index: below it, searching costs less than hashing.
  static let threshold = 32

  private struct Name: Hashable, Sendable {
    let text: String

    static func == (left: Name, right: Name) -> Bool { FieldName.equal(left.text, right.text) }

    func hash(into hasher: inout Hasher) {
      for byte in text.utf8 { hasher.combine(FieldName.lowercased(byte)) }
    }
  }

  private var positions: [Name: Int] = [:]

  init(_ fields: [HTTPHeader]) {
    positions.reserveCapacity(fields.count * 2)
    for (position, field) in fields.enumerated() { note(field.name, at: position) }
  }

  mutating func note(_ name: String, at position: Int) {
    positions[Name(text: name)] = position
  }

  func position(of name: String) -> Int? { positions[Name(text: name)] }
}
