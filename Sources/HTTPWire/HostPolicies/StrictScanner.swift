/// A strict scanner for fields with parameters: tokens, quoted strings, delimiters (RFC 9110 §5.6). Invalid fields
/// are refused as a whole, unlike challenges and `Cache-Control`, which have lenient scanners.
struct StrictScanner {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = Substring(text).utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func skipSpace() {
    while let byte = rest.first, byte == 0x20 || byte == 0x09 { rest.removeFirst() }
  }

  /// Takes `byte` if it is the next one.
  mutating func take(_ byte: UInt8) -> Bool {
    guard rest.first == byte else { return false }
    rest.removeFirst()
    return true
  }

  /// Reads the next token; `nil` when there is none.
  mutating func token() -> String? {
    let end = rest.firstIndex { !HeaderFieldRules.isTokenByte($0) } ?? rest.endIndex
    guard end > rest.startIndex else { return nil }
    defer { rest = rest[end...] }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  /// Reads the text of the next quoted string; `nil` when there is none, or one without end.
  mutating func quotedString() -> String? {
    var scan = rest
    guard scan.popFirst() == UInt8(ascii: "\"") else { return nil }
    var text: [UInt8] = []
    while let byte = scan.popFirst() {
      switch byte {
      case UInt8(ascii: "\""):
        rest = scan
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        guard let escaped = scan.popFirst() else { return nil }
        text.append(escaped)
      default: text.append(byte)
      }
    }
    return nil
  }

  /// Reads a token or a quoted string.
  mutating func value() -> String? { token() ?? quotedString() }

  /// Returns a decimal number of seconds, clamped to the largest one. `nil` for any other text.
  static func seconds(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int64(text) ?? .max
  }
}

extension Int64 {
  /// Returns this second plus `seconds`, clamped to the largest one.
  func later(by seconds: Int64) -> Int64 {
    let sum = addingReportingOverflow(seconds)
    return sum.overflow ? .max : sum.partialValue
  }
}
