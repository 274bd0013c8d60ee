import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// The host that a failure is about. Whether this machine has a network for it is decided outside of the engine.
@Suite("Hosts that cannot be reached", .timeLimit(.minutes(5))) struct UnreachedHostTests {
  private typealias Host = TransportFailure.UnreachedHost

  private static func expect(
    _ host: Host, of url: String = "http://192.0.2.1/", _ location: SourceLocation = #_sourceLocation,
    _ change: (inout TransportOptions) -> Void
  ) async throws {
    let failure = try await Client(change).failure(of: url, location)
    #expect(failure.unreached == host, "\(failure.message)", sourceLocation: location)
  }

  @Test("A failure to connect is about the host that was connected to") func connections() async throws {
    let port = try HTTPTestServer.refusedPort()
    try await Self.expect(.other("127.0.0.1"), of: "http://127.0.0.1:\(port)/") { _ in }
    try await Self.expect(.other("no-such-host.invalid"), of: "http://no-such-host.invalid/") { _ in }
    try await Self.expect(.other("127.0.0.1"), of: "http://shop.test/") {
      $0.hostOverrides = [.init(host: "shop.test", target: "127.0.0.1", targetPort: port)]
    }
    try await Self.expect(.other("127.0.0.1")) { $0.proxy = .http("127.0.0.1", port: port) }
    try await Self.expect(.other("proxy.invalid")) { $0.proxy = .http("proxy.invalid", port: port) }
    try await Self.expect(.other("127.0.0.1"), of: "http://127.0.0.1:\(port)/") {
      $0.localInterface = "if!no-such-interface"
    }
    try await Self.expect(.other("no-such-host.invalid"), of: "http://no-such-host.invalid/") {
      $0.proxy = .server(ProxyServer(.socks5, host: "127.0.0.1", port: port))
    }
  }

  @Test("A failure at a Unix-domain socket is about no host") func unixSocket() async throws {
    try await Self.expect(.none) { $0.unixSocket = "/no/such.socket" }
  }

  @Test(
    "An answer of a proxy is about no host",
    arguments: ["HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "SSH-2.0-OpenSSH\r\n", ""])
  func answer(text: String) async throws {
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write(text)
    }
    try await Self.expect(.none, of: "https://192.0.2.1/") { $0.proxy = .http("127.0.0.1", port: proxy.port) }
  }

  @Test("An answer of a SOCKS proxy is about no host") func answerOfSOCKS() async throws {
    let proxy = try StreamTestServer { connection in
      _ = try connection.readExactly(3)
      try connection.write([5, 0])
      _ = try connection.readExactly(10)
      try connection.write([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
      connection.waitForEnd()
    }
    try await Self.expect(.none) {
      $0.proxy = .server(ProxyServer(.socks5, host: "127.0.0.1", port: proxy.port))
    }
  }

  @Test("A failed handshake with a proxy is about no host") func handshake() async throws {
    let plain = try StreamTestServer { try $0.write("HTTP/1.1 400 Bad Request\r\n\r\n") }
    try await Self.expect(.none) {
      $0.proxy = .server(ProxyServer(.https, host: "localhost", port: plain.port))
    }
  }

  @Test("A name service that has answered is no sign of a missing network") func nameService() async throws {
    let service = try HTTPTestServer(.tls(.localhost), routes: .none)
    service.enqueue(.status(503), .status(503))
    try await Self.expect(.none, of: "http://shop.example/") {
      $0.nameServiceURL = service.url("/dns-query")
    }
    let port = try HTTPTestServer.refusedPort()
    try await Self.expect(.other("127.0.0.1"), of: "http://shop.example/") {
      $0.nameServiceURL = "https://127.0.0.1:\(port)/dns-query"
    }
    // Its name was found, and it was reached.
    try await Self.expect(.none, of: "http://shop.example/") {
      $0.nameServiceURL = "https://localhost:\(port)/dns-query"
    }
  }
}
