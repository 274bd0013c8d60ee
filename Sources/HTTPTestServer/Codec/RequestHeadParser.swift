import HTTPWire

/// A parser of request heads in the bytes received so far.
enum RequestHeadParser {
  /// The result of reading the beginning of a buffer.
  enum Outcome: Equatable {
    /// The head is not complete yet.
    case incomplete
    /// A head, and its length in bytes.
    case head(RequestHead, length: Int)
  }

  /// The largest head that is read, in bytes.
  static let limit = 256 * 1024

  /// Reads the head at the front of `bytes`. Empty lines before it are skipped, and a bare LF ends a
  /// line as CRLF does (RFC 9112 §2.2).
  static func parse(_ bytes: [UInt8]) throws(RequestRefusal) -> Outcome {
    var start = 0
    while start < bytes.count, bytes[start] == 0x0D || bytes[start] == 0x0A { start += 1 }
    // The handshake of a TLS client may never hold a line end, and the client waits for an answer.
    if start < bytes.count, !isTokenByte(bytes[start]) {
      throw .badRequestLine("the first byte is \(bytes[start])")
    }
    var lines: [ArraySlice<UInt8>] = []
    var position = start
    while let end = bytes[position...].firstIndex(of: 0x0A) {
      let hasReturn = end > position && bytes[end - 1] == 0x0D
      let line = bytes[position..<(hasReturn ? end - 1 : end)]
      position = end + 1
      if line.isEmpty {
        return .head(try head(of: lines), length: position)
      }
      lines.append(line)
      if position - start > limit { throw .headTooLarge }
    }
    if bytes.count - start > limit { throw .headTooLarge }
    return .incomplete
  }

  private static func head(of lines: [ArraySlice<UInt8>]) throws(RequestRefusal) -> RequestHead {
    let requestLine = text(of: lines.first ?? [])
    let parts = requestLine.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty, parts[0].utf8.allSatisfy(isTokenByte)
    else { throw .badRequestLine(requestLine) }
    var head = RequestHead(
      method: String(parts[0]), target: String(parts[1]), minorVersion: try minorVersion(of: parts[2]),
      headers: [])
    head.headers.reserveCapacity(lines.count - 1)
    for line in lines.dropFirst() { head.headers.append(try field(of: line)) }
    return head
  }

  private static func minorVersion(of text: Substring) throws(RequestRefusal) -> Int {
    switch text {
    case "HTTP/1.1": return 1
    case "HTTP/1.0": return 0
    default:
      throw text.hasPrefix("HTTP/")
        ? .unsupportedVersion(String(text)) : .badRequestLine(String(text))
    }
  }

  private static func field(of line: ArraySlice<UInt8>) throws(RequestRefusal) -> HTTPHeader {
    guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex,
      line[..<colon].allSatisfy(isTokenByte)
    else { throw .badField(text(of: line)) }
    return HTTPHeader(
      name: text(of: line[..<colon]), value: trimmed(text(of: line[(colon + 1)...])))
  }

  /// Decodes UTF-8, or ISO Latin 1 where the bytes are not UTF-8, so that none is lost.
  static func text(of bytes: ArraySlice<UInt8>) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }

  /// Whether a token may hold the byte (RFC 9110 §5.6.2).
  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}
