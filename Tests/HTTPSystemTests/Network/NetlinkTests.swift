import Foundation
import HTTPSystem
import HTTPWire
import Testing

@Suite struct NetlinkTests {
  private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number) { Array($0) }
  }

  private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
    let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    return bytes(UInt16(4 + value.count)) + bytes(type) + value + padding
  }

  /// Returns an `rtmsg` with its attributes. The fields that do not matter are constant.
  private static func route(
    family: UInt8 = 2, prefix: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1, _ attributes: [UInt8]
  ) -> ArraySlice<UInt8> {
    ([family, prefix, 0, 0, table, 3, 0, type] + bytes(UInt32(0)) + attributes)[...]
  }

  private static let gateway = attribute(5, [192, 0, 2, 1])
  private static let overLink7 = attribute(4, bytes(Int32(7)))

  @Test("A datagram is parsed into messages") func messages() {
    let first = Self.bytes(UInt32(17)) + Self.bytes(UInt16(24)) + Self.bytes(UInt16(2))
    let datagram = first + Self.bytes(UInt32(5)) + Self.bytes(UInt32(0)) + [42, 0, 0, 0]
    let messages = NetlinkMessages.messages((datagram + datagram)[...])
    #expect(messages.count == 2)
    #expect(messages.map(\.type) == [24, 24])
    #expect(messages.map(\.sequence) == [5, 5])
    #expect(messages.map { Array($0.body) } == [[42], [42]])
  }

  @Test("An invalid length ends the parsing") func invalidLengths() {
    for length in [UInt32(0), 15, 100, .max] {
      let datagram = Self.bytes(length) + [UInt8](repeating: 0, count: 12)
      #expect(NetlinkMessages.messages(datagram[...]).isEmpty)
    }
    #expect(NetlinkMessages.messages([]).isEmpty)
    let lying = Self.route(Self.bytes(UInt16(200)) + Self.bytes(UInt16(4)) + [1, 2, 3, 4])
    #expect(NetlinkMessages.routes(lying).isEmpty)
    #expect(NetlinkMessages.routes(Self.route(Self.bytes(UInt16(0)) + [0, 0])).isEmpty)
  }

  @Test("A default route is parsed") func defaultRoute() {
    let body = Self.route(Self.gateway + Self.overLink7 + Self.attribute(6, Self.bytes(UInt32(100))))
    #expect(NetlinkMessages.routes(body) == [.init(family: .v4, link: 7, priority: 100, hasGateway: true)])
    let direct = Self.route(family: 10, prefix: 64, Self.overLink7)
    #expect(
      NetlinkMessages.routes(direct)
        == [.init(family: .v6, prefixLength: 64, link: 7, hasGateway: false)])
  }

  @Test("Routes of other tables and errors are ignored") func otherTables() {
    #expect(NetlinkMessages.routes(Self.route(table: 255, Self.overLink7)).isEmpty)
    #expect(NetlinkMessages.routes(Self.route(type: 7, Self.overLink7)).isEmpty)
    #expect(NetlinkMessages.routes(Self.route(family: 5, Self.overLink7)).isEmpty)
    #expect(NetlinkMessages.routes(Self.route(Self.gateway)).isEmpty)
    let large = Self.route(table: 252, Self.overLink7 + Self.attribute(15, Self.bytes(UInt32(1000))))
    #expect(NetlinkMessages.routes(large).isEmpty)
  }

  @Test("Each next hop is a route") func nextHops() {
    func hop(_ link: Int32, _ attributes: [UInt8]) -> [UInt8] {
      Self.bytes(UInt16(8 + attributes.count)) + [0, 0] + Self.bytes(link) + attributes
    }
    let body = Self.route(Self.attribute(9, hop(3, Self.gateway) + hop(4, [])))
    #expect(NetlinkMessages.routes(body).map(\.link) == [3, 4])
    #expect(NetlinkMessages.routes(body).map(\.hasGateway) == [true, false])
  }

  @Test("Responses are parsed") func responses() {
    #expect(NetlinkMessages.answer(Self.route(prefix: 32, Self.overLink7)) == .link(7, hasGateway: false))
    #expect(NetlinkMessages.answer(Self.route(type: 2, Self.overLink7)) == .local)
    #expect(NetlinkMessages.answer(Self.route(type: 7, Self.overLink7)) == .unreachable)
    #expect(NetlinkMessages.answer([]) == .unreachable)
  }

  @Test("Links and addresses are parsed") func linksAndAddresses() {
    func link(_ flags: UInt32) -> ArraySlice<UInt8> {
      ([0, 0] + Self.bytes(UInt16(1)) + Self.bytes(Int32(4)) + Self.bytes(flags) + Self.bytes(UInt32(0))
        + Self.attribute(3, Array("wlan0".utf8) + [0]))[...]
    }
    let read = NetlinkMessages.link(link(0x41)) { name, type in
      #expect(name == "wlan0")
      #expect(type == 1)
      return .wifi
    }
    #expect(read == .init(index: 4, name: "wlan0", kind: .wifi, isUp: true, isRunning: true))
    #expect(NetlinkMessages.link(link(0x1)) { _, _ in .wifi }?.isRunning == false)
    #expect(NetlinkMessages.link(link(0x8)) { _, _ in .wifi }?.kind == .loopback)
    #expect(NetlinkMessages.link([1, 2]) { _, _ in .wifi } == nil)
    let address: [UInt8] = [2, 24, 0, 0] + Self.bytes(Int32(4))
    #expect(NetlinkMessages.address(address[...]) == .init(link: 4, family: .v4, isGlobal: true))
    #expect(NetlinkMessages.address(([10, 64, 0, 253] + Self.bytes(Int32(4)))[...])?.isGlobal == false)
    #expect(NetlinkMessages.address([2]) == nil)
  }

  @Test("This machine has a loopback interface") func loopback() throws {
    // A sandbox may refuse such sockets.
    guard let query = NetworkQuery() else { return }
    let state = try #require(query.state())
    #expect(state.links.contains { $0.kind == .loopback })
    let local = try #require(HostLookup.addresses(of: "127.0.0.1", literalsOnly: true).first)
    if state.links.contains(where: { $0.kind == .loopback && $0.isUp }) {
      #expect(query.route(to: local) == .local)
    }
  }

  @Test("Literal addresses are not resolved") func literalAddresses() {
    #expect(
      HostLookup.addresses(of: "192.0.2.1", literalsOnly: true) == [IPAddress(.v4, bytes: [192, 0, 2, 1])])
    #expect(HostLookup.addresses(of: "::1", literalsOnly: true).first?.bytes.last == 1)
    #expect(HostLookup.addresses(of: "localhost", literalsOnly: true).isEmpty)
    #expect(HostLookup.addresses(of: "", literalsOnly: true).isEmpty)
  }
}
