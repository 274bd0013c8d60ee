import Foundation

/// Lays JSON out for people: a line for each value, two spaces for each level. Escapes of characters that can be read,
/// such as `\u00fc`, are replaced by the characters. Apart from that, only white space is changed.
package struct JSONText {
  private var text = ""
  private var depth = 0
  private let palette: Palette

  /// Returns the largest size of a layout. White space before deeply nested values could fill the memory otherwise.
  static func largestLayout(of count: Int) -> Int { 20_000_000 + 8 * count }

  /// Returns the laid out text, or `nil` when the bytes are not one JSON value, or too deeply nested for a layout.
  ///
  /// - Parameter isLaidOut: Whether the white space is changed, too, not only the colours.
  package static func format(_ bytes: [UInt8], palette: Palette, isLaidOut: Bool = true) -> String? {
    guard let tokens = JSONTokens.read(bytes) else { return nil }
    var writer = JSONText(palette: palette)
    guard isLaidOut else { return writer.painted(tokens, bytes) }
    for (index, token) in tokens.enumerated() {
      let previous = index > 0 ? tokens[index - 1].kind : nil
      var piece = String(decoding: bytes[token.range], as: UTF8.self)
      if token.kind == .string || token.kind == .key { piece = JSONEscapes.readable(piece) }
      writer.write(token, piece, after: previous)
      guard writer.text.utf8.count <= largestLayout(of: bytes.count) else { return nil }
    }
    return writer.text
  }

  private init(palette: Palette) {
    self.palette = palette
  }

  /// Returns the bytes with the tokens in their colours.
  private func painted(_ tokens: [JSONTokens.Token], _ bytes: [UInt8]) -> String {
    var text = ""
    var end = 0
    for token in tokens {
      text += String(decoding: bytes[end..<token.range.lowerBound], as: UTF8.self)
      text += palette.paint(String(decoding: bytes[token.range], as: UTF8.self), style(of: token.kind))
      end = token.range.upperBound
    }
    return text + String(decoding: bytes[end...], as: UTF8.self)
  }

  private mutating func write(
    _ token: JSONTokens.Token, _ piece: String, after previous: JSONTokens.JSONTokenKind?
  ) {
    switch token.kind {
    case .comma: text += ","
    case .colon: text += ": "
    case .close:
      depth -= 1
      if previous != .open { breakLine() }
      text += piece
    case .open, .key, .string, .number, .word:
      if previous == .open || previous == .comma { breakLine() }
      text += palette.paint(piece, style(of: token.kind))
      if token.kind == .open { depth += 1 }
    }
  }

  private func style(of kind: JSONTokens.JSONTokenKind) -> Palette.Style {
    switch kind {
    case .key: .name
    case .string: .string
    case .number, .word: .number
    case .open, .close, .colon, .comma: .plain
    }
  }

  private mutating func breakLine() {
    text += "\n"
    text += String(repeating: "  ", count: depth)
  }
}

