import HTTPWire

/// Reads `multipart/form-data` (RFC 7578).
enum MultipartParser {
  struct Part: Equatable, Sendable {
    var name: String
    /// `nil` for a plain field.
    var fileName: String?
    var headers: [HTTPHeader]
    var body: [UInt8]
  }

  /// Returns the parts that are complete and have a name; none where the boundary is missing.
  static func parts(of body: [UInt8], boundary: String) -> [Part] {
    guard !boundary.isEmpty else { return [] }
    // Every delimiter starts with a line break, except for the first, which may open the body.
    let bytes = Array("\r\n".utf8) + body
    let delimiter = Array("\r\n--\(boundary)".utf8)
    var parts: [Part] = []
    guard var position = find(delimiter, in: bytes, from: 0).map({ $0 + delimiter.count }) else { return [] }
    while !bytes[position...].starts(with: [0x2D, 0x2D]), let end = find(delimiter, in: bytes, from: position)
    {
      if let part = part(bytes[position..<end]) { parts.append(part) }
      position = end + delimiter.count
    }
    return parts
  }

  private static func part(_ bytes: ArraySlice<UInt8>) -> Part? {
    // The delimiter is followed by the end of its line, the head, an empty line and the body.
    guard let lineEnd = bytes.firstIndex(of: 0x0A) else { return nil }
    var position = lineEnd + 1
    var headers: [HTTPHeader] = []
    while let end = bytes[position...].firstIndex(of: 0x0A) {
      var line = bytes[position..<end]
      if line.last == 0x0D { line.removeLast() }
      position = end + 1
      if line.isEmpty { return part(headers, body: [UInt8](bytes[position...])) }
      guard let colon = line.firstIndex(of: 0x3A) else { return nil }
      headers.append(
        HTTPHeader(
          name: RequestHeadParser.text(of: line[..<colon]),
          value: trimmed(RequestHeadParser.text(of: line[(colon + 1)...]))))
    }
    return nil
  }

  private static func part(_ headers: [HTTPHeader], body: [UInt8]) -> Part? {
    guard let field = headers.first(where: { FieldName.equal($0.name, "Content-Disposition") }) else {
      return nil
    }
    let disposition = MediaType(field.value)
    guard let name = disposition.parameter("name") else { return nil }
    return Part(name: name, fileName: disposition.parameter("filename"), headers: headers, body: body)
  }

  private static func find(_ pattern: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    guard let first = pattern.first, bytes.count >= pattern.count else { return nil }
    var position = start
    while position <= bytes.count - pattern.count,
      let candidate = bytes[position...(bytes.count - pattern.count)].firstIndex(of: first)
    {
      if bytes[candidate..<(candidate + pattern.count)].elementsEqual(pattern) { return candidate }
      position = candidate + 1
    }
    return nil
  }
}

/// The parsed value of a `Content-Type` field (RFC 9110 §8.3.1), or of another field of that form.
struct MediaType: Equatable, Sendable {
  private struct Parameter: Equatable, Sendable {
    let name: String
    let value: String
  }

  /// The type and subtype in lowercase, without parameters.
  let essence: String
  private let parameters: [Parameter]

  init(_ value: String) {
    var pieces = Self.split(value, at: ";")[...]
    essence = trimmed(pieces.popFirst() ?? "").lowercased()
    parameters = pieces.compactMap { piece in
      guard let sign = piece.firstIndex(of: "=") else { return nil }
      let value = trimmed(piece[piece.index(after: sign)...])
      return Parameter(name: trimmed(piece[..<sign]), value: Self.unquoted(value))
    }
  }

  /// Returns the value of a parameter, without quotes; names are compared without regard to case.
  func parameter(_ name: String) -> String? {
    parameters.first { FieldName.equal($0.name, name) }?.value
  }

  /// Splits at separators outside of quotes.
  static func split(_ value: String, at separator: Character) -> [String] {
    var pieces = [""]
    var isQuoted = false
    var isEscaped = false
    for character in value {
      if character == separator, !isQuoted {
        pieces.append("")
        continue
      }
      pieces[pieces.count - 1].append(character)
      if isEscaped {
        isEscaped = false
      } else if character == "\\", isQuoted {
        isEscaped = true
      } else if character == "\"" {
        isQuoted.toggle()
      }
    }
    return pieces
  }

  /// Returns a quoted string without its quotes (RFC 9110 §5.6.4), or any other text unchanged.
  static func unquoted(_ value: String) -> String {
    guard value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") else { return value }
    var result = ""
    var isEscaped = false
    for character in value.dropFirst().dropLast() {
      if character == "\\", !isEscaped {
        isEscaped = true
      } else {
        result.append(character)
        isEscaped = false
      }
    }
    return result
  }
}

/// Percent-coding as URLs and forms use it (RFC 3986 §2.1, and the form coding of HTML).
enum PercentCoding {
  /// Decodes `%XX`, and `+` as a space if `plusIsSpace`. Invalid escapes are left unchanged.
  static func decode(_ text: some StringProtocol, plusIsSpace: Bool) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count)
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == 0x25, rest.count >= 2, let high = hexValue(rest[rest.startIndex]),
        let low = hexValue(rest[rest.startIndex + 1])
      {
        bytes.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte == 0x2B && plusIsSpace ? 0x20 : byte)
      }
    }
    return RequestHeadParser.text(of: bytes[...])
  }

  /// Splits `a=1&b=2` into decoded pairs, in their order; a part without `=` has an empty value.
  static func pairs(_ text: some StringProtocol) -> [(name: String, value: String)] {
    text.split(separator: "&").map { part in
      let name = part.prefix { $0 != "=" }
      let value = part.dropFirst(name.count + 1)
      return (decode(name, plusIsSpace: true), decode(value, plusIsSpace: true))
    }
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
  }
}
