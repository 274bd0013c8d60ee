import HTTPSystem
import HTTPWire
import Randomness
import Testing

/// Addresses as metrics, archives and errors show them (RFC 5952).
@Suite("Addresses as text") struct AddressTextTests {
  @Test(
    "The form is the canonical one",
    arguments: [
      "127.0.0.1", "192.0.2.255", "::1", "::", "2001:db8::1", "2001:db8:0:1:1:1:1:1", "2001:0:0:1::1",
      "fe80::a:b", "::ffff:192.0.2.1",
    ])
  func canonical(text: String) throws {
    let address = try #require(HostLookup.addresses(of: text, literalsOnly: true).first)
    #expect(address.text == text)
  }

  @Test("Other forms of an address have the same text")
  func others() {
    for other in ["0:0:0:0:0:0:0:1", "0000::0001", "::0:1"] {
      #expect(HostLookup.addresses(of: other, literalsOnly: true).map(\.text) == ["::1"], "\(other)")
    }
  }

  /// Compares the reader that decides about proxies with the one that connects.
  @Test("The host of a URL is read as the system reads it", .seeded) func hosts() {
    var random = Seed.generator()
    let numbers = [
      "0", "00", "1", "7", "08", "010", "0377", "0400", "255", "256", "65535", "65536", "16777215",
      "16777216",
      "4294967295", "4294967296", "0x", "0x0", "0xff", "0XFF", "0x100", "0xffffffff", "0x100000000", "a", "",
    ]
    for _ in 0..<5_000 {
      let count = Int.random(in: 1...5, using: &random)
      let host = (0..<count).compactMap { _ in numbers.randomElement(using: &random) }.joined(separator: ".")
      let system = HostLookup.addresses(of: host, literalsOnly: true).first?.bytes
      #expect(IPAddress(host: host)?.bytes == system, "\(host)")
    }
  }
}
