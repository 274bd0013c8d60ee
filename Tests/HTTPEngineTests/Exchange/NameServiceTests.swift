import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// DNS over HTTPS, end to end.
@Suite("Name services", .timeLimit(.minutes(1))) struct NameServiceTests {
  private static func shop() throws -> TestIdentity {
    try TestIdentity(.init(commonName: "shop", dnsNames: ["shop.example"], issuer: .localhostAuthority))
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

  @Test(arguments: [false, true])
  func aNameMeansWhatTheServiceSays(isSecure: Bool) async throws {
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

  @Test func aNameThatDoesNotExistIsNotFound() async throws {
    let names = service(["empty.example": []])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let client = client(doh)
    for host in ["nobody.example", "empty.example"] {
      let failure = try await client.failure(of: "http://\(host)/")
      #expect(failure.kind == .cannotFindHost, "\(failure.message)")
      #expect(failure.helps(host: host))
    }
  }

  @Test func answersThatAreNoneFindNobody() async throws {
    for reply in [
      Reply.text("no answer"), .status(503), .data(Array(repeating: 0xC0, count: 100)), .status(200),
    ] {
      let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
      doh.enqueue(reply, reply)
      let failure = try await client(doh).failure(of: "http://shop.example/")
      #expect(failure.kind == .cannotFindHost, "\(failure.message)")
    }
  }

  @Test func aServiceThatIsNotThereFindsNobody() async throws {
    let doh = try HTTPTestServer(.tls(.localhost), routes: .none)
    let client = client(doh)
    doh.stop()
    #expect(try await client.failure(of: "http://shop.example/").kind == .cannotFindHost)
  }

  @Test func aServiceThatIsNotTrustedIsAskedNothing() async throws {
    let names = service(["shop.example": [.loopback4]])
    let stranger = try TestIdentity(.init(commonName: "x", dnsNames: ["localhost"]))
    let doh = try HTTPTestServer(.tls(stranger), routes: names.routes)
    let server = try HTTPTestServer()
    let failure = try await client(doh).failure(of: "http://shop.example:\(server.port)/get")
    #expect(failure.kind == .certificateHasUnknownRoot, "\(failure.message)")
    #expect(failure.message.contains("the name service localhost"), "\(failure.message)")
    #expect(names.questions.isEmpty)
    #expect(server.connectionCount == 0)
  }

  /// libcurl hands the settings of the transfer to its own: the name that is verified must not be one of them.
  @Test func theServiceHasToBeWhoItIsAndNotTheHostThatIsLookedFor() async throws {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(Self.shop()), routes: names.routes)
    let server = try HTTPTestServer(.tls(Self.shop()))
    let failure = try await client(doh).failure(of: "https://shop.example:\(server.port)/get")
    #expect(failure.kind == .certificateUntrusted, "\(failure.message)")
    #expect(failure.message.contains("the name service localhost"), "\(failure.message)")
    #expect(names.questions.isEmpty)
  }

  @Test func theServiceIsJudgedLikeAnyServer() async throws {
    let names = service(["shop.example": [.loopback4]])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer(.tls(Self.shop()))
    let options = client(doh).profile.options
    for (verdict, kind) in [
      (TrustVerdict.refuse(FixedJudge.Refusal()), TransportFailure.Kind.trustRefused),
      (.ask, .trustUndecided),
    ] {
      let judge = FixedJudge(verdict)
      let client = Client()
      let request = try client.request(
        "https://shop.example:\(server.port)/get", profile: ConnectionProfile(options: options, judge: judge))
      let failure = try await client.failure(of: request)
      #expect(failure.kind == kind)
      #expect(judge.chains.first?.host == "localhost")
      #expect(judge.chains.first?.port == doh.port)
      if kind == .trustUndecided { #expect(failure.chain?.host == "localhost") }
    }
    #expect(names.questions.isEmpty)
    let judge = FixedJudge(.usual)
    let client = Client()
    let request = try client.request(
      "https://shop.example:\(server.port)/get", profile: ConnectionProfile(options: options, judge: judge))
    #expect(try await client.send(request).status == 200)
    #expect(Set(judge.chains.map(\.host)) == ["localhost", "shop.example"])
  }

  @Test(arguments: [[IPAddress.loopback4], [.loopback6], [.loopback4, .loopback6]])
  func theGuardHoldsForWhatTheServiceSays(addresses: [IPAddress?]) async throws {
    let names = service(["shop.example": addresses])
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(doh) { $0.refusesPrivateAddresses = true }
    let failure = try await client.failure(of: "http://shop.example:\(server.port)/get")
    #expect(failure.kind == .cannotConnectToHost)
    #expect(failure.message.contains("refusesPrivateAddresses"), "\(failure.message)")
    #expect(!names.questions.isEmpty, "the service itself is the program's choice")
    #expect(server.connectionCount == 0)
  }

  @Test(arguments: ["http://localhost/dns-query", "localhost", "", "ftp://localhost/"])
  func aServiceWithoutTLSIsAClearFailure(url: String) async throws {
    let failure = try await Client { $0.nameServiceURL = url }.failure(of: "http://shop.example/")
    #expect(failure.kind == .badURL)
    #expect(failure.message.contains("nameServiceURL"))
  }

  /// The look-ups are transfers of libcurl's own, which must not outlive what they are for.
  @Test func requestsThatAreCancelledWhileTheyAskLeaveTheirPlaceInOrder() async throws {
    let names = service(["shop.example": [.loopback4]])
    let gate = Gate()
    let slow = try HTTPTestServer(.tls(.localhost), routes: .none)
    for _ in 0..<80 {
      var reply = Reply.status(200)
      reply.gate = gate
      slow.enqueue(reply)
    }
    let doh = try HTTPTestServer(.tls(.localhost), routes: names.routes)
    let server = try HTTPTestServer()
    let client = client(slow)
    let good = Client.profile { $0.nameServiceURL = doh.url("/dns-query") }
    for round in 0..<3 {
      let tasks = try (0..<6).map { index in
        let request = try client.request("http://slow\(round)-\(index).example/")
        return CancellationTests.start(client, request, Watcher())
      }
      await gate.waitUntilReached(count: 6 * (round + 1))
      for task in tasks { task.cancel() }
      for task in tasks { #expect(await task.value == .cancelled) }
      // On the handles of the cancelled ones.
      let responses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<6 {
          let request = try client.request("http://shop.example:\(server.port)/get", profile: good)
          group.addTask { try await client.send(request).status }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(responses == Array(repeating: 200, count: 6))
    }
    gate.open()
  }
}
