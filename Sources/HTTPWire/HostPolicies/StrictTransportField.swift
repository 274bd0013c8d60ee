/// A `Strict-Transport-Security` field (RFC 6797 §6.1).
package struct StrictTransportField: Equatable, Sendable {
  /// In seconds; 0 removes the policy.
  package let maxAge: Int64
  package let includesSubdomains: Bool

  package init(maxAge: Int64, includesSubdomains: Bool) {
    self.maxAge = maxAge
    self.includesSubdomains = includesSubdomains
  }

  /// Parses a value; `nil` if it does not follow the grammar. Unknown directives are ignored. A repeated directive
  /// and a missing `max-age` are invalid.
  package init?(_ value: String) {
    var scanner = StrictScanner(value)
    var given: [String: String?] = [:]
    while true {
      scanner.skipSpace()
      if let name = scanner.token()?.lowercased() {
        scanner.skipSpace()
        var argument: String? = nil
        if scanner.take(UInt8(ascii: "=")) {
          scanner.skipSpace()
          guard let value = scanner.value() else { return nil }
          argument = value
        }
        guard given.updateValue(argument, forKey: name) == nil else { return nil }
        scanner.skipSpace()
      }
      if scanner.isAtEnd { break }
      guard scanner.take(UInt8(ascii: ";")) else { return nil }
    }
    guard let age = given["max-age"] ?? nil, let maxAge = StrictScanner.seconds(age) else { return nil }
    // It has no value.
    if let subdomains = given["includesubdomains"], subdomains != nil { return nil }
    self.init(maxAge: maxAge, includesSubdomains: given["includesubdomains"] != nil)
  }
}
