import HTTPWire
import Testing

@Suite struct AddressScopeTests {
  static func v4(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> IPAddress? {
    IPAddress(.v4, bytes: [a, b, c, d])
  }

  static func v6(_ groups: UInt16...) -> IPAddress? {
    IPAddress(.v6, bytes: groups.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] })
  }

  @Test(
    "An address that is not public is detected",
    arguments: [
      v4(0, 0, 0, 0), v4(10, 0, 0, 1), v4(10, 255, 255, 255), v4(100, 64, 0, 1), v4(100, 127, 255, 255),
      v4(127, 0, 0, 1), v4(127, 255, 0, 1), v4(169, 254, 169, 254), v4(172, 16, 0, 1), v4(172, 31, 255, 255),
      v4(192, 168, 1, 1), v4(198, 18, 0, 1), v4(198, 19, 255, 255), v4(192, 0, 2, 7), v4(224, 0, 0, 1),
      v4(240, 0, 0, 1), v4(255, 255, 255, 255),
      v6(0, 0, 0, 0, 0, 0, 0, 0), v6(0, 0, 0, 0, 0, 0, 0, 1), v6(0xFC00, 0, 0, 0, 0, 0, 0, 1),
      v6(0xFD12, 0, 0, 0, 0, 0, 0, 1), v6(0xFE80, 0, 0, 0, 0, 0, 0, 1), v6(0xFEC0, 0, 0, 0, 0, 0, 0, 1),
      v6(0xFF02, 0, 0, 0, 0, 0, 0, 1), v6(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1), v6(0x2001, 0, 0, 0, 0, 0, 0, 1),
      v6(0x100, 0, 0, 0, 0, 0, 0, 1), v6(0x3FFF, 1, 0, 0, 0, 0, 0, 1),
      // 127.0.0.1 and 10.0.0.1 as IPv6 addresses.
      v6(0, 0, 0, 0, 0, 0xFFFF, 0x7F00, 1), v6(0x64, 0xFF9B, 0, 0, 0, 0, 0x0A00, 1),
      v6(0x2002, 0x7F00, 1, 0, 0, 0, 0, 1), v6(0, 0, 0, 0, 0, 0, 0x7F00, 1),
      v6(0x64, 0xFF9B, 1, 0, 0, 0, 0x0808, 0x0808),
    ])
  func privateAddresses(address: IPAddress?) throws {
    #expect(try #require(address).isPublic == false)
  }

  @Test(
    "A public address is detected",
    arguments: [
      v4(1, 1, 1, 1), v4(9, 255, 255, 255), v4(11, 0, 0, 0), v4(100, 63, 255, 255), v4(100, 128, 0, 0),
      v4(128, 0, 0, 1), v4(172, 15, 255, 255), v4(172, 32, 0, 0), v4(192, 167, 255, 255), v4(198, 20, 0, 0),
      v4(223, 255, 255, 255), v6(0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111), v6(0x2A00, 0, 0, 0, 0, 0, 0, 1),
      v6(0, 0, 0, 0, 0, 0xFFFF, 0x0101, 0x0101), v6(0x64, 0xFF9B, 0, 0, 0, 0, 0x0808, 0x0808),
      v6(0x2002, 0x0808, 0x0808, 0, 0, 0, 0, 1), v6(0x2001, 0x4860, 0, 0, 0, 0, 0, 0x8888),
    ])
  func publicAddresses(address: IPAddress?) throws {
    #expect(try #require(address).isPublic)
  }
}
