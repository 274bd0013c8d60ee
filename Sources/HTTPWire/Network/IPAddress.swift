extension IPAddress {
  /// Returns the addresses of `localhost` and its subdomains (RFC 6761 §6.3); `nil` for other hosts. Ignores case and a
  /// dot at the end.
  package static func loopback(of host: String) -> [IPAddress]? {
    // Most hosts end with another letter, and nothing is created for them.
    let last = host.utf8.last { $0 != UInt8(ascii: ".") }
    guard let last, last | 0x20 == UInt8(ascii: "t") else { return nil }
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

extension IPAddress {
  /// Whether the address belongs to the public Internet. A public address is not private, loopback, link-local or
  /// reserved, and embeds no such address (RFC 6890 and its registries).
  package var isPublic: Bool {
    switch family {
    case .v4: Self.isPublic(v4: bytes[...])
    case .v6: isPublicV6
    }
  }

  private static func isPublic(v4 bytes: ArraySlice<UInt8>) -> Bool {
    let address = bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return !reservedV4.contains { network, length in (address ^ network) >> (32 - length) == 0 }
  }

  private static let reservedV4: [(UInt32, UInt32)] = [
    (0x0000_0000, 8),  // this network
    (0x0A00_0000, 8),  // private, RFC 1918
    (0x6440_0000, 10),  // shared with a provider, RFC 6598
    (0x7F00_0000, 8),  // this machine
    (0xA9FE_0000, 16),  // this link, and the metadata of clouds
    (0xAC10_0000, 12),  // private
    (0xC000_0000, 24),  // protocol assignments
    (0xC000_0200, 24),  // documentation
    (0xC058_6300, 24),  // 6to4 relays
    (0xC0A8_0000, 16),  // private
    (0xC612_0000, 15),  // benchmarks
    (0xC633_6400, 24),  // documentation
    (0xCB00_7100, 24),  // documentation
    (0xE000_0000, 4),  // multicast
    (0xF000_0000, 4),  // reserved, and broadcast
  ]

  private var isPublicV6: Bool {
    // Addresses of the other family in this one's clothes: mapped, compatible, translated (NAT64), 6to4.
    if starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) { return Self.isPublic(v4: bytes[12...]) }
    if starts(with: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) { return Self.isPublic(v4: bytes[12...]) }
    if starts(with: [0x20, 0x02]) { return Self.isPublic(v4: bytes[2..<6]) }
    // Only 2000::/3 is given out to the public; within it Teredo, benchmarks, ORCHID and documentation are not.
    guard bytes[0] & 0xE0 == 0x20 else { return false }
    if starts(with: [0x20, 0x01]), bytes[2] & 0xFE == 0 { return false }
    if starts(with: [0x20, 0x01, 0x0D, 0xB8]) { return false }
    return !(starts(with: [0x3F, 0xFF]) && bytes[2] & 0xF0 == 0)
  }

  /// Whether the address is valid on one link only, so that it needs a zone (RFC 4291 §2.5.6).
  package var isLinkLocal: Bool { family == .v6 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 }

  private func starts(with prefix: [UInt8]) -> Bool { bytes.starts(with: prefix) }
}
