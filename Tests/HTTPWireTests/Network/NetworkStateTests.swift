import HTTPWire
import Testing

@Suite struct NetworkStateTests {
  private static let loopback = NetworkState.Link(index: 1, name: "lo", kind: .loopback)
  private static let wired = NetworkState.Link(index: 2, name: "eth0", kind: .wired)
  private static let modem = NetworkState.Link(index: 3, name: "wwan0", kind: .cellular)

  private static func state(_ change: (inout NetworkState) -> Void = { _ in }) -> NetworkState {
    var state = NetworkState(
      links: [loopback, wired, modem],
      addresses: [.init(link: 1, family: .v4, isGlobal: false), .init(link: 2, family: .v4)],
      routes: [
        .init(family: .v4, prefixLength: 24, link: 2, hasGateway: false),
        .init(family: .v4, link: 2, priority: 100), .init(family: .v4, link: 3, priority: 700),
      ])
    change(&state)
    return state
  }

  private static func path(_ change: (inout NetworkState) -> Void) -> NetworkPath {
    state(change).pathToAnywhere()
  }

  private let wiredPath = NetworkPath.reachable(.wired, isLocal: false, isDirect: false)
  private let modemPath = NetworkPath.reachable(.cellular, isLocal: false, isDirect: false)

  @Test("The path uses the preferred default route") func preferredRoute() {
    #expect(Self.path { _ in } == wiredPath)
    #expect(Self.path { $0.routes[2].priority = 50 } == modemPath)
  }

  @Test("A link that is down or unplugged is not a path") func linkDown() {
    #expect(Self.path { $0.links[1].isUp = false } == modemPath)
    #expect(Self.path { $0.links[1].isRunning = false } == modemPath)
    #expect(
      Self.path {
        $0.links[1].isUp = false
        $0.links[2].isUp = false
      } == .unreachable)
    #expect(Self.path { $0.links.removeAll { $0.index > 1 } } == .unreachable)
  }

  @Test("Without a default route, the path is unavailable") func noRoute() {
    #expect(Self.path { $0.routes.removeLast(2) } == .unreachable)
    #expect(Self.path { $0.routes = [.init(family: .v4, link: 1)] } == .unreachable)
    #expect(NetworkState().pathToAnywhere() == .unreachable)
  }

  @Test("Without an address, the path is unavailable") func noAddress() {
    #expect(Self.path { $0.addresses.removeLast() } == .unreachable)
    #expect(Self.path { $0.addresses[1].isGlobal = false } == .unreachable)
    // An address of the other family does not help, one of another link does.
    #expect(Self.path { $0.addresses[1].family = .v6 } == .unreachable)
    #expect(Self.path { $0.addresses[1].link = 3 } == wiredPath)
  }

  @Test("IPv6 alone is a path") func ipv6() {
    let path = Self.path { state in
      state.addresses = [.init(link: 3, family: .v6)]
      state.routes = [.init(family: .v6, link: 3, hasGateway: false)]
    }
    #expect(path == .reachable(.cellular, isLocal: false, isDirect: true))
  }

  @Test("Links can be excluded") func excludedLinks() {
    #expect(Self.state().pathToAnywhere { $0 == .cellular } == modemPath)
    #expect(Self.state().pathToAnywhere { $0 == .wifi } == .unreachable)
    #expect(Self.state().pathToAnywhere { $0 != .wired } == modemPath)
  }

  @Test("The path to a host is the path to its first reachable address") func host() {
    let state = Self.state()
    #expect(state.path(to: []) == .unreachable)
    #expect(state.path(to: [.unreachable]) == .unreachable)
    #expect(state.path(to: [.unreachable, .link(3, hasGateway: true)]) == modemPath)
    #expect(
      state.path(to: [.link(2, hasGateway: false), .local])
        == .reachable(.wired, isLocal: false, isDirect: true))
    #expect(state.path(to: [.local]) == .reachable(.loopback, isLocal: true, isDirect: true))
    #expect(state.path(to: [.link(9, hasGateway: false)]) == .unreachable)
    #expect(
      Self.state { $0.links[1].isRunning = false }.path(to: [.link(2, hasGateway: true)]) == .unreachable)
  }

  @Test("Other machines are reached over any route of a link that can carry packets") func otherMachines() {
    func reaches(_ change: (inout NetworkState) -> Void) -> Bool { Self.state(change).reachesOtherMachines }
    #expect(reaches { $0.routes.removeLast(2) }, "the same network needs no default route")
    #expect(!reaches { $0.routes.removeAll() })
    #expect(!reaches { $0.routes = [.init(family: .v4, prefixLength: 8, link: 1, hasGateway: false)] })
    #expect(!reaches { $0.addresses.removeLast() })
    #expect(
      !reaches {
        $0.routes.removeLast(2)
        $0.links[1].isRunning = false
      })
  }

  @Test("Addresses have the bytes of their family") func addresses() {
    #expect(IPAddress(.v4, bytes: [127, 0, 0, 1]) != nil)
    #expect(IPAddress(.v4, bytes: [1]) == nil)
    #expect(IPAddress(.v6, bytes: [127, 0, 0, 1]) == nil)
  }
}
