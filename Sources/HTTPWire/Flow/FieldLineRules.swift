/// Strict reading of single lines of a head or a trailer section. A line may end with CRLF, LF or nothing
/// (RFC 9112 §2.2).
enum FieldLineRules {
  /// A field line that was accepted: its name and its value without the white space around it (RFC 9112 §5.1).
  struct Field {
    let name: UnsafeRawBufferPointer
    let value: UnsafeRawBufferPointer

    func isNamed(_ other: StaticString) -> Bool { FieldName.equal(name, lowercase: other) }
  }

  /// Reads a field line.
  static func field(_ line: UnsafeRawBufferPointer) throws(HeadViolation) -> Field {
    let end = contentEnd(of: line)
    var colon = 0
    while colon < end, HeaderFieldRules.isTokenByte(line[colon]) { colon += 1 }
    guard colon > 0, colon < end, line[colon] == UInt8(ascii: ":") else {
      throw nameViolation(line, end, tokenEnd: colon)
    }
    let name = UnsafeRawBufferPointer(rebasing: line[0..<colon])
    let value = UnsafeRawBufferPointer(rebasing: line[colon + 1..<end])
    if let byte = forbiddenByte(in: value) { throw .fieldValue(field: text(name), character: byte) }
    return Field(name: name, value: trimmed(value))
  }

  /// Checks a line that continues the field before it.
  static func checkContinuation(
    _ line: UnsafeRawBufferPointer, of field: @autoclosure () -> String
  ) throws(HeadViolation) {
    let value = UnsafeRawBufferPointer(rebasing: line[0..<contentEnd(of: line)])
    if let byte = forbiddenByte(in: value) { throw .fieldValue(field: field(), character: byte) }
  }

  /// Reads the version and the status of a status line (RFC 9112 §4). The reason phrase, and the space before it, may
  /// be missing.
  static func status(_ line: UnsafeRawBufferPointer) throws(HeadViolation) -> (
    code: Int, version: HTTPVersion
  ) {
    let end = contentEnd(of: line)
    guard let (version, versionEnd) = version(line, end) else { throw .statusLine }
    var at = versionEnd
    while at < end, line[at] == 0x20 { at += 1 }
    guard at > versionEnd, at + 3 <= end, at + 3 == end || line[at + 3] == 0x20 else { throw .statusLine }
    var code = 0
    for byte in line[at..<at + 3] {
      guard byte >= 0x30, byte <= 0x39 else { throw .statusLine }
      code = code * 10 + Int(byte - 0x30)
    }
    let reason = UnsafeRawBufferPointer(rebasing: line[at + 3..<end])
    guard forbiddenByte(in: reason) == nil else { throw .statusLine }
    guard code >= 100 else { throw .statusCode(code) }
    return (code, version)
  }

  static func isEmpty(_ line: UnsafeRawBufferPointer) -> Bool { contentEnd(of: line) == 0 }

  static func isContinuation(_ line: UnsafeRawBufferPointer) -> Bool {
    line.first == 0x20 || line.first == 0x09
  }

  static func text(_ bytes: UnsafeRawBufferPointer) -> String { String(decoding: bytes, as: UTF8.self) }

  static func trimmed(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var start = 0
    var end = value.count
    while start < end, value[start] == 0x20 || value[start] == 0x09 { start += 1 }
    while end > start, value[end - 1] == 0x20 || value[end - 1] == 0x09 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: value[start..<end])
  }

  /// Reads `HTTP/1.x`, or `HTTP/2` and `HTTP/3` without a minor version, which is how libcurl writes the heads of
  /// those.
  private static func version(_ line: UnsafeRawBufferPointer, _ end: Int) -> (HTTPVersion, end: Int)? {
    guard end > 6, line[0] == 0x48, line[1] == 0x54, line[2] == 0x54, line[3] == 0x50, line[4] == 0x2F
    else { return nil }
    switch line[5] {
    case 0x31:
      guard end > 8, line[6] == 0x2E, line[7] >= 0x30, line[7] <= 0x39 else { return nil }
      return (line[7] == 0x30 ? .http1_0 : .http1_1, 8)
    case 0x32: return (.http2, 6)
    case 0x33: return (.http3, 6)
    default: return nil
    }
  }

  private static func contentEnd(of line: UnsafeRawBufferPointer) -> Int {
    var end = line.count
    if end > 0, line[end - 1] == 0x0A { end -= 1 }
    if end < line.count, end > 0, line[end - 1] == 0x0D { end -= 1 }
    return end
  }

  private static func nameViolation(
    _ line: UnsafeRawBufferPointer, _ end: Int, tokenEnd: Int
  ) -> HeadViolation {
    guard let colon = line[0..<end].firstIndex(of: UInt8(ascii: ":")) else { return .missingColon }
    let isSpaced = tokenEnd > 0 && line[tokenEnd..<colon].allSatisfy { $0 == 0x20 || $0 == 0x09 }
    let shown = isSpaced ? 0..<tokenEnd : 0..<colon
    let name = text(UnsafeRawBufferPointer(rebasing: line[shown]))
    return isSpaced ? .spaceBeforeColon(name) : .fieldName(name)
  }

  /// Returns the first NUL, CR or LF. Other control characters stay, as RFC 9110 §5.5 allows and browsers do.
  private static func forbiddenByte(in value: UnsafeRawBufferPointer) -> UInt8? {
    var index = 0
    while value.count - index >= 8 {
      let word = value.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      if mayHoldForbiddenByte(word) { break }
      index += 8
    }
    return value[index...].first { $0 == 0x00 || $0 == 0x0D || $0 == 0x0A }
  }

  /// Whether one of eight bytes is less than 0x0E; true for some words of which none is.
  private static func mayHoldForbiddenByte(_ word: UInt64) -> Bool {
    (word &- 0x0E0E_0E0E_0E0E_0E0E) & ~word & 0x8080_8080_8080_8080 != 0
  }
}
