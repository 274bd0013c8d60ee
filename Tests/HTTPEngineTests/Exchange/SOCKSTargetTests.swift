import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// The addresses of a host that a SOCKS proxy is asked for.
@Suite("Addresses for SOCKS proxies", .timeLimit(.minutes(5))) struct SOCKSTargetTests {
  private static let other = IPAddress(.v4, bytes: [127, 0, 0, 2])

  /// Makes a proxy that answers each connection with the next code, and is itself the server for code 0 or 90.
  private static func proxy(_ codes: [UInt8], _ targets: Received) throws -> StreamTestServer {
    let left = Mutex(codes)
    return try StreamTestServer { connection in
      let version = try connection.readExactly(1)
      if version == [5] {
        _ = try connection.readExactly(2)
        try connection.write([5, 0])
        let head = try connection.readExactly(4)
        targets.add(try connection.readExactly(head[3] == 1 ? 4 : 16))
        _ = try connection.readExactly(2)
      } else {
        _ = try connection.readExactly(3)
        targets.add(try connection.readExactly(4))
        _ = try connection.readExactly(1)
      }
      guard let code = left.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
      try connection.write(
        version == [5] ? [5, code, 0, 1, 0, 0, 0, 0, 0, 0] : [0, code, 0, 0, 0, 0, 0, 0])
      guard code == 0 || code == 90 else { return connection.waitForEnd() }
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      connection.waitForEnd()
    }
  }

  private static func client(
    _ kind: ProxyServer.Kind, _ port: Int, _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Client {
    Client {
      $0.proxy = .server(ProxyServer(kind, host: "127.0.0.1", port: port))
      change(&$0)
    }
  }

  private static func request(_ client: Client, _ addresses: [IPAddress?]) -> WireRequest {
    let origin = Origin(scheme: "http", host: "shop.invalid", port: 80)
    return WireRequest(url: "http://shop.invalid/", origin: origin, profile: client.profile) {
      $0.addresses = KnownAddresses(host: "shop.invalid", port: 80, addresses: addresses.compactMap { $0 })
    }
  }

  @Test(
    "If the proxy cannot connect to an address, it is asked for the next one",
    arguments: [(ProxyServer.Kind.socks5, [UInt8](arrayLiteral: 4, 8, 0)), (.socks4, [91, 90])])
  func nextAddress(kind: ProxyServer.Kind, codes: [UInt8]) async throws {
    let targets = Received()
    let proxy = try Self.proxy(codes, targets)
    let client = Self.client(kind, proxy.port)
    let addresses: [IPAddress?] = [.loopback6, Self.other, .loopback4]
    #expect(try await client.send(Self.request(client, addresses)).text == "ok")
    let expected = kind == .socks5 ? addresses : [Self.other, .loopback4]
    #expect(targets.values == expected.compactMap { $0?.bytes })
  }

  @Test("A refusal for another reason, or of the last address, ends the attempt", arguments: [2, 5])
  func refusal(code: UInt8) async throws {
    let targets = Received()
    let proxy = try Self.proxy([code, code, code], targets)
    let client = Self.client(.socks5, proxy.port)
    let failure = try await client.failure(of: Self.request(client, [.loopback6, .loopback4]))
    #expect(failure.kind == .cannotConnectToHost, "\(failure)")
    #expect(targets.values.count == (code == 2 ? 1 : 2))
  }

  @Test("Private addresses among public ones are left out if they are refused") func privateAddresses()
    async throws
  {
    let targets = Received()
    let proxy = try Self.proxy([0], targets)
    // The proxy is reached at a socket, because its address would be refused, too.
    let socket = try UnixSocketServer(forwardingTo: proxy.port)
    let client = Self.client(.socks5, 1) {
      $0.refusesPrivateAddresses = true
      $0.unixSocket = socket.path
    }
    let addresses = [[10, 0, 0, 1], [8, 8, 8, 8]].map { IPAddress(.v4, bytes: $0) }
    #expect(try await client.send(Self.request(client, addresses)).text == "ok")
    #expect(targets.values == [[8, 8, 8, 8]])
  }

  @Test("The family restricts the address of the proxy, not the one of the target") func family() async throws
  {
    let targets = Received()
    let proxy = try Self.proxy([0], targets)
    let client = Self.client(.socks5, proxy.port) { $0.addressFamily = .ipv4 }
    #expect(try await client.send(Self.request(client, [.loopback6])).text == "ok")
    #expect(targets.values == [try #require(IPAddress.loopback6).bytes])
  }

  @Test("The family does not restrict what a name service may answer for a proxy") func familyOfService()
    async throws
  {
    let targets = Received()
    let proxy = try Self.proxy([0], targets)
    let names = NameService(["shop.example": [IPAddress.loopback6].compactMap { $0 }])
    let service = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let client = Client {
      $0.addressFamily = .ipv4
      $0.nameServiceURL = service.url("/dns-query")
      $0.proxy = .perScheme(http: .socks5("127.0.0.1", port: proxy.port), https: .none)
    }
    #expect(try await client.get("http://shop.example/").text == "ok")
    #expect(targets.values == [try #require(IPAddress.loopback6).bytes])
  }

  @Test("A host without an IPv4 address cannot be reached through SOCKS4") func withoutIPv4() async throws {
    let targets = Received()
    let proxy = try Self.proxy([], targets)
    let client = Self.client(.socks4, proxy.port)
    let failure = try await client.failure(of: Self.request(client, [.loopback6]))
    #expect(failure.kind == .cannotFindHost)
    #expect(failure.message.contains("shop.invalid has no IPv4 address"), "\(failure.message)")
    #expect(proxy.connectionCount == 0)
  }
}
