/// A URI or a relative reference, cut into its components (RFC 3986 §3 and appendix B).
///
/// Every text can be split; it is not validated here. A component that is absent is `nil`, which is not the same as
/// empty: `http://a?` has an empty query, `http://a` has none.
package struct URIReference: Equatable, Sendable {
  package var scheme: String?
  package var authority: String?
  package var path: String
  package var query: String?
  package var fragment: String?

  /// Splits a text without changing it.
  package init(_ text: String) {
    var text = text
    self = text.withUTF8 { URIReference(bytes: $0) }
  }

  /// Parses a server's text, of a `Location` field for example: white space around it is removed, and invalid
  /// characters are percent-encoded. The authority is not, because a host has a different encoding (see ``Authority``).
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

  /// The text with each byte of path, query and fragment escaped that RFC 3986 does not allow there. A `%` that does
  /// not begin an escape is escaped, too. Existing escapes stay unchanged.
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

  /// Returns the index of the colon after a scheme (RFC 3986 §3.1), or `nil` if the text starts with none.
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

  /// Escapes the bytes that RFC 3986 §2 does not allow. Percent signs stay unchanged.
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

extension URIReference {
  /// Returns the URI that a reference means where `base` is the current one (RFC 3986 §5.2), read leniently
  /// (``init(lenient:)``). `base` should be absolute.
  package static func resolve(_ reference: String, against base: String) -> String {
    URIReference(lenient: reference).resolved(against: URIReference(lenient: base)).text
  }

  /// Returns the target of this reference, strictly: a reference with the scheme of its base is absolute all the same
  /// (RFC 3986 §5.2.2).
  package func resolved(against base: URIReference) -> URIReference {
    var target = self
    if scheme != nil {
      target.path = Self.removingDotSegments(path)
      return target
    }
    target.scheme = base.scheme
    if authority != nil {
      target.path = Self.removingDotSegments(path)
      return target
    }
    target.authority = base.authority
    if path.isEmpty {
      target.path = base.path
      target.query = query ?? base.query
    } else if path.utf8.first == UInt8(ascii: "/") {
      target.path = Self.removingDotSegments(path)
    } else {
      target.path = Self.removingDotSegments(base.merged(with: path))
    }
    return target
  }

  /// Returns the path of a relative reference appended after the last slash of this path (RFC 3986 §5.2.3).
  private func merged(with relative: String) -> String {
    if authority != nil, path.isEmpty { return "/" + relative }
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return relative }
    return String(path[...slash]) + relative
  }

  /// Removes dot segments by RFC 3986 §5.2.4, with the same five cases in the same order.
  static func removingDotSegments(_ path: String) -> String {
    guard path.utf8.contains(UInt8(ascii: ".")) else { return path }
    let slash = UInt8(ascii: "/")
    let bytes = Array(path.utf8)
    var input = bytes[...]
    var output: [UInt8] = []
    output.reserveCapacity(input.count)
    while let first = input.first {
      if input.starts(with: "../".utf8) {
        input = input.dropFirst(3)
      } else if input.starts(with: "./".utf8) {
        input = input.dropFirst(2)
      } else if input.starts(with: "/./".utf8) {
        input = input.dropFirst(2)
      } else if input.elementsEqual("/.".utf8) {
        input = bytes[input.startIndex..<input.startIndex + 1]
      } else if input.starts(with: "/../".utf8) {
        input = input.dropFirst(3)
        output.removeSubrange((output.lastIndex(of: slash) ?? 0)...)
      } else if input.elementsEqual("/..".utf8) {
        input = bytes[input.startIndex..<input.startIndex + 1]
        output.removeSubrange((output.lastIndex(of: slash) ?? 0)...)
      } else if input.elementsEqual(".".utf8) || input.elementsEqual("..".utf8) {
        break
      } else {
        let rest = input.dropFirst(first == slash ? 1 : 0)
        let end = rest.firstIndex(of: slash) ?? rest.endIndex
        output += input[..<end]
        input = input[end...]
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
