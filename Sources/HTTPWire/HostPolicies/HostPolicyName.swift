/// The name of a host with a policy: ASCII, lower case, without the dot at its end.
package struct HostPolicyName: Hashable, Sendable {
  package let name: String

  /// Makes the name of a host; `nil` for an address, which does not identify a server, and for an invalid host.
  ///
  /// - Parameter host: A host of a URL, or one in another alphabet, which is encoded (RFC 3492).
  package init?(_ host: String) {
    guard let authority = Authority(host), authority.userInfo == nil, authority.port == nil, !authority.isIPv6
    else { return nil }
    var name = Substring(authority.host)
    if name.hasSuffix(".") { name.removeLast() }
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    guard let last = labels.last, labels.allSatisfy({ !$0.isEmpty }), !Self.isNumber(last) else { return nil }
    self.name = String(name)
  }

  private init(name: String) { self.name = name }

  /// The parent domain; `nil` for a single label.
  var parent: HostPolicyName? {
    guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")) else { return nil }
    return HostPolicyName(name: String(name[name.utf8.index(after: dot)...]))
  }

  /// Whether a host with such a last label is an IPv4 address in one of its spellings: `127.1`, `0x7f.1`.
  private static func isNumber(_ label: Substring) -> Bool {
    if label.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) { return true }
    guard label.hasPrefix("0x") else { return false }
    return label.dropFirst(2).utf8.allSatisfy { byte in
      (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x66)
    }
  }
}
