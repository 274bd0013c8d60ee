/// A URI or a relative reference, cut into its components (RFC 3986 §3 and appendix B).
///
/// Every text can be cut; nothing is validated here. A component that is absent is `nil`, which is not the
/// same as empty: `http://a?` has an empty query, `http://a` has none.
package struct URIReference: Equatable, Sendable {
  package var scheme: String?
  package var authority: String?
  package var path: String
  package var query: String?
  package var fragment: String?

  /// Cuts a text as it is.
  package init(_ text: String) {
    var text = text
    self = text.withUTF8 { URIReference(bytes: $0) }
  }

  /// Parses a server's text, of a `Location` field for example: white space around it is removed, and invalid
  /// characters are percent-encoded. The authority is not, because a host has an encoding of its own (see
  /// ``Authority``).
  package init(lenient text: String) {
    guard text.utf8.contains(where: Self.mustBeEscaped) else {
      self.init(text)
      return
    }
    self.init(Self.trimmed(text))
    path = Self.escaped(path)
    query = query.map(Self.escaped)
    fragment = fragment.map(Self.escaped)
  }

  /// The components put together again (RFC 3986 §5.3).
  package var text: String {
    var text = ""
    if let scheme { text += scheme + ":" }
    if let authority { text += "//" + authority }
    text += path
    if let query { text += "?" + query }
    if let fragment { text += "#" + fragment }
    return text
  }

  /// The text in which each byte of path, query and fragment that RFC 3986 does not allow there is escaped, and so is
  /// a `%` that begins no escape. Escapes stay as they are.
  package var strictText: String {
    var strict = self
    strict.path = PercentEncoding.path.repair(path)
    strict.query = query.map(PercentEncoding.query.repair)
    strict.fragment = fragment.map(PercentEncoding.query.repair)
    return strict.text
  }

  private init(bytes: UnsafeBufferPointer<UInt8>) {
    var rest = bytes[...]
    fragment = Self.cutOff(&rest, from: UInt8(ascii: "#"))
    query = Self.cutOff(&rest, from: UInt8(ascii: "?"))
    scheme = nil
    if let colon = Self.endOfScheme(rest) {
      scheme = String(decoding: rest[..<colon], as: UTF8.self)
      rest = rest[(colon + 1)...]
    }
    authority = nil
    if rest.starts(with: [UInt8(ascii: "/"), UInt8(ascii: "/")]) {
      rest = rest.dropFirst(2)
      let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
      authority = String(decoding: rest[..<end], as: UTF8.self)
      rest = rest[end...]
    }
    path = String(decoding: rest, as: UTF8.self)
  }

  private static func cutOff(
    _ bytes: inout Slice<UnsafeBufferPointer<UInt8>>, from mark: UInt8
  ) -> String? {
    guard let index = bytes.firstIndex(of: mark) else { return nil }
    defer { bytes = bytes[..<index] }
    return String(decoding: bytes[(index + 1)...], as: UTF8.self)
  }

  /// Returns the index of the colon behind a scheme (RFC 3986 §3.1), or `nil` if the text starts with none.
  private static func endOfScheme(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > bytes.startIndex,
      isLetter(bytes[bytes.startIndex])
    else { return nil }
    let isScheme = bytes[..<colon].allSatisfy { byte in
      isLetter(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "+")
        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
    }
    return isScheme ? colon : nil
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte | 0x20)
  }
}

extension URIReference {
  private static func trimmed(_ text: String) -> String {
    let bytes = text.utf8
    let start = bytes.firstIndex { $0 > 0x20 } ?? bytes.endIndex
    let end = bytes.lastIndex { $0 > 0x20 }.map { bytes.index(after: $0) } ?? start
    return String(text[start..<end])
  }

  /// Escapes the bytes that RFC 3986 §2 does not know. Percent signs stay as they are.
  private static func escaped(_ component: String) -> String {
    guard component.utf8.contains(where: mustBeEscaped) else { return component }
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    result.reserveCapacity(component.utf8.count + 16)
    for byte in component.utf8 {
      if mustBeEscaped(byte) {
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        result.append(byte)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func mustBeEscaped(_ byte: UInt8) -> Bool {
    switch byte {
    case ...0x20, 0x7F...: true
    case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
      UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      true
    default: false
    }
  }
}
