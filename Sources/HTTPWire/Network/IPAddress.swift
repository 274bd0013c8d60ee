extension IPAddress {
  /// Returns the addresses of `localhost` and its subdomains (RFC 6761 §6.3); `nil` for other hosts. Case and a dot
  /// at the end make no difference.
  package static func loopback(of host: String) -> [IPAddress]? {
    let name = host.lowercased()
    let relative = name.hasSuffix(".") ? name.dropLast() : name[...]
    let labels = relative.split(separator: ".", omittingEmptySubsequences: false)
    guard labels.last == "localhost", !labels.contains("") else { return nil }
    return [
      IPAddress(.v4, bytes: [127, 0, 0, 1]), IPAddress(.v6, bytes: [UInt8](repeating: 0, count: 15) + [1]),
    ].compactMap { $0 }
  }
}

/// An address of the Internet Protocol, in network order.
package struct IPAddress: Sendable, Hashable {
  package enum Family: UInt8, Sendable, CaseIterable {
    case v4 = 2
    case v6 = 10

    package var byteCount: Int {
      switch self {
      case .v4: 4
      case .v6: 16
      }
    }
  }

  package let family: Family
  package let bytes: [UInt8]
  /// The link of a link-local address (RFC 4007 §11); 0 for all others.
  package let zone: UInt32

  /// Makes an address; `nil` unless there are as many bytes as the family has.
  package init?(_ family: Family, bytes: [UInt8], zone: UInt32 = 0) {
    guard bytes.count == family.byteCount else { return nil }
    self.family = family
    self.bytes = bytes
    self.zone = zone
  }
}
