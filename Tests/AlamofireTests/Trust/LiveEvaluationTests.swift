import Alamofire
import HTTPTestServer
import Testing

/// The table of evaluations, for sessions that connect to servers with these certificates.
@Suite("Table of evaluations in sessions", .timeLimit(.minutes(5))) struct LiveEvaluationTests {
  private static let rows = Dictionary(grouping: EvaluationTable.entries, by: \.fixture)

  /// The server listens on IPv4 only.
  private static let names = rows.keys.filter { $0 != "ip6" }.sorted()

  @Test("A session decides as its evaluator", arguments: names)
  func evaluators(name: String) async throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let fixture = try #require(try TrustFixtures.allFixtures.get()[name])
    let server = try HTTPTestServer(.tls(fixture.identity, fixture.tls))
    for entry in try #require(Self.rows[name]) {
      let evaluator = try trustFixtures.evaluator(entry.evaluator, own: fixture.identity)
      let session = fixture.session([fixture.host: evaluator])
      let bytes = server.receivedByteCount
      let requests = server.requestCount
      let response = await fixture.get("/get?\(entry.evaluator)", session, server)
      #expect(
        EvaluationTable.word(for: response.error) == entry.verdict,
        "\(entry): \(String(describing: response.error))")
      let isAccepted = entry.verdict == "ok"
      #expect(server.requestCount == requests + (isAccepted ? 1 : 0), "\(entry)")
      if !isAccepted { #expect(server.receivedByteCount == bytes, "\(entry)") }
      #expect((response.response?.statusCode == 200) == isAccepted, "\(entry)")
    }
  }

  /// Checks that sessions without a manager decide as the default evaluator, with errors of Foundation.
  @Test("A session without a manager decides as the default evaluator", arguments: names)
  func noManager(name: String) async throws {
    let fixture = try #require(try TrustFixtures.allFixtures.get()[name])
    let server = try HTTPTestServer(.tls(fixture.identity, fixture.tls))
    let verdict = try #require(Self.rows[name]?.first { $0.evaluator == "default" }?.verdict)
    let response = await fixture.get("/get", Session(transportOptions: fixture.reachable), server)
    let code = (response.error?.underlyingError as? URLError)?.code
    let codes: [String: URLError.Code] = [
      "expired": .serverCertificateHasBadDate, "early": .serverCertificateNotYetValid,
      "root": .serverCertificateHasUnknownRoot,
    ]
    #expect(code == (verdict == "ok" ? nil : codes[verdict] ?? .serverCertificateUntrusted))
    if verdict != "ok" { #expect(server.receivedByteCount == 0) }
  }

  // MARK: TLS interception

  @Test(
    "A trusted authority without a pin receives no request", arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func interception(version: TLSOptions.Version) async throws {
    let trustFixtures = try TrustFixtures.shared.get()
    // The certificate and its authority are valid, as with a company's proxy.
    let between = try trustFixtures.server { $0.issuer = trustFixtures.otherMiddle }
    var fixture = trustFixtures.fixture(between)
    fixture.tls.minimumVersion = version
    fixture.tls.maximumVersion = version
    fixture.tls.appendedCertificates = [trustFixtures.middle.certificatePEM]
    let server = try HTTPTestServer(.tls(between, fixture.tls))
    let pins = try Certificate.all(in: Data(trustFixtures.middle.certificatePEM.utf8))
    let evaluators: [any ServerTrustEvaluating] = [
      .pinnedCertificates(certificates: pins), .publicKeys(keys: pins.af.publicKeys),
      .composite(evaluators: [.revocationChecking, .publicKeys(keys: pins.af.publicKeys)]), Slow(pins: pins),
    ]
    for evaluator in evaluators {
      let session = fixture.session([fixture.host: evaluator])
      let secret = Data(repeating: 0x53, count: 100_000)
      let response = await session.upload(
        secret, to: fixture.url("/secret?token=1", server), headers: [.authorization(bearerToken: "secret")]
      ).serializingData().response
      withExtendedLifetime(session) {}
      #expect(response.error?.isServerTrustEvaluationError == true, "\(String(describing: response.error))")
      #expect(response.error?.underlyingError == nil)
    }
    #expect(server.connectionCount >= evaluators.count)
    #expect(server.receivedByteCount == 0 && server.requestCount == 0)
    // A session without pins sends its request to the same server.
    let response = await fixture.get("/get", fixture.session([fixture.host: .default]), server)
    #expect(response.response?.statusCode == 200 && server.receivedByteCount > 0)
  }

  /// An evaluator of a user, which does not run in the handshake.
  private struct Slow: ServerTrustEvaluating {
    let pins: [Certificate]
    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      try PinnedCertificatesTrustEvaluator(certificates: pins).evaluate(trust, forHost: host)
    }
  }

  // MARK: Hosts

  @Test("A host without an evaluator is refused or evaluated by default") func hostWithoutEvaluator()
    async throws
  {
    let trustFixtures = try TrustFixtures.shared.get()
    let fixture = trustFixtures.fixture(try trustFixtures.server())
    let server = try HTTPTestServer(.tls(fixture.identity))
    let strict = await fixture.get("/get", fixture.session(["other.example": .disabled]), server)
    guard case .serverTrustEvaluationFailed(.noRequiredEvaluator("api.lab.localhost")) = strict.error else {
      Issue.record("\(String(describing: strict.error))")
      return
    }
    #expect(server.receivedByteCount == 0)
    let lax = fixture.session(["other.example": .disabled], mustAll: false)
    #expect(await fixture.get("/get", lax, server).response?.statusCode == 200)
    let untrusted = trustFixtures.fixture(try trustFixtures.server { $0.issuer = trustFixtures.untrusted })
    let strangeServer = try HTTPTestServer(.tls(untrusted.identity))
    let session = untrusted.session(["other.example": .disabled], mustAll: false)
    let refused = await untrusted.get("/get", session, strangeServer)
    #expect((refused.error?.underlyingError as? URLError)?.code == .serverCertificateHasUnknownRoot)
  }

  @Test("The evaluator of a host is found for wildcards and other spellings") func spellings() async throws {
    let trustFixtures = try TrustFixtures.shared.get()
    var fixture = trustFixtures.fixture(try trustFixtures.server { $0.issuer = trustFixtures.untrusted })
    let server = try HTTPTestServer(.tls(fixture.identity))
    fixture.host = "API.lab.localhost"
    let session = fixture.session(["*.Lab.localhost": .disabled])
    #expect(await fixture.get("/get", session, server).response?.statusCode == 200)
  }

  @Test("An error of an evaluator of a user is delivered") func evaluatorError() async throws {
    struct Refusal: Error, Equatable {}
    struct Refusing: ServerTrustEvaluating {
      func evaluate(_ trust: SecTrust, forHost host: String) throws { throw Refusal() }
    }
    let trustFixtures = try TrustFixtures.shared.get()
    let fixture = trustFixtures.fixture(try trustFixtures.server())
    let server = try HTTPTestServer(.tls(fixture.identity))
    for evaluator: any ServerTrustEvaluating in [Refusing(), .composite(evaluators: [.default, Refusing()])] {
      let response = await fixture.get("/get", fixture.session([fixture.host: evaluator]), server)
      #expect(response.error?.underlyingError as? Refusal == Refusal())
      guard case .serverTrustEvaluationFailed(.customEvaluationFailed) = response.error else {
        Issue.record("\(String(describing: response.error))")
        continue
      }
    }
    #expect(server.receivedByteCount == 0)
  }

  // MARK: Responders

  @Test("A revoked server is refused by the response of its issuer") func revokedServer() async throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let office = try HTTPTestServer()
    let identity = try trustFixtures.server { $0.statusURL = office.url("/ocsp") }
    let responder = StatusResponder(trustFixtures.middle, revoked: [identity])
    office.enqueue(.data(try responder.response(about: identity)))
    let fixture = trustFixtures.fixture(identity)
    let server = try HTTPTestServer(.tls(identity))
    let session = fixture.session([fixture.host: .revocationChecking(options: .ocsp)])
    let response = await fixture.get("/get", session, server)
    #expect(EvaluationTable.word(for: response.error) == "revoked")
    #expect(server.receivedByteCount == 0)
    #expect(office.requestCount == 1)
  }
}

extension TrustFixtures {
  static let allFixtures = Result { try shared.get().fixtures() }
}

extension TrustFixtures.ServerFixture {
  /// Options that map every name to this machine.
  var reachable: TransportOptions {
    var options = options
    options.hostOverrides = [.init(host: host, target: "127.0.0.1")]
    return options
  }

  /// Returns a URL with the host of the fixture and the port of the server.
  func url(_ path: String, _ server: HTTPTestServer) -> String {
    "https://\(host):\(server.port)\(path)"
  }

  func session(_ evaluators: [String: any ServerTrustEvaluating], mustAll: Bool = true) -> Session {
    Session(
      serverTrustManager: ServerTrustManager(allHostsMustBeEvaluated: mustAll, evaluators: evaluators),
      transportOptions: reachable)
  }

  func get(_ path: String, _ session: Session, _ server: HTTPTestServer) async -> AFDataResponse<Data> {
    let response = await session.request(url(path, server)).serializingData().response
    withExtendedLifetime(session) {}
    return response
  }
}
