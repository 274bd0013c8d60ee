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
    // Every delimiter starts with a line break, but for the first, which may open the body.
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
