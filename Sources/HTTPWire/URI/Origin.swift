/// Scheme, host and port (RFC 6454 §4): two URLs of one origin may see each other's secrets.
package struct Origin: Hashable, Sendable {
  /// Lower case.
  package let scheme: String
  /// Lower case, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int

  package init(scheme: String, host: String, port: Int?) {
    self.scheme = scheme.lowercased()
    self.host = host.lowercased()
    self.port = port ?? (self.scheme == "https" ? 443 : 80)
  }

  /// Makes an origin of parts that are in lower case already.
  init(plainScheme scheme: String, host: String, port: Int) {
    self.scheme = scheme
    self.host = host
    self.port = port
  }
}

extension Origin {
  /// Makes the origin of an absolute http or https URL; `nil` for any other text, and when host or port cannot be
  /// one. User and password do not count.
  package init?(url: String) {
    let bytes = Array(url.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon == 4 || colon == 5,
      bytes[colon...].starts(with: "://".utf8)
    else { return nil }
    let scheme = colon == 4 ? "http" : "https"
    guard zip(bytes, scheme.utf8).allSatisfy({ FieldName.lowercased($0) == $1 }) else { return nil }
    let rest = bytes[(colon + 3)...]
    let end = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
    guard let authority = Authority(bytes: rest[..<end]) else { return nil }
    self.init(scheme: scheme, host: authority.host, port: authority.port)
  }
}
