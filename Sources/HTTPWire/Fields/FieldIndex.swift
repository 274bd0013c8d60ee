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
