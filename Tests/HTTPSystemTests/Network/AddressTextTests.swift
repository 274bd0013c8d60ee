import HTTPSystem
import HTTPWire
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
}
