/// Where a request goes, read from the text of its URL: user and password are taken out, since they
/// are credentials and no part of what is sent as the target (RFC 9110 §4.2.4).
package struct WireTarget: Sendable, Equatable {
  /// The URL without user and password.
  package let url: String
  package let origin: Origin
  package let user: String?
  package let password: String?

  /// `nil` for anything but an absolute http or https URL with a host.
  package init?(_ text: String) {
    guard let origin = Origin(url: text) else { return nil }
    self.origin = origin
    let reference = text.utf8.contains(UInt8(ascii: "@")) ? URIReference(text) : nil
    guard var reference, let authority = reference.authority, let at = authority.lastIndex(of: "@") else {
      url = text
      user = nil
      password = nil
      return
    }
    let userInfo = authority[..<at]
    let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    user = PercentDecoding.text(parts[0])
    password = parts.count > 1 ? PercentDecoding.text(parts[1]) : nil
    reference.authority = String(authority[authority.index(after: at)...])
    url = reference.text
  }
}

/// The text behind percent-encoded bytes (RFC 3986 §2.1).
package enum PercentDecoding {
  /// Sequences that are no encoding stay as they are; bytes that are no UTF-8 are replaced.
  package static func text(_ encoded: some StringProtocol) -> String {
    var bytes: [UInt8] = []
    var rest = Array(encoded.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2,
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16), digits.first != UInt8(ascii: "+")
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
