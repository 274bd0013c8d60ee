/// A strict parser of structured fields (RFC 9651 §4.2): a field with any error has no value.
package struct StructuredField {
  /// A value without parameters.
  package enum BareItem: Sendable, Equatable {
    case integer(Int64)
    /// The text of a decimal; no field of ours has one.
    case decimal(String)
    case string(String)
    case token(String)
    /// The base64 text of a byte sequence.
    case bytes(String)
    case boolean(Bool)
    case date(Int64)
    /// The percent-encoded text of a display string.
    case displayString(String)
    /// The number of members of an inner list; no field of ours has one.
    case innerList(Int)
  }

  private struct Violation: Error {}

  private let bytes: [UInt8]
  private var position = 0

  private init(_ text: String) { bytes = Array(text.utf8) }

  /// Returns the value of a field that is an item. The parameters of the item are checked and dropped.
  package static func item(_ text: String) -> BareItem? {
    var parser = StructuredField(text)
    return try? parser.whole { parser throws(Violation) in try parser.item() }
  }

  /// Returns the integer of a field that is an item.
  package static func integer(_ text: String) -> Int64? {
    if case .integer(let value)? = item(text) { value } else { nil }
  }

  /// Returns the boolean of a field that is an item.
  package static func boolean(_ text: String) -> Bool? {
    if case .boolean(let value)? = item(text) { value } else { nil }
  }

  /// Returns the members of a field that is a dictionary; the last member with a key counts. `nil` if it cannot be
  /// parsed.
  package static func dictionary(_ text: String) -> [String: BareItem]? {
    var parser = StructuredField(text)
    return try? parser.whole { parser throws(Violation) in try parser.dictionary() }
  }

  // MARK: Structure

  private mutating func whole<Value>(
    _ parse: (inout StructuredField) throws(Violation) -> Value
  ) throws(Violation) -> Value {
    skip { $0 == UInt8(ascii: " ") }
    let value = try parse(&self)
    skip { $0 == UInt8(ascii: " ") }
    guard current == nil else { throw Violation() }
    return value
  }

  private mutating func item() throws(Violation) -> BareItem {
    let value = try bareItem()
    try parameters()
    return value
  }

  private mutating func parameters() throws(Violation) {
    while take(";") {
      skip { $0 == UInt8(ascii: " ") }
      _ = try key()
      if take("=") { _ = try bareItem() }
    }
  }

  private mutating func dictionary() throws(Violation) -> [String: BareItem] {
    var members: [String: BareItem] = [:]
    guard current != nil else { return members }
    while true {
      let key = try key()
      if take("=") {
        members[key] = current == UInt8(ascii: "(") ? try innerList() : try item()
      } else {
        members[key] = .boolean(true)
        try parameters()
      }
      skip(Self.isBlank)
      guard current != nil else { return members }
      guard take(",") else { throw Violation() }
      skip(Self.isBlank)
      // A comma must not end the field.
      guard current != nil else { throw Violation() }
    }
  }

  private mutating func innerList() throws(Violation) -> BareItem {
    guard take("(") else { throw Violation() }
    var count = 0
    while true {
      skip { $0 == UInt8(ascii: " ") }
      if take(")") { break }
      _ = try item()
      count += 1
      guard current == UInt8(ascii: " ") || current == UInt8(ascii: ")") else { throw Violation() }
    }
    try parameters()
    return .innerList(count)
  }

  private mutating func key() throws(Violation) -> String {
    guard let first = current, Self.isLower(first) || first == UInt8(ascii: "*") else { throw Violation() }
    return text { byte in
      Self.isLower(byte) || Self.isDigit(byte) || "_-.*".utf8.contains(byte)
    }
  }

  // MARK: Bare items

  private mutating func bareItem() throws(Violation) -> BareItem {
    guard let first = current else { throw Violation() }
    switch first {
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "\""): return .string(try quoted())
    case UInt8(ascii: "?"): return try boolean()
    case UInt8(ascii: ":"): return try byteSequence()
    case UInt8(ascii: "@"):
      position += 1
      guard case .integer(let seconds) = try number() else { throw Violation() }
      return .date(seconds)
    case UInt8(ascii: "%"): return try displayString()
    default: return try token()
    }
  }

  private mutating func number() throws(Violation) -> BareItem {
    let isNegative = take("-")
    let digits = text(Self.isDigit)
    guard !digits.isEmpty else { throw Violation() }
    if take(".") {
      let fraction = text(Self.isDigit)
      guard digits.utf8.count <= 12, (1...3).contains(fraction.utf8.count) else { throw Violation() }
      return .decimal("\(isNegative ? "-" : "")\(digits).\(fraction)")
    }
    guard digits.utf8.count <= 15, let value = Int64(digits) else { throw Violation() }
    return .integer(isNegative ? -value : value)
  }

  private mutating func boolean() throws(Violation) -> BareItem {
    position += 1
    if take("1") { return .boolean(true) }
    guard take("0") else { throw Violation() }
    return .boolean(false)
  }

  private mutating func quoted() throws(Violation) -> String {
    position += 1
    var content: [UInt8] = []
    while let byte = current {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: content, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let next = current, next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") else {
          throw Violation()
        }
        position += 1
        content.append(next)
      case 0x20...0x7E: content.append(byte)
      default: throw Violation()
      }
    }
    throw Violation()
  }

  private mutating func byteSequence() throws(Violation) -> BareItem {
    position += 1
    let content = text { Self.isAlpha($0) || Self.isDigit($0) || "+/=".utf8.contains($0) }
    guard take(":") else { throw Violation() }
    return .bytes(content)
  }

  private mutating func displayString() throws(Violation) -> BareItem {
    position += 1
    guard take("\"") else { throw Violation() }
    let content = text { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "\"") }
    guard take("\"") else { throw Violation() }
    return .displayString(content)
  }

  private mutating func token() throws(Violation) -> BareItem {
    guard let first = current, Self.isAlpha(first) || first == UInt8(ascii: "*") else { throw Violation() }
    return .token(
      text { Self.isAlpha($0) || Self.isDigit($0) || "!#$%&'*+-.^_`|~:/".utf8.contains($0) })
  }

  // MARK: Bytes

  private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard current == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func skip(_ isSkipped: (UInt8) -> Bool) { _ = text(isSkipped) }

  private mutating func text(_ isPart: (UInt8) -> Bool) -> String {
    let start = position
    while let byte = current, isPart(byte) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
  private static func isLower(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
  private static func isAlpha(_ byte: UInt8) -> Bool { isLower(byte | 0x20) && byte & 0x40 != 0 }
}