/// Reads JSON (RFC 8259) token by token, without changing any token: the order of keys, digits of numbers and escapes
/// of strings stay the server's. The depth is limited only by memory.
package struct JSONTokens {
  package enum JSONTokenKind: Equatable, Sendable {
    case open, close, colon, comma
    case key, string, number, word
  }

  package struct Token: Equatable, Sendable {
    package let kind: JSONTokenKind
    /// The position in the bytes.
    package let range: Range<Int>
  }

  /// The tokens that are valid at the current position.
  private enum Expectation { case value, firstKey, key, colon, valueOrClose, commaOrClose, end }
  private enum Container { case object, array }

  private let bytes: [UInt8]
  private var position = 0
  private var containers: [Container] = []
  private var expectation = Expectation.value
  private var tokens: [Token] = []

  /// Returns the tokens, or `nil` when the text is not one JSON value.
  package static func read(_ bytes: [UInt8]) -> [Token]? {
    var reader = JSONTokens(bytes: bytes)
    return reader.readAll() ? reader.tokens : nil
  }

  /// Whether the text is one JSON value.
  package static func isValid(_ text: String) -> Bool { read(Array(text.utf8)) != nil }

  private init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  private mutating func readAll() -> Bool {
    while true {
      while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
      guard position < bytes.count else { return expectation == .end }
      guard readToken(bytes[position]) else { return false }
    }
  }

  private mutating func readToken(_ byte: UInt8) -> Bool {
    switch (byte, expectation) {
    case (UInt8(ascii: "{"), .value), (UInt8(ascii: "{"), .valueOrClose):
      return open(.object, expecting: .firstKey)
    case (UInt8(ascii: "["), .value), (UInt8(ascii: "["), .valueOrClose):
      return open(.array, expecting: .valueOrClose)
    case (UInt8(ascii: "}"), .firstKey), (UInt8(ascii: "}"), .commaOrClose): return close(.object)
    case (UInt8(ascii: "]"), .valueOrClose), (UInt8(ascii: "]"), .commaOrClose): return close(.array)
    case (UInt8(ascii: ","), .commaOrClose):
      add(.comma, length: 1)
      expectation = containers.last == .object ? .key : .value
      return true
    case (UInt8(ascii: ":"), .colon):
      add(.colon, length: 1)
      expectation = .value
      return true
    case (UInt8(ascii: "\""), .firstKey), (UInt8(ascii: "\""), .key):
      guard let length = stringLength() else { return false }
      add(.key, length: length)
      expectation = .colon
      return true
    case (_, .value), (_, .valueOrClose): return readScalar(byte)
    default: return false
    }
  }

  private mutating func readScalar(_ byte: UInt8) -> Bool {
    if byte == UInt8(ascii: "\"") {
      guard let length = stringLength() else { return false }
      add(.string, length: length)
    } else if let length = numberLength() {
      add(.number, length: length)
    } else if let word = ["true", "false", "null"].first(where: { bytes[position...].starts(with: $0.utf8) })
    {
      add(.word, length: word.utf8.count)
    } else {
      return false
    }
    valueEnded()
    return true
  }

  private mutating func add(_ kind: JSONTokenKind, length: Int) {
    tokens.append(Token(kind: kind, range: position..<position + length))
    position += length
  }

  private mutating func open(_ container: Container, expecting next: Expectation) -> Bool {
    add(.open, length: 1)
    containers.append(container)
    expectation = next
    return true
  }

  private mutating func close(_ container: Container) -> Bool {
    guard containers.popLast() == container else { return false }
    add(.close, length: 1)
    valueEnded()
    return true
  }

  private mutating func valueEnded() {
    expectation = containers.isEmpty ? .end : .commaOrClose
  }

  // MARK: Scalars

  /// Returns the length in bytes of the string that begins here, quotes included; `nil` if the string is invalid.
  private func stringLength() -> Int? {
    var index = position + 1
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\""): return index + 1 - position
      case UInt8(ascii: "\\"):
        guard let length = escapeLength(index) else { return nil }
        index += length
      case 0..<0x20: return nil
      default: index += 1
      }
    }
    return nil
  }

  private func escapeLength(_ index: Int) -> Int? {
    guard index + 1 < bytes.count else { return nil }
    if bytes[index + 1] == UInt8(ascii: "u") {
      let digits = bytes[(index + 2)...].prefix(4)
      return digits.count == 4 && digits.allSatisfy(\.isHexDigit) ? 6 : nil
    }
    return #""\/bfnrt"#.utf8.contains(bytes[index + 1]) ? 2 : nil
  }

  private func numberLength() -> Int? {
    var index = position
    func digits() -> Int { bytes[index...].prefix { (0x30...0x39).contains($0) }.count }
    func skip(_ signs: String) -> Bool {
      guard index < bytes.count, signs.utf8.contains(bytes[index]) else { return false }
      index += 1
      return true
    }
    _ = skip("-")
    let whole = digits()
    guard whole > 0, whole == 1 || bytes[index] != UInt8(ascii: "0") else { return nil }
    index += whole
    if skip(".") {
      let fraction = digits()
      guard fraction > 0 else { return nil }
      index += fraction
    }
    if skip("eE") {
      _ = skip("+-")
      let exponent = digits()
      guard exponent > 0 else { return nil }
      index += exponent
    }
    return index - position
  }
}

