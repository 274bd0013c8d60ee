/// The escapes of JSON strings (RFC 8259 §7).
enum JSONEscapes {
  /// Returns a string, with its quotes, in which `\uXXXX` stands for no character that can be read. Other escapes stay,
  /// and so do those of controls, of white space, of characters without a glyph and of halves of pairs.
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
