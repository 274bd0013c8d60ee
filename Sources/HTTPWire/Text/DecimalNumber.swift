/// Numbers of decimal digits alone, as the grammars of HTTP have them. Swift's initializers also accept signs.
enum DecimalNumber {
  /// Returns a number; `nil` for any other text, and for a number that is too large.
  static func whole(_ text: some StringProtocol) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int64(text)
  }

  /// Returns a port, from 1 to 65535; `nil` for any other text.
  static func port(_ text: some StringProtocol) -> Int? {
    whole(text).flatMap { (1...65_535).contains($0) ? Int($0) : nil }
  }
}
