/// Reads the parts of which fields with parameters are made: tokens, quoted strings, what stands between them (RFC
/// 9110 §5.6). Strict, where what is against the grammar has to be refused as a whole; challenges and `Cache-Control`
/// are read by scanners that go on.
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

  /// The next token; `nil` when there is none.
  mutating func token() -> String? {
    let end = rest.firstIndex { !HeaderFieldRules.isTokenByte($0) } ?? rest.endIndex
    guard end > rest.startIndex else { return nil }
    defer { rest = rest[end...] }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  /// The text of the next quoted string; `nil` when there is none, or one without end.
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

  /// A token or a quoted string.
  mutating func value() -> String? { token() ?? quotedString() }

  /// A number of seconds in decimal digits; one that is too large is the largest. `nil` for anything else.
  static func seconds(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int64(text) ?? .max
  }
}

extension Int64 {
  /// The second that lies so many seconds after this one; the last there is, when it lies beyond.
  func later(by seconds: Int64) -> Int64 {
    let sum = addingReportingOverflow(seconds)
    return sum.overflow ? .max : sum.partialValue
  }
}
