import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct RouteTests {
  @Test("A host is connected to at the target of its override", arguments: [false, true])
  func override(isSecure: Bool) async throws {
    let identity = try TestIdentity(
      .init(commonName: "shop", dnsNames: ["shop.example"], issuer: .localhostAuthority))
    let server = isSecure ? try HTTPTestServer(.tls(identity)) : try HTTPTestServer()
    let port = try #require(Origin(url: server.url("/"))?.port)
    let client = Client {
      $0.hostOverrides = [
        .init(host: "other.example", target: "192.0.2.1"),
        .init(host: "shop.example", target: "127.0.0.1", targetPort: port),
      ]
    }
    let response = try await client.get("\(isSecure ? "https" : "http")://shop.example/get")
    #expect(response.status == 200)
    let request = try await server.takeRequest()
    #expect(request.headers.first { $0.name == "Host" }?.value == "shop.example")
    if isSecure { #expect(request.tls?.serverName == "shop.example") }
  }

  @Test(
    "An invalid override is a clear failure",
    arguments: [
      TransportOptions.HostOverride(host: "", target: "127.0.0.1"),
      .init(host: "a b", target: "127.0.0.1"), .init(host: "a", target: "b/c"), .init(host: "a", target: ""),
      .init(host: "a", port: 0, target: "b"), .init(host: "a", port: 70_000, target: "b"),
      .init(host: "a", target: "b", targetPort: -1), .init(host: "a\r\nX: y", target: "b"),
    ])
  func invalidOverride(override: TransportOptions.HostOverride) async throws {
    let client = Client { $0.hostOverrides = [override] }
    let failure = try await client.failure(of: "http://a/")
    #expect(failure.kind == .badURL)
    #expect(failure.message.contains("host override"))
  }

  @Test(
    "A request that refuses private addresses reaches no local server",
    arguments: [
      "127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0",
      "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "127.255.255.254",
    ])
  func privateAddresses(host: String) async throws {
    let server = try HTTPTestServer()
    let port = try #require(Origin(url: server.url("/"))?.port)
    let client = Client { $0.refusesPrivateAddresses = true }
    let failure = try await client.failure(of: "http://\(host):\(port)/get")
    #expect(failure.kind == .addressRefused)
    #expect(failure.message.contains("refusesPrivateAddresses"), "\(failure.message)")
    #expect(server.connectionCount == 0)
  }

  @Test("A private address is reported for the host or the proxy that is connected to") func privateEndpoint()
    async throws
  {
    let proxied = Client {
      $0.refusesPrivateAddresses = true
      $0.proxy = .http("127.0.0.1", port: 9)
    }
    let proxy = try await proxied.failure(of: "http://shop.test/")
    #expect(proxy.message.hasPrefix("The proxy http://127.0.0.1:9 has a private address"), "\(proxy.message)")
    let led = Client {
      $0.refusesPrivateAddresses = true
      $0.hostOverrides = [.init(host: "shop.test", target: "127.0.0.1", targetPort: 9)]
    }
    let target = try await led.failure(of: "http://shop.test/")
    #expect(target.message.hasPrefix("127.0.0.1 has a private address"), "\(target.message)")
    #expect(proxy.kind == .addressRefused && target.kind == .addressRefused)
  }

  @Test("A request that refuses private addresses does not reuse other connections") func reuse() async throws
  {
    let server = try HTTPTestServer()
    let client = Client()
    _ = try await client.get(server.url("/get"))
    let protected = Client.profile { $0.refusesPrivateAddresses = true }
    for _ in 0..<2 {
      let failure = try await client.failure(of: client.request(server.url("/get"), profile: protected))
      #expect(failure.kind == .addressRefused)
      #expect(failure.message.contains("refusesPrivateAddresses"), "\(failure.message)")
    }
    #expect(try await client.get(server.url("/get")).status == 200)
    #expect(server.requestCount == 2)
  }

  @Test("A body that exceeds the limit by decoding is refused") func decodedSize() async throws {
    let server = try HTTPTestServer(routes: .none)
    let bomb = try #require(Deflater.compress(Data(count: 20 << 20), .gzip))
    let text = try #require(Deflater.compress(Data((0..<100_000).map { UInt8($0 % 251) }), .gzip))
    let gzip = [HTTPHeader(name: "Content-Encoding", value: "gzip")]
    let client = Client { $0.decodingRatioLimit = 500 }
    server.enqueue(Reply(headers: gzip, body: .bytes(Array(bomb))))
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
    #expect(failure.message.contains("decodingRatioLimit"))
    server.enqueue(Reply(headers: gzip, body: .bytes(Array(text))))
    #expect(try await client.get(server.url("/")).body?.count == 100_000)
    server.enqueue(Reply(headers: gzip, body: .bytes(Array(bomb))))
    #expect(try await Client().get(server.url("/")).body?.count == 20 << 20)
  }

  @Test("A nested decompression bomb is refused") func nestedBomb() async throws {
    let server = try HTTPTestServer(routes: .none)
    let inner = try #require(Deflater.compress(Data(count: 64 << 20), .gzip))
    let bomb = try #require(Deflater.compress(inner, .gzip))
    #expect(bomb.count < 1000)
    let fields = [HTTPHeader(name: "Content-Encoding", value: "gzip, gzip")]
    server.enqueue(Reply(headers: fields, body: .bytes(Array(bomb))))
    let failure = try await Client { $0.decodingRatioLimit = 1000 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure)")
    #expect(failure.metrics.map { $0.values.decodedBodyBytes < 4 << 20 } == true)
  }

  @Test("A nested decompression bomb without a single byte is refused") func emptyBomb() async throws {
    let server = try HTTPTestServer(routes: .none)
    let empty = try #require(Deflater.compress(Data(), .gzip))
    let bomb = try #require(Deflater.compress(empty + Data(count: 4 << 20), .gzip))
    let fields = [HTTPHeader(name: "Content-Encoding", value: "gzip, gzip")]
    server.enqueue(Reply(headers: fields, body: .bytes(Array(bomb))))
    let failure = try await Client { $0.decodingRatioLimit = 100 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure)")
    server.enqueue(Reply(headers: fields, body: .bytes(Array(bomb))))
    #expect(try await Client().get(server.url("/")).body == nil)
  }

  @Test("Connections go to addresses of one family, and others are not reused") func addressFamily()
    async throws
  {
    let server = try HTTPTestServer()
    let port = try #require(Origin(url: server.url("/"))?.port)
    let client = Client()
    let (url, literal) = ("http://localhost:\(port)/get", "http://127.0.0.1:\(port)/get")
    #expect(try await client.get(url).status == 200)
    let four = Client.profile { $0.addressFamily = .ipv4 }
    #expect(
      try await client.transport.send(client.request(url, profile: four), observer: Watcher()).head.status
        == 200)
    #expect(
      try await client.transport.send(client.request(literal, profile: four), observer: Watcher()).head.status
        == 200)
    // The server listens on IPv4 alone.
    let six = Client.profile { $0.addressFamily = .ipv6 }
    for url in [url, literal] {
      let failure = try await client.failure(of: client.request(url, profile: six))
      #expect([.cannotConnectToHost, .cannotFindHost].contains(failure.kind), "\(url): \(failure)")
    }
    #expect(try await client.get(url).status == 200)
    #expect(server.requestCount == 4)
  }

  @Test("A host without an address of the chosen family is no unknown one", arguments: [false, true])
  func excludedAddresses(isProxied: Bool) async throws {
    for (url, family, proxy) in [
      ("http://shop.test:9/", TransportOptions.AddressFamily.ipv6, "127.0.0.1"),
      ("http://127.0.0.1:9/", .ipv6, "127.0.0.1"), ("http://[::1]:9/", .ipv4, "::1"),
    ] {
      let client = Client {
        $0.addressFamily = family
        if isProxied { $0.proxy = .http(proxy, port: 9) }
      }
      var request = try client.request(url)
      if request.origin.host == "shop.test" {
        let known = [IPAddress.loopback4].compactMap { $0 }
        request = request.changing {
          $0.addresses = KnownAddresses(host: "shop.test", port: 9, addresses: known)
        }
      }
      let failure = try await client.failure(of: request)
      #expect(failure.kind == (isProxied ? .cannotFindProxy : .cannotFindHost), "\(failure.message)")
      #expect(
        failure.message.contains("addressFamily allows only \(family == .ipv4 ? "IPv4" : "IPv6")"),
        "\(failure.message)")
      let name = isProxied ? "the proxy http://" : request.origin.host
      #expect(failure.message.hasPrefix("No address of \(name)"), "\(failure.message)")
    }
  }

  @Test(
    "A missing interface is a clear failure",
    arguments: ["if!no-such-interface", "if!127.0.0.1", "host!192.0.2.1", "192.0.2.1"])
  func missingInterface(name: String) async throws {
    let server = try HTTPTestServer()
    let client = Client { $0.localInterface = name }
    #expect(try await client.failure(of: server.url("/get")).kind == .cannotConnectToHost)
    #expect(server.connectionCount == 0)
    #expect(try await Client { $0.localInterface = "127.0.0.1" }.get(server.url("/get")).status == 200)
  }

  @Test("An address that the interface cannot reach does not hide why another one failed", arguments: [0, 1])
  func partlyUsableInterface(position: Int) async throws {
    let other = try #require(IPAddress.loopback6)
    try await Self.expectRefusal(beside: other, at: position, by: Client { $0.localInterface = "127.0.0.1" })
  }

  @Test("An address without a route does not hide why another one failed", arguments: [0, 1])
  func partlyReachable(position: Int) async throws {
    // No connection can be made to this address, whatever the routes of the machine.
    let broadcast = try #require(IPAddress(.v4, bytes: [255, 255, 255, 255]))
    try await Self.expectRefusal(beside: broadcast, at: position, by: Client())
  }

  /// Connects to a port of 127.0.0.1 without a server, and to another address before it or after it.
  private static func expectRefusal(
    beside other: IPAddress, at position: Int, by client: Client
  ) async throws {
    let port = try HTTPTestServer.refusedPort()
    var addresses = [IPAddress.loopback4].compactMap { $0 }
    addresses.insert(other, at: position)
    let origin = Origin(scheme: "http", host: "shop.test", port: port)
    let request = WireRequest(url: "http://shop.test:\(port)/", origin: origin, profile: client.profile) {
      $0.addresses = KnownAddresses(host: "shop.test", port: port, addresses: addresses)
    }
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .cannotConnectToHost)
    #expect(failure.message.contains("does not accept the connection"), "\(failure.message)")
    #expect(failure.message.contains("127.0.0.1"), "\(failure.message)")
  }
}