extension UInt8 {
  fileprivate var isHexDigit: Bool {
    switch self {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
  }
}

/// The escapes of JSON strings (RFC 8259 §7).
enum JSONEscapes {
  /// Returns a string, with its quotes, with readable characters instead of their `\uXXXX`. Other escapes stay, and so
  /// do the escapes of controls, white space, characters without a glyph and halves of pairs.
  static func readable(_ string: String) -> String {
    guard string.utf8.contains(UInt8(ascii: "\\")) else { return string }
    var text = String.UnicodeScalarView()
    var rest = string.unicodeScalars[...]
    while let next = rest.popFirst() {
      guard next == "\\" else {
        text.append(next)
        continue
      }
      guard let (scalar, length) = scalar(rest), isReadable(scalar) else {
        // With the character after it, which could be a backslash, too.
        text.append(next)
        if let escaped = rest.popFirst() { text.append(escaped) }
        continue
      }
      text.append(scalar)
      rest = rest.dropFirst(length)
    }
    return String(text)
  }

  /// Reads `uXXXX`, or `uXXXX\uXXXX` for a character beyond the basic plane.
  private static func scalar(_ text: Substring.UnicodeScalarView) -> (Unicode.Scalar, length: Int)? {
    guard let first = unit(text) else { return nil }
    if let scalar = Unicode.Scalar(first) { return (scalar, 5) }
    let rest = text.dropFirst(5)
    guard (0xD800..<0xDC00).contains(first), rest.first == "\\", let second = unit(rest.dropFirst()),
      (0xDC00..<0xE000).contains(second)
    else { return nil }
    let value = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
    return Unicode.Scalar(value).map { ($0, 11) }
  }

  private static func unit(_ text: Substring.UnicodeScalarView) -> UInt32? {
    guard text.first == "u" else { return nil }
    let digits = text.dropFirst().prefix(4)
    guard digits.count == 4 else { return nil }
    return UInt32(String(String.UnicodeScalarView(digits)), radix: 16)
  }

  private static func isReadable(_ scalar: Unicode.Scalar) -> Bool {
    if scalar == "\"" || scalar == "\\" { return false }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .privateUse, .surrogate,
      .unassigned:
      false
    default: true
    }
  }
}

/// The top level of JSON that arrives in pieces, as far as it tells one value from several: JSON lines have the type of
/// JSON in some services. What is not JSON may be either.
struct JSONValues: Sendable {
  private enum Place { case before, word, string, container, after }

  /// Whether a second value has begun.
  private(set) var areSeveral = false
  private var place = Place.before
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  /// Whether the text has wide units, whose bytes mean something else.
  private var isWide = false

  mutating func add(_ bytes: Data) {
    for byte in bytes where !areSeveral && !isWide { add(byte) }
  }

  private mutating func add(_ byte: UInt8) {
    if byte == 0 {
      isWide = true
    } else if isInString {
      addToString(byte)
    } else if place == .container {
      addToContainer(byte)
    } else if [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
      if place == .word { place = .after }
    } else if byte < 0x80 {
      begin(byte)
    }
  }

  private mutating func addToString(_ byte: UInt8) {
    if isEscaped {
      isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      isInString = false
      if place == .string { place = .after }
    }
  }

  private mutating func addToContainer(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): isInString = true
    case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      depth -= 1
      if depth == 0 { place = .after }
    default: break
    }
  }

  /// Reads a byte of the top level that is neither white space nor a part of a byte order mark.
  private mutating func begin(_ byte: UInt8) {
    switch (place, byte) {
    case (.after, _): areSeveral = true
    case (.word, UInt8(ascii: "{")), (.word, UInt8(ascii: "[")), (.word, UInt8(ascii: "\"")):
      areSeveral = true
    case (_, UInt8(ascii: "{")), (_, UInt8(ascii: "[")): (place, depth) = (.container, 1)
    case (_, UInt8(ascii: "\"")): (place, isInString) = (.string, true)
    default: place = .word
    }
  }
}
