/// One element of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
package struct WebSocketExtension: Sendable, Equatable {
  package struct Parameter: Sendable, Equatable {
    package var name: String
    /// `nil` if there is none; without the quotation marks.
    package var value: String?

    package init(_ name: String, _ value: String? = nil) {
      self.name = name
      self.value = value
    }

    var text: String { value.map { "\(name)=\($0)" } ?? name }
  }

  package var name: String
  package var parameters: [Parameter] = []

  package init(_ name: String, _ parameters: [Parameter] = []) {
    self.name = name
    self.parameters = parameters
  }

  /// The element as it is sent.
  package var text: String { ([name] + parameters.map(\.text)).joined(separator: "; ") }

  /// Reads the value of a field, or the joined values of several fields. Returns `nil` if it is malformed.
  package static func list(_ text: String) -> [WebSocketExtension]? {
    var scanner = ExtensionScanner(bytes: Array(text.utf8))
    var result: [WebSocketExtension] = []
    while !scanner.isAtEnd {
      // A list may have empty elements (RFC 9110 §5.6.1.2).
      if scanner.skip(",") { continue }
      guard let name = scanner.token() else { return nil }
      var element = WebSocketExtension(name)
      while scanner.skip(";") {
        guard let parameter = scanner.token() else { return nil }
        guard scanner.skip("=") else {
          element.parameters.append(Parameter(parameter))
          continue
        }
        guard let value = scanner.value() else { return nil }
        element.parameters.append(Parameter(parameter, value))
      }
      result.append(element)
      guard scanner.isAtEnd || scanner.skip(",") else { return nil }
    }
    return result.isEmpty ? nil : result
  }
}

/// Reads tokens and quoted strings. White space around them is skipped.
private struct ExtensionScanner {
  let bytes: [UInt8]
  private var position = 0

  init(bytes: [UInt8]) {
    self.bytes = bytes
    skipSpace()
  }

  var isAtEnd: Bool { position == bytes.count }

  mutating func skip(_ mark: Unicode.Scalar) -> Bool {
    guard position < bytes.count, bytes[position] == UInt8(ascii: mark) else { return false }
    position += 1
    skipSpace()
    return true
  }

  mutating func token() -> String? {
    let start = position
    while position < bytes.count, HeaderFieldRules.isTokenByte(bytes[position]) { position += 1 }
    guard position > start else { return nil }
    defer { skipSpace() }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Reads a token, or a quoted string whose content is a token (RFC 6455 §9.1).
  mutating func value() -> String? {
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return token() }
    position += 1
    var content: [UInt8] = []
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      if bytes[position] == UInt8(ascii: "\\") { position += 1 }
      guard position < bytes.count, HeaderFieldRules.isTokenByte(bytes[position]) else { return nil }
      content.append(bytes[position])
      position += 1
    }
    guard position < bytes.count, !content.isEmpty else { return nil }
    position += 1
    skipSpace()
    return String(decoding: content, as: UTF8.self)
  }

  private mutating func skipSpace() {
    while position < bytes.count, bytes[position] == 0x20 || bytes[position] == 0x09 { position += 1 }
  }
}
