import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// DNS over HTTPS, end to end.
@Suite("Name services", .timeLimit(.minutes(5))) struct NameServiceTests {
  private static func shop() throws -> TestIdentity {
    try TestIdentity(.init(commonName: "shop", dnsNames: ["shop.example"], issuer: .localhostAuthority))
  }

  /// The ports to which a proxy has connected.
  private final class PortRecord: Sendable {
    private let ports = Mutex<Set<Int>>([])

    var values: Set<Int> { ports.withLock { $0 } }

    func add(_ port: Int) { ports.withLock { _ = $0.insert(port) } }
  }

  /// Makes a SOCKS5 proxy to ports of this machine.
  private static func proxy(_ ports: PortRecord) throws -> StreamTestServer {
    try StreamTestServer { connection in
      guard try connection.readExactly(3) == [5, 1, 0] else { return }
      try connection.write([5, 0])
      let question = try connection.readExactly(10)
      guard question.starts(with: [5, 1, 0, 1, 127, 0, 0, 1]) else { return }
      let port = Int(question[8]) << 8 | Int(question[9])
      ports.add(port)
      try connection.relay(toPort: port) { try connection.write([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]) }
    }
  }

  private func service(_ addresses: [String: [IPAddress?]]) -> NameService {
    NameService(addresses.mapValues { $0.compactMap { $0 } })
  }

  private func client(
    _ server: HTTPTestServer, _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Client {
    Client {
      $0.nameServiceURL = server.url("/dns-query")
      change(&$0)
    }
  }

  @Test("A name has the address of the service", arguments: [false, true])
  func address(isSecure: Bool) async throws {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = isSecure ? try HTTPTestServer(.tls(Self.shop())) : try HTTPTestServer()
    let client = client(doh)
    let url = "\(isSecure ? "https" : "http")://shop.example:\(server.port)/get"
    for _ in 0..<2 { #expect(try await client.get(url).status == 200) }
    #expect(
      Set(names.questions) == [
        NameService.Question(name: "shop.example", kind: 1), .init(name: "shop.example", kind: 28),
      ])
    #expect(names.questions.count == 2, "the answer is remembered")
    for request in names.received {
      #expect(request.header("Content-Type") == "application/dns-message")
      #expect(request.tls?.serverName == "localhost")
    }
    #expect(try await server.takeRequest().header("Host") == "shop.example:\(server.port)")
  }

  @Test("Requests that reach the service in another way, or from another address, ask it themselves")
  func ways() async throws {
    let (names, others) = (service(["shop.example": [.loopback4]]), service(["shop.example": [.loopback4]]))
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let other = try HTTPTestServer(.tls(.localhost), routes: others.routes)
    let server = try HTTPTestServer()
    let client = client(doh)
    let url = "http://shop.example:\(server.port)/get"
    let overridden = self.client(doh) {
      $0.hostOverrides = [
        .init(host: "localhost", port: doh.port, target: "localhost", targetPort: other.port)
      ]
    }
    let bound = self.client(doh) { $0.localInterface = "127.0.0.1" }
    // Twice, because each of them remembers its own answer.
    for _ in 0..<2 {
      for profile in [client.profile, overridden.profile, bound.profile] {
        #expect(try await client.send(client.request(url, profile: profile)).status == 200)
      }
    }
    #expect(others.questions.count == 2, "the answer of the other service was not asked for")
    #expect(names.questions.count == 4, "a request from another address was not asked about")
  }

  @Test("Only addresses of the chosen family are used") func addressFamily() async throws {
    let names = service([
      "shop.example": [.loopback4],
      "both.example": [.loopback4, IPAddress(.v6, bytes: Array(repeating: 0, count: 15) + [1])],
    ])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let six = client(doh) {
      $0.addressFamily = .ipv6
      $0.hostOverrides = [.init(host: "localhost", target: "127.0.0.1")]
    }
    // The service itself is reached over IPv4 alone.
    _ = try await six.failure(of: "http://shop.example:\(server.port)/get")
    #expect(names.questions.isEmpty)
    let four = client(doh) { $0.addressFamily = .ipv4 }
    for host in ["shop.example", "both.example"] {
      #expect(try await four.get("http://\(host):\(server.port)/get").status == 200, "\(host)")
    }
  }

  @Test(
    "localhost, its subdomains and addresses are not looked up",
    arguments: [
      "localhost", "a.localhost", "LOCALHOST", "localhost.", "a.localhost.", "127.0.0.1", "127.1",
      "0x7f000001",
    ])
  func localNames(host: String) async throws {
    let names = service(["localhost": [.loopback6], "a.localhost": [.loopback6]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    #expect(try await client(doh).get("http://\(host):\(server.port)/get").status == 200)
    #expect(doh.connectionCount == 0)
  }

  @Test("An address with the zone of a missing interface is not looked up") func missingZone() async throws {
    let doh = try HTTPTestServer(.tls(.localhost), routes: service([:]).routes)
    _ = try await client(doh).failure(of: "http://[::1%25gone0]:9/")
    #expect(doh.connectionCount == 0)
  }

  @Test("A name that does not exist is not found") func unknownName() async throws {
    let names = service(["empty.example": []])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let client = client(doh)
    for host in ["nobody.example", "empty.example"] {
      let failure = try await client.failure(of: "http://\(host)/")
      #expect(failure.kind == .cannotFindHost, "\(failure.message)")
      #expect(failure.helps(host: host))
    }
  }

  @Test("An invalid response finds no host") func invalidResponses() async throws {
    for reply in [
      Reply.text("no answer"), .status(503), .data(Array(repeating: 0xC0, count: 100)), .status(200),
    ] {
      let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
      doh.enqueue(reply, reply)
      let failure = try await client(doh).failure(of: "http://shop.example/")
      #expect(failure.kind == .cannotFindHost, "\(failure.message)")
    }
  }

  @Test("Questions are sent again if the service closes their connections at that moment")
  func closedConnections() async throws {
    let names = service(["shop.example": [.loopback4], "other.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh)
    #expect(try await client.get("http://shop.example:\(server.port)/get").status == 200)
    names.reset()
    #expect(try await client.get("http://other.example:\(server.port)/get").status == 200)
    #expect(names.questions.count == 4 && doh.requestCount == 6)
  }

  @Test("An answer for one family alone is not remembered") func halfAnswer() async throws {
    let names = service(["both.example": [.loopback4, .loopback6]])
    names.refuse(IPAddress.Family.v4)
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh)
    let url = "http://both.example:\(server.port)/get"
    // The server listens on IPv4 alone.
    #expect(try await client.failure(of: url).kind == .cannotConnectToHost)
    let four = self.client(doh) { $0.addressFamily = .ipv4 }.profile
    #expect(try await client.send(client.request(url, profile: four)).status == 200)
    #expect(names.questions.map(\.kind).sorted() == [1, 1, 28])
  }

  @Test(
    "A request does not wait for a family about which the service never answers", arguments: [false, true])
  func silentFamily(isChosen: Bool) async throws {
    let names = service(["shop.example": [.loopback4]])
    let gate = Gate()
    names.hold(.v6, by: gate)
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh) { if isChosen { $0.addressFamily = .ipv4 } }
    #expect(try await client.get("http://shop.example:\(server.port)/get").status == 200)
    #expect(!gate.isOpen && names.questions.contains { $0.kind == 28 } == !isChosen)
    gate.open()
  }

  @Test(
    "The time that an answer has spent in a cache counts", arguments: ["60", "60, 0", "99999999999999999999"])
  func agedAnswer(age: String) async throws {
    let names = service(["shop.example": [.loopback4]])
    // The addresses are valid for a minute.
    names.add(HTTPHeader(name: "Age", value: age))
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh)
    for _ in 0..<2 { #expect(try await client.get("http://shop.example:\(server.port)/get").status == 200) }
    #expect(names.questions.count == 4)
  }

  @Test("A missing service finds no host") func missingService() async throws {
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    let client = client(doh)
    doh.stop()
    #expect(try await client.failure(of: "http://shop.example/").kind == .cannotFindHost)
  }

  @Test("An untrusted service receives no question") func untrustedService() async throws {
    let names = service(["shop.example": [.loopback4]])
    let stranger = try TestIdentity(.init(commonName: "x", dnsNames: ["localhost"]))
    let doh = try HTTPTestServer(.tls(stranger), routes: names.routes)
    let server = try HTTPTestServer()
    let failure = try await client(doh).failure(of: "http://shop.example:\(server.port)/get")
    #expect(failure.kind == .certificateHasUnknownRoot, "\(failure.message)")
    #expect(failure.message.contains("The name service localhost could not be asked"), "\(failure.message)")
    #expect(names.questions.isEmpty)
    #expect(server.connectionCount == 0)
  }

  /// Checks that the certificate of the name service has to be its own, and not one of the host that is looked up.
  @Test("The service is verified by its own name") func nameOfService() async throws {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(Self.shop()), routes: names.routes)
    let server = try HTTPTestServer(.tls(Self.shop()))
    let failure = try await client(doh).failure(of: "https://shop.example:\(server.port)/get")
    #expect(failure.kind == .certificateUntrusted, "\(failure.message)")
    #expect(failure.message.contains("The name service localhost could not be asked"), "\(failure.message)")
    #expect(names.questions.isEmpty)
  }

  @Test("The service is evaluated like any server") func evaluation() async throws {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer(.tls(Self.shop()))
    let options = client(doh).profile.options
    for (verdict, kind) in [
      (TrustVerdict.refuse(FixedEvaluator.Refusal()), TransportFailure.FailureKind.trustRefused),
      (.ask, .trustUndecided),
    ] {
      let evaluator = FixedEvaluator(verdict)
      let client = Client()
      let request = try client.request(
        "https://shop.example:\(server.port)/get",
        profile: ConnectionProfile(options: options, evaluator: evaluator))
      let failure = try await client.failure(of: request)
      #expect(failure.kind == kind)
      #expect(evaluator.chains.first?.host == "localhost")
      #expect(evaluator.chains.first?.port == doh.port)
      if kind == .trustUndecided { #expect(failure.chain?.host == "localhost") }
    }
    #expect(names.questions.isEmpty)
    let evaluator = FixedEvaluator(.usual)
    let client = Client()
    let request = try client.request(
      "https://shop.example:\(server.port)/get",
      profile: ConnectionProfile(options: options, evaluator: evaluator))
    #expect(try await client.send(request).status == 200)
    #expect(Set(evaluator.chains.map(\.host)) == ["localhost", "shop.example"])
  }

  @Test(
    "refusesPrivateAddresses applies to resolved addresses",
    arguments: [[IPAddress.loopback4], [.loopback6], [.loopback4, .loopback6]])
  func privateAddresses(addresses: [IPAddress?]) async throws {
    let names = service(["shop.example": addresses])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh) { $0.refusesPrivateAddresses = true }
    let failure = try await client.failure(of: "http://shop.example:\(server.port)/get")
    #expect(failure.kind == .addressRefused)
    #expect(failure.message.contains("refusesPrivateAddresses"), "\(failure.message)")
    #expect(!names.questions.isEmpty, "the service itself is the program's choice")
    #expect(server.connectionCount == 0)
  }

  @Test(
    "A service without TLS is a clear failure",
    arguments: [
      "http://localhost/dns-query", "localhost", "", "ftp://localhost/",
      "http://ann:s3cret@localhost/dns-query",
    ])
  func serviceWithoutTLS(url: String) async throws {
    let failure = try await Client { $0.nameServiceURL = url }.failure(of: "http://shop.example/")
    #expect(failure.kind == .badURL)
    #expect(failure.message.contains("nameServiceURL"))
    #expect(!failure.message.contains("s3cret") && !failure.message.contains("ann"), "\(failure.message)")
  }

  @Test("A cancelled look-up leaves no connection open") func cancelledLookup() async throws {
    let names = service(["shop.example": [.loopback4], "other.example": []])
    let gate = Gate()
    // The first two questions wait. Later ones are answered at once.
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    for round in 1...3 {
      var reply = Reply.status(200)
      reply.gate = gate
      doh.enqueue(reply, reply)
      let client = client(doh)
      let server = try HTTPTestServer()
      let request = try client.request("http://slow\(round).example/")
      let watcher = Watcher()
      let task = CancellationTests.start(client, request, watcher)
      await gate.waitForArrival(count: 2 * round)
      task.cancel()
      #expect(await task.value == .cancelled)
      #expect(watcher.beganCount == 1 && watcher.endedCount == 1)
      #expect(try await client.get("http://shop.example:\(server.port)/get").status == 200)
      #expect(try await client.failure(of: "http://other.example/").kind == .cannotFindHost)
      #expect(try await client.failure(of: "http://nobody.example/").kind == .cannotFindHost)
    }
    gate.open()
  }

  @Test("An idle service times out") func idleService() async throws {
    let gate = Gate()
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    for _ in 0..<2 {
      var reply = Reply.status(200)
      reply.gate = gate
      doh.enqueue(reply)
    }
    let failure = try await client(doh).failure(of: "http://shop.example/", idleTimeout: .milliseconds(200))
    #expect(failure.kind == .timedOut)
    #expect(failure.message.contains("name service"))
    gate.open()
  }

  @Test("The error of an idle service names the setting that limits it", arguments: [false, true])
  func idleSetting(isOption: Bool) async throws {
    let gate = Gate()
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    for _ in 0..<2 { doh.enqueue(.status(200).held(by: gate)) }
    let limit = Duration.milliseconds(200)
    let client = client(doh) { if isOption { $0.timeLimits.idle = limit } }
    let message = try await client.failure(of: "http://shop.example/", idleTimeout: limit).message
    #expect(message.contains("timeLimits.idle") == isOption, "\(message)")
    #expect(message.contains("timeoutIntervalForRequest") != isOption, "\(message)")
    gate.open()
  }

  /// Checks that bytes of an answer do not count as activity. With its last byte, the answer would not be valid.
  @Test("A service that sends a byte now and then times out, too", arguments: [false, true])
  func drippingService(isStream: Bool) async throws {
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    let reply = Reply.bytes(200).with(effect: .slowDrip(bytesPerStep: 1, interval: .milliseconds(50)))
    doh.enqueue(reply, reply)
    let client = client(doh)
    let failure: TransportFailure
    if isStream {
      let (stream, probe) = client.stream("shop.example", port: 80, idleTimeout: .milliseconds(300))
      stream.resume()
      guard case .failure(let end) = await probe.end() else { return _ = Issue.record("it has connected") }
      failure = end
    } else {
      failure = try await client.failure(of: "http://shop.example/", idleTimeout: .milliseconds(300))
    }
    #expect(failure.kind == .timedOut && failure.phase == .idle, "\(failure)")
    #expect(failure.message.contains("name service localhost"), "\(failure.message)")
  }

  @Test("The time for connecting includes the question to the service") func connectTimeout() async throws {
    let gate = Gate()
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    for _ in 0..<2 { doh.enqueue(.status(200).held(by: gate)) }
    let client = client(doh) { $0.connectTimeout = .milliseconds(200) }
    let failure = try await client.failure(of: "http://shop.example/", idleTimeout: nil)
    #expect(failure.kind == .timedOut && failure.phase == .nameLookup, "\(failure)")
    #expect(failure.message.contains("name service") && failure.message.contains("connect timeout"))
    gate.open()
  }

  @Test("Addresses and localhost are not resolved") func localNames() async throws {
    let names = service([:])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh) {
      $0.hostOverrides = [.init(host: "led.example", target: "127.0.0.1", targetPort: server.port)]
    }
    for url in [
      "http://127.0.0.1:\(server.port)/get", "http://localhost:\(server.port)/get", "http://led.example/get",
    ] {
      #expect(try await client.get(url).status == 200)
    }
    #expect(names.questions.isEmpty)
  }

  @Test("The target of an override is resolved") func override() async throws {
    let names = service(["target.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh) {
      $0.hostOverrides = [.init(host: "led.example", target: "Target.example", targetPort: server.port)]
    }
    #expect(try await client.get("http://led.example/get").status == 200)
    #expect(Set(names.questions.map(\.name)) == ["target.example"])
  }

  @Test("A proxy resolves names itself") func proxy() async throws {
    let names = service([:])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.text("proxied"))
    let client = client(doh) { $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port)) }
    #expect(try await client.get("http://shop.example/get").text == "proxied")
    #expect(names.questions.isEmpty)
  }

  /// Checks that the service is asked through the same proxy.
  @Test("A SOCKS proxy at a Unix-domain socket gets addresses of the service") func proxyAtSocket()
    async throws
  {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let ports = PortRecord()
    let proxy = try Self.proxy(ports)
    let socket = try UnixSocketServer(forwardingTo: proxy.port)
    let client = client(doh) {
      $0.unixSocket = socket.path
      $0.proxy = .server(ProxyServer(.socks5, host: "proxy.invalid", port: 1080))
    }
    #expect(try await client.get("http://shop.example:\(server.port)/get").status == 200)
    #expect(Set(names.questions.map(\.name)) == ["shop.example"])
    #expect(ports.values == [doh.port, server.port])
  }

  @Test("The answer for a proxy at one socket is not given to a proxy at another") func proxiesAtSockets()
    async throws
  {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let proxy = try Self.proxy(PortRecord())
    let client = Client()
    let sockets = try (0..<2).map { _ in try UnixSocketServer(forwardingTo: proxy.port) }
    // Twice, because each of them remembers its own answer.
    for socket in sockets + sockets {
      let profile = self.client(doh) {
        $0.unixSocket = socket.path
        $0.proxy = .server(ProxyServer(.socks5, host: "proxy.invalid", port: 1080))
      }.profile
      let request = try client.request("http://shop.example:\(server.port)/get", profile: profile)
      #expect(try await client.send(request).status == 200)
    }
    #expect(names.questions.count == 4, "the service was not asked through each of the proxies once")
  }

  @Test("Another address is tried if one does not respond") func severalAddresses() async throws {
    let names = service(["shop.example": [.loopback6, .loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    #expect(try await client(doh).get("http://shop.example:\(server.port)/get").status == 200)
  }
}
