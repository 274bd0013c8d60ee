import Alamofire
import HTTPTestServer
import Testing

/// The table of verdicts, met by sessions that talk TLS to servers with these certificates.
@Suite("Table of verdicts, live", .timeLimit(.minutes(5))) struct LiveVerdictTests {
  private static let rows = Dictionary(grouping: VerdictTable.entries, by: \.specimen)

  /// The server listens on IPv4 alone.
  private static let names = rows.keys.filter { $0 != "ip6" }.sorted()

  @Test(arguments: names)
  func everySessionDecidesAsItsEvaluator(name: String) async throws {
    let laboratory = try Laboratory.shared.get()
    let specimen = try #require(try Laboratory.allSpecimens.get()[name])
    let server = try HTTPTestServer(.tls(specimen.identity, specimen.tls))
    for entry in try #require(Self.rows[name]) {
      let evaluator = try laboratory.evaluator(entry.evaluator, own: specimen.identity)
      let session = specimen.session([specimen.host: evaluator])
      let bytes = server.receivedByteCount
      let requests = server.requestCount
      let response = await specimen.get("/get?\(entry.evaluator)", session, server)
      #expect(
        VerdictTable.word(for: response.error) == entry.verdict,
        "\(entry): \(String(describing: response.error))")
      let isAccepted = entry.verdict == "ok"
      #expect(server.requestCount == requests + (isAccepted ? 1 : 0), "\(entry)")
      if !isAccepted { #expect(server.receivedByteCount == bytes, "\(entry)") }
      #expect((response.response?.statusCode == 200) == isAccepted, "\(entry)")
    }
  }

  /// Without a manager, sessions decide as the default evaluator, with errors of Foundation.
  @Test(arguments: names)
  func aSessionWithoutAManagerDecidesAsTheDefault(name: String) async throws {
    let specimen = try #require(try Laboratory.allSpecimens.get()[name])
    let server = try HTTPTestServer(.tls(specimen.identity, specimen.tls))
    let verdict = try #require(Self.rows[name]?.first { $0.evaluator == "default" }?.verdict)
    let response = await specimen.get("/get", Session(transportOptions: specimen.reachable), server)
    let code = (response.error?.underlyingError as? URLError)?.code
    let codes: [String: URLError.Code] = [
      "expired": .serverCertificateHasBadDate, "early": .serverCertificateNotYetValid,
      "root": .serverCertificateHasUnknownRoot,
    ]
    #expect(code == (verdict == "ok" ? nil : codes[verdict] ?? .serverCertificateUntrusted))
    if verdict != "ok" { #expect(server.receivedByteCount == 0) }
  }

  // MARK: An attacker on the network path

  @Test(arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func aTrustedButUnpinnedAuthorityInBetweenGetsNothing(version: TLSOptions.Version) async throws {
    let laboratory = try Laboratory.shared.get()
    // The certificate is good in every way, and so is its authority: a company's proxy, for example.
    let between = try laboratory.server { $0.issuer = laboratory.otherMiddle }
    var specimen = laboratory.specimen(between)
    specimen.tls.minimumVersion = version
    specimen.tls.maximumVersion = version
    specimen.tls.appendedCertificates = [laboratory.middle.certificatePEM]
    let server = try HTTPTestServer(.tls(between, specimen.tls))
    let pins = try Certificate.all(in: Data(laboratory.middle.certificatePEM.utf8))
    let evaluators: [any ServerTrustEvaluating] = [
      .pinnedCertificates(certificates: pins), .publicKeys(keys: pins.af.publicKeys),
      .composite(evaluators: [.revocationChecking, .publicKeys(keys: pins.af.publicKeys)]), Slow(pins: pins),
    ]
    for evaluator in evaluators {
      let session = specimen.session([specimen.host: evaluator])
      let secret = Data(repeating: 0x53, count: 100_000)
      let response = await session.upload(
        secret, to: specimen.url("/secret?token=1", server), headers: [.authorization(bearerToken: "secret")]
      ).serializingData().response
      withExtendedLifetime(session) {}
      #expect(response.error?.isServerTrustEvaluationError == true, "\(String(describing: response.error))")
      #expect(response.error?.underlyingError == nil)
    }
    #expect(server.connectionCount >= evaluators.count)
    #expect(server.receivedByteCount == 0 && server.requestCount == 0)
    // The same server gets the request of a session that pins nothing: it was the pins.
    let response = await specimen.get("/get", specimen.session([specimen.host: .default]), server)
    #expect(response.response?.statusCode == 200 && server.receivedByteCount > 0)
  }

  /// An evaluator of a user: it is not asked in the handshake.
  private struct Slow: ServerTrustEvaluating {
    let pins: [Certificate]
    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      try PinnedCertificatesTrustEvaluator(certificates: pins).evaluate(trust, forHost: host)
    }
  }

  // MARK: Hosts

  @Test func aHostWithoutAnEvaluatorIsRefusedOrJudgedAsUsual() async throws {
    let laboratory = try Laboratory.shared.get()
    let specimen = laboratory.specimen(try laboratory.server())
    let server = try HTTPTestServer(.tls(specimen.identity))
    let strict = await specimen.get("/get", specimen.session(["other.example": .disabled]), server)
    guard case .serverTrustEvaluationFailed(.noRequiredEvaluator("api.lab.localhost")) = strict.error else {
      Issue.record("\(String(describing: strict.error))")
      return
    }
    #expect(server.receivedByteCount == 0)
    let lax = specimen.session(["other.example": .disabled], mustAll: false)
    #expect(await specimen.get("/get", lax, server).response?.statusCode == 200)
    let stranger = laboratory.specimen(try laboratory.server { $0.issuer = laboratory.stranger })
    let strangeServer = try HTTPTestServer(.tls(stranger.identity))
    let session = stranger.session(["other.example": .disabled], mustAll: false)
    let refused = await stranger.get("/get", session, strangeServer)
    #expect((refused.error?.underlyingError as? URLError)?.code == .serverCertificateHasUnknownRoot)
  }

  @Test func wildcardHostsAndOtherSpellingsFindTheirEvaluator() async throws {
    let laboratory = try Laboratory.shared.get()
    var specimen = laboratory.specimen(try laboratory.server { $0.issuer = laboratory.stranger })
    let server = try HTTPTestServer(.tls(specimen.identity))
    specimen.host = "API.lab.localhost"
    let session = specimen.session(["*.Lab.localhost": .disabled])
    #expect(await specimen.get("/get", session, server).response?.statusCode == 200)
  }

  @Test func whatAnEvaluatorOfAUserThrowsArrives() async throws {
    struct Refusal: Error, Equatable {}
    struct Refusing: ServerTrustEvaluating {
      func evaluate(_ trust: SecTrust, forHost host: String) throws { throw Refusal() }
    }
    let laboratory = try Laboratory.shared.get()
    let specimen = laboratory.specimen(try laboratory.server())
    let server = try HTTPTestServer(.tls(specimen.identity))
    for evaluator: any ServerTrustEvaluating in [Refusing(), .composite(evaluators: [.default, Refusing()])] {
      let response = await specimen.get("/get", specimen.session([specimen.host: evaluator]), server)
      #expect(response.error?.underlyingError as? Refusal == Refusal())
      guard case .serverTrustEvaluationFailed(.customEvaluationFailed) = response.error else {
        Issue.record("\(String(describing: response.error))")
        continue
      }
    }
    #expect(server.receivedByteCount == 0)
  }

  // MARK: Responders

  @Test func aRevokedServerIsRefusedByWhatItsIssuerSays() async throws {
    let laboratory = try Laboratory.shared.get()
    let office = try HTTPTestServer()
    let identity = try laboratory.server { $0.statusURL = office.url("/ocsp") }
    let responder = StatusResponder(laboratory.middle, revoked: [identity])
    office.enqueue(.data(try responder.response(about: identity)))
    let specimen = laboratory.specimen(identity)
    let server = try HTTPTestServer(.tls(identity))
    let session = specimen.session([specimen.host: .revocationChecking(options: .ocsp)])
    let response = await specimen.get("/get", session, server)
    #expect(VerdictTable.word(for: response.error) == "revoked")
    #expect(server.receivedByteCount == 0)
    #expect(office.requestCount == 1)
  }
}

extension Laboratory {
  static let allSpecimens = Result { try shared.get().specimens() }
}

extension Laboratory.Specimen {
  /// Every name is this machine; the port stays.
  var reachable: TransportOptions {
    var options = options
    options.hostOverrides = [.init(host: host, target: "127.0.0.1")]
    return options
  }

  /// A URL of the specimen's own host, with the port of the server.
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
