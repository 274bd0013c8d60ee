import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// The properties that a connection must have in common with a request, and the ways to it.
@Suite("Connections that fit a request", .timeLimit(.minutes(2)))
struct ConnectionKeyTests {
  @Test("A connection of HTTP/1.1 is not used by a request that may use HTTP/2") func versions() async throws
  {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    let server = try StreamTestServer(.tls(.localhost, options)) { connection in
      if connection.applicationProtocol == "h2" {
        let http2 = try HTTP2TestConnection(connection)
        while true { try http2.respond(200, on: http2.request()) }
      }
      while true {
        _ = try connection.readHead()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    let old = Client.profile { $0.httpVersions = .http1Only }
    for _ in 0..<2 {
      #expect(try await client.send(client.request(url, profile: old)).head.version == .http1_1)
      #expect(try await client.get(url).head.version == .http2)
    }
    #expect(server.connectionCount == 2)
  }

  @Test(
    "A connection that the caller's own field authenticates carries no other request",
    arguments: ["Authorization", "proxy-authorization"], ["Negotiate YQ==", "ntlm TlRM", "NTLM"])
  func ownLogin(name: String, value: String) async throws {
    let server = try HTTPTestServer()
    let client = Client()
    let login = [HTTPHeader(name: name, value: value)]
    var connections: [Int] = []
    for fields in [[], login, login, []] {
      _ = try await client.send(client.request(server.url("/get"), fields: fields))
      connections.append(try await server.takeRequest().connection)
    }
    #expect(connections[3] == connections[0] && Set(connections).count == 3, "\(connections)")
  }

  @Test("A field with credentials of the request alone leaves the connection to others")
  func ownCredential() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    for value in ["Basic YQ==", "Bearer NTLM", "NTLMish a", "Negotiated", "Digest realm=\"NTLM\""] {
      let fields = [HTTPHeader(name: "Authorization", value: value)]
      _ = try await client.send(client.request(server.url("/get"), fields: fields))
    }
    #expect(server.connectionCount == 1)
  }

  @Test("A field that authenticates a connection is sent over HTTP/1.1") func ownLoginVersion() async throws {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    let server = try StreamTestServer(.tls(.localhost, options)) { connection in
      if connection.applicationProtocol == "h2" {
        let http2 = try HTTP2TestConnection(connection)
        while true { try http2.respond(200, on: http2.request()) }
      }
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      connection.waitForEnd()
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    let login = [HTTPHeader(name: "Authorization", value: "Negotiate YQ==")]
    #expect(try await client.get(url).head.version == .http2)
    #expect(try await client.send(client.request(url, fields: login)).head.version == .http1_1)
    #expect(try await client.get(url).head.version == .http2)
    #expect(server.connectionCount == 2)
  }

  @Test("A request with a local end does not use connections of another one") func localInterface()
    async throws
  {
    let server = try HTTPTestServer()
    let client = Client()
    for local in ["127.0.0.1", "127.0.0.2", "127.0.0.1"] {
      let profile = Client.profile { $0.localInterface = "host!\(local)" }
      let response = try await client.send(client.request(server.url("/get"), profile: profile))
      #expect(response.metrics.localAddress == local)
    }
    #expect(server.connectionCount == 2)
  }

  @Test("A name has connections for each name service, and an address has the same ones for all")
  func nameServices() async throws {
    let names = NameService(["shop.example": [IPAddress.loopback4].compactMap { $0 }])
    let services = try (0..<2).map { _ in try HTTPTestServer(.tls(.localhost), routes: names.routes) }
    let server = try HTTPTestServer()
    let client = Client()
    for host in ["shop.example", "127.0.0.1"] {
      for service in services + services {
        let profile = Client.profile { $0.nameServiceURL = service.url("/dns-query") }
        let request = try client.request("http://\(host):\(server.port)/get", profile: profile)
        #expect(try await client.send(request).status == 200)
      }
    }
    #expect(server.connectionCount == 3)
  }

  @Test("A name has connections for each way to its name service") func waysToNameService() async throws {
    let names = NameService(["shop.example": [IPAddress.loopback4].compactMap { $0 }])
    let services = try (0..<2).map { _ in try HTTPTestServer(.tls(.localhost), routes: names.routes) }
    let server = try HTTPTestServer()
    let client = Client()
    let named = services[0]
    for service in services + services {
      let profile = Client.profile {
        $0.nameServiceURL = named.url("/dns-query")
        $0.hostOverrides = [
          .init(host: "localhost", port: named.port, target: "localhost", targetPort: service.port)
        ]
      }
      let request = try client.request("http://shop.example:\(server.port)/get", profile: profile)
      #expect(try await client.send(request).status == 200)
    }
    #expect(services.map(\.requestCount) == [2, 2], "a service was asked for an answer that is remembered")
    #expect(server.connectionCount == 2, "a connection to an address of the other service was used")
  }

  // MARK: Proxies

  private static func request(_ client: Client, _ addresses: [IPAddress?]) throws -> WireRequest {
    let origin = Origin(scheme: "http", host: "shop.invalid", port: 80)
    return WireRequest(url: "http://shop.invalid/", origin: origin, profile: client.profile) {
      $0.addresses = KnownAddresses(host: "shop.invalid", port: 80, addresses: addresses.compactMap { $0 })
    }
  }

  @Test("A proxy of SOCKS4 is asked for an IPv4 address") func socks4() async throws {
    let proxy = try StreamTestServer { connection in
      let question = try connection.readExactly(9)
      #expect(question == [4, 1, 0, 80, 127, 0, 0, 1, 0])
      try connection.write([0, 90, 0, 0, 0, 0, 0, 0])
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    let client = Client { $0.proxy = .server(ProxyServer(.socks4, host: "127.0.0.1", port: proxy.port)) }
    let response = try await client.send(Self.request(client, [.loopback6, .loopback4]))
    #expect(response.text == "ok")
  }

  @Test("A login goes on over the connection that replaces a closed one") func loginOverConnections()
    async throws
  {
    let answers = Mutex<[Bool]>([])
    let proxy = try StreamTestServer { connection in
      let head = String(decoding: try connection.readHead(), as: UTF8.self)
      let isAnswer = head.contains("Proxy-Authorization: Digest ")
      answers.withLock { $0.append(isAnswer) }
      guard isAnswer else {
        return try connection.write(
          """
          HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\
          Proxy-Authenticate: Digest realm="p", nonce="n", qop="auth"\r\n\r\n
          """)
      }
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      try connection.startTLS(.localhost)
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    var server = ProxyServer(.http, host: "127.0.0.1", port: proxy.port, username: "user", password: "secret")
    server.authentication = .negotiated
    let client = Client { [server] in $0.proxy = .server(server) }
    #expect(try await client.get("https://localhost:9/").text == "ok")
    #expect(answers.withLock { $0 } == [false, true])
  }

  // MARK: Limits

  @Test(
    "The time for an alternative service is limited, so that some remains for the origin",
    arguments: [(nil, 10), (5, 5), (60, 10)] as [(Int?, Int)])
  func alternativeLimit(limit: Int?, expected: Int) throws {
    let profile = Client.profile { $0.connectTimeout = limit.map { .seconds($0) } }
    let origin = Origin(scheme: "https", host: "shop.invalid", port: 443)
    func request(_ service: AlternativeService?) -> WireRequest {
      WireRequest(url: "https://shop.invalid/", origin: origin, profile: profile) { $0.alternative = service }
    }
    let service = AlternativeService(host: "other.invalid", port: 443)
    #expect(request(service).connectTimeout == .seconds(expected))
    #expect(request(nil).connectTimeout == limit.map { .seconds($0) })
  }

  private final class Owner: ConnectionAttemptOwner {
    private(set) var failure: TransportFailure?

    func attemptChanged() {}
    func attemptEnded(_ outcome: Result<any Pipe, TransportFailure>) {
      if case .failure(let failure) = outcome { self.failure = failure }
    }
  }

  /// Begins an attempt to connect that ends in this turn, or not at all.
  private static func attempt(
    _ host: String, port: Int, proxy: ProxyServer? = nil, _ fixture: ConnectionFixture,
    _ change: (inout TransportOptions) -> Void, _ check: (ConnectionAttempt, Owner) -> Void
  ) throws {
    let profile = Client.profile(6, change)
    let origin = Origin(scheme: "http", host: host, port: port)
    let request = WireRequest(url: "http://\(host):\(port)/", origin: origin, profile: profile) { _ in }
    let owner = Owner()
    let route = try Route(to: origin, profile.options, proxy: proxy)
    let attempt = ConnectionAttempt(request, route, fixture.core, for: owner)
    attempt.begin()
    check(attempt, owner)
    attempt.cancel()
  }

  @Test("A look-up that takes the time for connecting is named", arguments: ["slow.invalid", "127.0.0.1"])
  func slowLookup(host: String) async throws {
    try await ConnectionFixture.run { fixture in
      let silent = try UnresponsivePort()
      try Self.attempt(host, port: silent.port, fixture, { $0.connectTimeout = .seconds(5) }) {
        attempt, owner in
        #expect(owner.failure == nil && attempt.expiry < .max)
        attempt.expire(Clock.now(plus: .seconds(6)))
        #expect(owner.failure?.kind == .timedOut)
        #expect(owner.failure?.phase == (host == "127.0.0.1" ? .connect : .nameLookup))
      }
    }
  }

  @Test(
    "The addresses of a target are forgotten if it is not reached through its proxy",
    arguments: [ProxyServer.Kind.socks4, .socks5])
  func forgottenTarget(kind: ProxyServer.Kind) async throws {
    try await ConnectionFixture.run { fixture in
      let silent = try UnresponsivePort()
      let address = try #require(IPAddress.loopback4)
      let (resolver, now) = (fixture.core.resolver, fixture.core.now)
      resolver.finished("moved.invalid", .success([address]), now)
      let proxy = ProxyServer(kind, host: "127.0.0.1", port: silent.port)
      try Self.attempt("moved.invalid", port: 80, proxy: proxy, fixture, { $0.connectTimeout = .seconds(5) })
      {
        attempt, owner in
        #expect(owner.failure == nil && resolver.knownAddresses(of: "moved.invalid", now) == [address])
        attempt.expire(Clock.now(plus: .seconds(6)))
        #expect(owner.failure?.kind == .timedOut)
        #expect(resolver.knownAddresses(of: "moved.invalid", now) == nil)
      }
    }
  }

  @Test("No connection is opened to an invalid port") func portZero() async throws {
    try await ConnectionFixture.run { fixture in
      try Self.attempt("127.0.0.1", port: 0, fixture, { _ in }) { _, owner in
        #expect(owner.failure?.kind == .badURL, "\(owner.failure?.message ?? "no failure")")
        #expect(owner.failure?.message.contains("ports go from 1 to 65535") == true)
      }
    }
  }

  /// Uses a public address for the proxy. No socket is opened to it, because the target is refused before.
  @Test(
    "A private target is refused before its proxy is connected to",
    arguments: [ProxyServer.Kind.socks4, .socks5])
  func privateTarget(kind: ProxyServer.Kind) async throws {
    try await ConnectionFixture.run { fixture in
      let proxy = ProxyServer(kind, host: "8.8.8.8", port: 1080)
      try Self.attempt(
        "127.0.0.1", port: 80, proxy: proxy, fixture, { $0.refusesPrivateAddresses = true }
      ) { _, owner in
        #expect(owner.failure?.kind == .addressRefused, "\(owner.failure?.message ?? "no failure")")
      }
    }
  }
}
