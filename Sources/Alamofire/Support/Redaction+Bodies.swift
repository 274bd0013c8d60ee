import Foundation

extension Redaction {
  /// Returns the text of a body without its secrets.
  ///
  /// The values of secret members of JSON and of secret fields of a form are masked, also in a text that was cut off.
  /// The form may be URL-encoded or multipart. JSON and other texts lose the secrets of the URLs in them.
  ///
  /// - Parameters:
  ///   - text:        The body, or its beginning.
  ///   - contentType: The value of `Content-Type`, if it is known.
  public func body(_ text: String, contentType: String? = nil) -> String {
    let type = contentType?.lowercased() ?? ""
    if type.contains("x-www-form-urlencoded") { return form(text) }
    if type.hasPrefix("multipart/"), let contentType, let masked = multipart(text, contentType: contentType) {
      return masked
    }
    let first = text.first { !$0.isWhitespace }
    if type.contains("json") || first == "{" || first == "[" {
      // Some encoders escape the ampersand, which divides the items of a query.
      return urls(in: json(text).replacingOccurrences(of: #"\u0026"#, with: "&"))
    }
    return urls(in: text)
  }

  private func json(_ text: String) -> String {
    var scanner = JSONSecretScanner(bytes: Array(text.utf8))
    return scanner.masked { name in isSecret(headerField: name) }
  }
}

/// Replaces the values of some members in a text of JSON. The text need not be complete or valid.
private struct JSONSecretScanner {
  let bytes: [UInt8]
  private var index = 0
  private var output: [UInt8] = []

  init(bytes: [UInt8]) {
    self.bytes = bytes
    output.reserveCapacity(bytes.count)
  }

  mutating func masked(_ isSecret: (String) -> Bool) -> String {
    while index < bytes.count {
      guard bytes[index] == UInt8(ascii: "\"") else {
        output.append(bytes[index])
        index += 1
        continue
      }
      let name = string()
      output += bytes[name]
      guard let value = valueStart() else { continue }
      output += bytes[name.upperBound..<value]
      index = value
      guard isSecret(String(decoding: bytes[name], as: UTF8.self)) else { continue }
      skipValue()
      output += Array("\"\(Redaction.mask)\"".utf8)
    }
    return String(decoding: output, as: UTF8.self)
  }

  /// Skips a string, and returns its range with its quotes.
  private mutating func string() -> Range<Int> {
    let start = index
    index += 1
    while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    index = min(index + 1, bytes.count)
    return start..<index
  }

  /// Returns the start of the value behind a name; `nil` if the string was not the name of a member.
  private func valueStart() -> Int? {
    var place = index
    while place < bytes.count, Self.isBlank(bytes[place]) { place += 1 }
    guard place < bytes.count, bytes[place] == UInt8(ascii: ":") else { return nil }
    place += 1
    while place < bytes.count, Self.isBlank(bytes[place]) { place += 1 }
    return place
  }

  /// Skips a value: up to the comma or bracket that ends it.
  private mutating func skipValue() {
    var depth = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\""):
        _ = string()
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return }
        depth -= 1
      case UInt8(ascii: ","):
        if depth == 0 { return }
      default: break
      }
      index += 1
    }
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }
}
