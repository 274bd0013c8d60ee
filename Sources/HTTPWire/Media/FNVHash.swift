/// The FNV-1a hash of bytes, 64 bits. Collisions can be produced on purpose, so it proves nothing to a peer.
package struct FNVHash: Sendable {
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  package init(_ text: some StringProtocol) {
    for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }

  /// The hash as hexadecimal digits.
  package var text: String { String(value, radix: 16) }
}
