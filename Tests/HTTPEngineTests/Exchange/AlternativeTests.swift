import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Alternative services. The integration tests with nginx cover those that answer over HTTP/2.
@Suite("Alternative services", .timeLimit(.minutes(5))) struct AlternativeTests {
  private let origin = "https://shop.example:8443/get"

  private func failure(
    of client: Client, by service: AlternativeService, profile: ConnectionProfile? = nil
  ) async throws -> TransportFailure {
    try await client.failure(of: client.request(origin, profile: profile).using(service))
  }

  private static func identity() throws -> TestIdentity {
    try TestIdentity(.init(commonName: "x", dnsNames: ["shop.example"], issuer: .localhostAuthority))
  }

  private static func server() throws -> HTTPTestServer { try HTTPTestServer(.tls(identity())) }

  @Test("A service over HTTP/1.1 receives no request") func http1() async throws {
    let server = try Self.server()
    let client = Client()
    for _ in 0..<2 {
      let failure = try await failure(
        of: client, by: AlternativeService(host: "127.0.0.1", port: server.port))
      #expect(failure.kind == .alternativeUnfit, "\(failure.message)")
      #expect(failure.helps(host: "shop.example"))
    }
    #expect(server.connectionCount > 0)
    #expect(server.requestCount == 0)
  }

  /// The ways in which a service refuses requests that it has not processed (RFC 9113 §8.7).
  enum Refusal: CaseIterable { case goAway, calmingGoAway, reset }

  @Test("A service that refuses each request is unfit", arguments: Refusal.allCases, ["GET", "POST"])
  func refusals(refusal: Refusal, method: String) async throws {
    var offersHTTP2 = TLSOptions()
    offersHTTP2.applicationProtocols = ["h2"]
    let requests = Counter()
    let server = try StreamTestServer(.tls(Self.identity(), offersHTTP2)) { connection in
      let http2 = try HTTP2TestConnection(connection)
      while true {
        let stream = try http2.request()
        requests.enter()
        switch refusal {
        case .goAway: try http2.goAway(last: 0)
        case .calmingGoAway: try http2.write(.goAway, payload: [0, 0, 0, 0, 0, 0, 0, 11])
        case .reset: try http2.reset(stream, .refusedStream)
        }
      }
    }
    let client = Client()
    let body = method == "GET" ? RequestBody.none : .bytes(Data("body".utf8))
    let failure = try await client.failure(
      of: client.request(origin, method, body: body).using(
        AlternativeService(host: "127.0.0.1", port: server.port)))
    #expect(failure.kind == .alternativeUnfit, "\(failure.message)")
    #expect(failure.helps(host: "shop.example"), "\(failure.message)")
    let values = try #require(failure.metrics?.values)
    #expect(values.requestStart == -1 && values.requestBodyBytes == 0 && !values.mayHaveArrived)
    #expect(server.connectionCount == 1, "the origin is not asked at once")
    // A stream may be refused because of the limit of streams, which was unknown.
    #expect(requests.now == (refusal == .reset ? 2 : 1))
  }

  @Test("The service must have a certificate of the origin") func certificate() async throws {
    let other = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    let failure = try await failure(of: client, by: AlternativeService(host: "localhost", port: other.port))
    #expect(failure.kind == .certificateUntrusted)
    #expect(failure.helps(host: "shop.example"))
    #expect(failure.metrics?.values.requestStart == -1, "the request was not sent")
    #expect(other.requestCount == 0)
  }

  @Test("The evaluator evaluates the origin") func evaluate() async throws {
    let server = try Self.server()
    let client = Client()
    let evaluator = FixedEvaluator(.refuse(FixedEvaluator.Refusal()))
    let profile = ConnectionProfile(options: client.profile.options, evaluator: evaluator)
    let failure = try await failure(
      of: client, by: AlternativeService(host: "127.0.0.1", port: server.port), profile: profile)
    #expect(failure.kind == .trustRefused)
    #expect(evaluator.chains.map(\.host) == ["shop.example"])
    #expect(evaluator.chains.map(\.port) == [8443])
  }

  @Test("Private addresses of services are refused") func privateAddresses() async throws {
    let server = try Self.server()
    let client = Client { $0.refusesPrivateAddresses = true }
    let failure = try await failure(of: client, by: AlternativeService(host: "localhost", port: server.port))
    #expect(failure.kind == .addressRefused)
    #expect(failure.message.contains("refusesPrivateAddresses"))
    #expect(server.connectionCount == 0)
  }

  @Test("A proxy is not bypassed") func proxy() async throws {
    let server = try Self.server()
    let proxy = try HTTPTestServer()
    let client = Client {
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    let failure = try await failure(of: client, by: AlternativeService(host: "127.0.0.1", port: server.port))
    #expect(failure.kind == .alternativeUnfit)
    #expect(server.connectionCount == 0)
    #expect(proxy.connectionCount == 0)
  }

  /// Sends a request to an alternative service, and then one without, for which its handle is used.
  @Test("The next request is sent to its origin") func nextRequest() async throws {
    let server = try Self.server()
    let silent = try UnresponsivePort()
    let override = TransportOptions.HostOverride(
      host: "shop.example", target: "127.0.0.1", targetPort: server.port)
    let client = Client { $0.hostOverrides = [override] }
    // Only the requests that cannot be answered have a short timeout, so a slow machine does not end the others.
    let impatient = Client.profile {
      $0.hostOverrides = [override]
      $0.connectTimeout = .milliseconds(50)
    }
    for _ in 0..<2 {
      let failure = try await failure(
        of: client, by: AlternativeService(host: "127.0.0.1", port: silent.port), profile: impatient)
      #expect(failure.kind == .timedOut)
      #expect(failure.metrics?.values.requestStart == -1)
      #expect(try await client.get(origin).status == 200)
    }
    // An override of the program applies to the host of an alternative service.
    let led = Client.profile {
      $0.hostOverrides = [
        .init(host: "alt.example", port: 9443, target: "127.0.0.1", targetPort: server.port)
      ]
    }
    let failure = try await failure(
      of: client, by: AlternativeService(host: "alt.example", port: 9443), profile: led)
    #expect(failure.kind == .alternativeUnfit)
  }
}
