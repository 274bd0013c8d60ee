/// A media type with its parameters: `text/html; charset=utf-8` (RFC 9110 §8.3.1).
///
/// The type keeps its spelling and is compared with regard to case, as validation always did it.
package struct MediaType: Equatable, Sendable {
  package let type: String
  package let subtype: String
  /// In their order, names in small letters, values without quotation marks.
  package let parameters: [(name: String, value: String)]

  /// Reads a media type; `nil` unless there are exactly a type and a subtype. White space around it is not part of it.
  /// Invalid parameters are left out.
  package init?(_ text: String) {
    let semicolon = text.utf8.firstIndex(of: UInt8(ascii: ";")) ?? text.endIndex
    let parts = Self.trimmed(text[..<semicolon]).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    type = String(parts[0])
    subtype = String(parts[1])
    parameters = Self.parameters(text[semicolon...])
  }

  /// Returns the value of the first parameter of this name, which is given in lower case.
  package func parameter(_ name: String) -> String? {
    parameters.first { $0.name == name }?.value
  }

  /// Returns the `charset` of a `Content-Type` value, or `nil`. The text before the parameters is not checked.
  package static func charset(ofContentType value: String) -> String? {
    guard let semicolon = value.utf8.firstIndex(of: UInt8(ascii: ";")) else { return nil }
    return parameter("charset", in: value[semicolon...])
  }

  /// Whether a `Content-Type` value names JSON, which is UTF-8 (RFC 8259 §8.1).
  package static func isJSON(contentType value: String) -> Bool {
    guard let type = MediaType(value) else { return false }
    let (name, subtype) = (type.type.lowercased(), type.subtype.lowercased())
    return name == "application" && (subtype == "json" || subtype.hasSuffix("+json"))
  }

  /// Returns the first parameter of this name, which is given in small letters, in the text after another value.
  package static func parameter(_ name: String, in text: Substring) -> String? {
    parameters(text).first { $0.name == name }?.value
  }

  package var isWildcard: Bool { type == "*" && subtype == "*" }

  /// Whether this acceptable type matches another: `*` in this type matches every type or subtype. Parameters are
  /// ignored.
  package func matches(_ other: MediaType) -> Bool {
    (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
  }

  package static func == (left: MediaType, right: MediaType) -> Bool {
    left.type == right.type && left.subtype == right.subtype
      && left.parameters.elementsEqual(right.parameters) { $0 == $1 }
  }

  /// Reads the parameters after the type, each with its semicolon (RFC 9110 §5.6.6).
  ///
  /// - Parameter escapesOnlyQuotes: Whether a backslash in a quoted string escapes only a quotation mark and another
  ///   backslash, and is a character before any other.
  static func parameters(
    _ text: Substring, escapesOnlyQuotes: Bool = false
  ) -> [(name: String, value: String)] {
    var parameters: [(name: String, value: String)] = []
    for piece in pieces(text.utf8) {
      guard let equals = piece.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = trimmed(Substring(piece[..<equals])).lowercased()
      let value = trimmed(Substring(piece[piece.index(after: equals)...]))
      guard !name.isEmpty else { continue }
      parameters.append((name, unquoted(value, escapesOnlyQuotes)))
    }
    return parameters
  }

  /// Splits a text at its semicolons, except for those inside a quoted string (RFC 9110 §5.6.4).
  private static func pieces(_ text: Substring.UTF8View) -> [Substring.UTF8View] {
    var pieces: [Substring.UTF8View] = []
    var start = text.startIndex
    var isQuoted = false
    var isEscaped = false
    for (index, byte) in zip(text.indices, text) {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\\"), isQuoted {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      } else if byte == UInt8(ascii: ";"), !isQuoted {
        pieces.append(text[start..<index])
        start = text.index(after: index)
      }
    }
    pieces.append(text[start...])
    return pieces
  }

  private static func unquoted(_ value: Substring, _ escapesOnlyQuotes: Bool) -> String {
    guard value.utf8.first == UInt8(ascii: "\"") else { return String(value) }
    var result = ""
    var isEscaped = false
    for scalar in value.unicodeScalars.dropFirst() {
      if isEscaped {
        if escapesOnlyQuotes, scalar != "\"", scalar != "\\" { result.unicodeScalars.append("\\") }
        result.unicodeScalars.append(scalar)
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else if scalar == "\"" {
        break
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func trimmed(_ text: Substring) -> Substring {
    let isSpace = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
    let bytes = text.utf8
    let start = bytes.firstIndex { !isSpace($0) } ?? bytes.endIndex
    let end = bytes.lastIndex { !isSpace($0) }.map { bytes.index(after: $0) } ?? start
    return text[start..<end]
  }
}

/// The character sets that text is decoded from when a response names them (RFC 9110 §8.3.2).
package enum Charset: Sendable, CaseIterable {
  case utf8
  case isoLatin1
  /// With a byte order mark, or big-endian without one (RFC 2781 §4.3).
  case utf16
  case utf16BigEndian
  case utf16LittleEndian
  case utf32
  case utf32BigEndian
  case utf32LittleEndian

  /// Makes the set of this registered name, without regard to case; `nil` for any other.
  package init?(name: String) {
    switch name.lowercased() {
    case "utf-8": self = .utf8
    case "iso-8859-1": self = .isoLatin1
    case "unicode-1-1", "iso-10646-ucs-2", "utf-16": self = .utf16
    case "utf-16be": self = .utf16BigEndian
    case "utf-16le": self = .utf16LittleEndian
    case "utf-32": self = .utf32
    case "utf-32be": self = .utf32BigEndian
    case "utf-32le": self = .utf32LittleEndian
    default: return nil
    }
  }
}
