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

  /// `nil` unless there are as many bytes as the family has.
  package init?(_ family: Family, bytes: [UInt8], zone: UInt32 = 0) {
    guard bytes.count == family.byteCount else { return nil }
    self.family = family
    self.bytes = bytes
    self.zone = zone
  }
}
