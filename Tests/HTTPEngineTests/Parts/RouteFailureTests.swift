import Glibc
import HTTPWire
import Testing

@testable import HTTPEngine

/// The texts of failures to connect, which no test can bring about on every machine.
@Suite("Failures of routes") struct RouteFailureTests {
  private static let proxy = ProxyServer(.http, host: "p.test", port: 3128)

  /// Returns the failures of a host, its proxy and a socket with an error of the system.
  private static func failures(_ code: Int32, _ address: IPAddress? = .loopback4) throws -> [TransportFailure]
  {
    let address = try #require(address)
    return [
      RouteFailure.unreachable("shop.test", code, address, port: 80),
      RouteFailure.unreachable(proxy, code, address),
      RouteFailure.unreachable(unixSocket: "/shop.socket", code),
    ]
  }

  @Test(
    "What the machine has too little of is the reason, and not the server",
    arguments: [
      (EMFILE, "ulimit -n"), (ENFILE, "fs.file-max"), (ENOMEM, "memory"), (ENOBUFS, "memory"),
      (ENOSPC, "fs.epoll.max_user_watches"),
    ])
  func shortages(code: Int32, words: String) throws {
    for failure in try Self.failures(code) {
      #expect(failure.kind == .resourceUnavailable, "\(failure.message)")
      #expect(failure.message.contains(words), "\(failure.message)")
      #expect(!failure.message.contains("does not accept"), "\(failure.message)")
    }
  }

  @Test(
    "What this machine does not do is no refusal by the server",
    arguments: [
      (EADDRNOTAVAIL, IPAddress.loopback4, "no free port"),
      (EADDRNOTAVAIL, .loopback6, "check the network of this machine"),
      (EAFNOSUPPORT, .loopback6, "check the network of this machine"),
      (ENETUNREACH, .loopback4, "check the network of this machine"), (EACCES, .loopback4, "firewall"),
      (EPERM, .loopback4, "firewall"),
    ] as [(Int32, IPAddress?, String)])
  func localReasons(code: Int32, address: IPAddress?, words: String) throws {
    for failure in try Self.failures(code, address).prefix(2) {
      #expect(failure.message.contains(words), "\(failure.message)")
      #expect(failure.message.contains(String(cString: strerror(code))), "\(failure.message)")
      #expect(!failure.message.contains("does not accept"), "\(failure.message)")
    }
  }

  @Test(
    "An attempt without a route is about the host, also if the host is a name",
    arguments: [
      (ENETUNREACH, true), (ENETDOWN, true), (ECONNREFUSED, false), (ETIMEDOUT, false), (EHOSTUNREACH, false),
    ])
  func unreachedHosts(code: Int32, isWithoutRoute: Bool) throws {
    let attempt = Connector.FailedAttempt(address: try #require(IPAddress.loopback4), code: code)
    let ofName = RouteFailure.unreachedHost("shop.test", after: attempt)
    let expected: TransportFailure.UnreachedHost = isWithoutRoute ? .other("shop.test") : .none
    #expect(ofName == expected)
    #expect(RouteFailure.unreachedHost("127.0.0.1", after: attempt) == .other("127.0.0.1"))
  }

  /// Returns the message of a failure of a tunnel whose login answers challenges.
  private static func message(_ failure: ConnectTunnel.Failure, user: String) -> String {
    var proxy = ProxyServer(.http, host: "p.test", port: 3128, username: user, password: "")
    proxy.authentication = .negotiated
    return RouteFailure.tunnel(failure, proxy, "shop.test").message
  }

  @Test("A challenge with the status of servers is no lack of a scheme") func statusOfServers() {
    let message = Self.message(.loginRequired(status: 401), user: "ann")
    #expect(message.contains("401") && !message.contains("answer Basic"), "\(message)")
    let usual = Self.message(.loginRequired(status: 407), user: "ann")
    #expect(usual.contains("answer Basic"), "\(usual)")
  }

  @Test("A refused login without a name is no refusal of a name") func refusedTicket() {
    let message = Self.message(.loginRejected(status: 407), user: "")
    #expect(message.contains("ticket") && !message.contains("the name and the password"), "\(message)")
    let ofName = Self.message(.loginRejected(status: 407), user: "ann")
    #expect(ofName.contains("the name and the password"), "\(ofName)")
  }

  @Test("A refusal names the port") func refusals() throws {
    let failures = try Self.failures(ECONNREFUSED)
    #expect(
      failures.map(\.message) == [
        "shop.test does not accept the connection; check that the server runs on port 80. (127.0.0.1: Connection refused)",
        "The proxy http://p.test:3128 does not accept the connection; check that it runs on that port. (Connection refused)",
        "The Unix-domain socket /shop.socket does not accept the connection: Connection refused. Check its path, and that the server runs.",
      ])
    #expect(failures.map(\.kind) == [.cannotConnectToHost, .cannotConnectToProxy, .cannotConnectToHost])
  }

  @Test("An address without a route explains a failure only if there is no other one")
  func withoutRoute() throws {
    let (v4, v6) = (try #require(IPAddress.loopback4), try #require(IPAddress.loopback6))
    func isWithoutRoute(_ address: IPAddress, _ code: Int32) -> Bool {
      RouteFailure.isWithoutRoute(Connector.FailedAttempt(address: address, code: code))
    }
    #expect(isWithoutRoute(v6, ENETUNREACH) && isWithoutRoute(v4, ENETUNREACH))
    #expect(isWithoutRoute(v6, EADDRNOTAVAIL) && isWithoutRoute(v6, EAFNOSUPPORT))
    #expect(!isWithoutRoute(v4, EADDRNOTAVAIL) && !isWithoutRoute(v4, ECONNREFUSED))
    #expect(!isWithoutRoute(v6, EHOSTUNREACH), "a router has said so")
  }
}
