import Alamofire
import Foundation
import HTTPTestServer
import Scenarios
import Testing

@Suite("Attacks on revocation", .timeLimit(.minutes(5))) struct RevocationAttackTests {
  private static func pem(_ list: [UInt8]) -> String {
    let lines = Data(list).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN X509 CRL-----\n\(lines)\n-----END X509 CRL-----\n"
  }

  /// The list is parsed or every server is refused, because an ignored list would accept a stolen certificate.
  @Test(
    "A list in another format is not ignored",
    arguments: ["bom", "indent", "carriage returns", "crlf", "comment"])
  func texts(kind: String) throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let stolen = try trustFixtures.server()
    let plain = Self.pem(try trustFixtures.middle.revocationList(of: [stolen]))
    let other = Self.pem(try trustFixtures.otherMiddle.revocationList(of: []))
    let text =
      switch kind {
      case "bom": "\u{FEFF}" + plain + other
      case "indent": plain.split(separator: "\n").map { "  \($0)\n" }.joined() + other
      case "carriage returns": plain.replacing("\n", with: "\r") + "\n" + other
      case "crlf": (plain + other).replacing("\n", with: "\r\n")
      default: "# the -----BEGIN X509 CRL----- of today\n" + plain + "junk\n" + other
      }
    var fixture = trustFixtures.fixture(stolen)
    fixture.options.certificateRevocationLists = [Data(text.utf8)]
    let trust = try fixture.trust()
    #expect(throws: AFError.self) { try trust.af.evaluate() }
    fixture.options.certificateRevocationLists = [Data(other.utf8)]
    let unlisted = try fixture.trust()
    #expect(throws: Never.self) { try unlisted.af.evaluate() }
  }

  private static func verdict(
    _ identity: TestIdentity, by authority: TestIdentity, _ options: RevocationTrustEvaluator.Options,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) throws -> String {
    var transport = TransportOptions()
    transport.trustStore = .pem(Data(authority.certificatePEM.utf8))
    change(&transport)
    let trust = ServerTrust(
      certificates: try Certificate.all(in: Data(identity.certificatePEM.utf8)), host: "api.lab.localhost",
      transportOptions: transport)
    do {
      try RevocationTrustEvaluator(options: options).evaluate(trust, forHost: trust.host)
      return "ok"
    } catch {
      return EvaluationTable.word(for: error)
    }
  }

  /// Flips each bit of the signed data. A certificate that was reported stolen must not become valid.
  @Test("No flipped bit makes a stolen certificate valid", arguments: ["staple", "list"])
  func bits(source: String) throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let (stolen, fine) = (try trustFixtures.server(), try trustFixtures.server())
    let ofMiddle = Data(try trustFixtures.root.revocationList(of: []))
    func isTrusted(_ identity: TestIdentity, _ signed: [UInt8]) throws -> Bool {
      var fixture = trustFixtures.fixture(identity)
      fixture.options.certificateRevocationLists = [ofMiddle] + (source == "list" ? [Data(signed)] : [])
      if source == "staple" { fixture.tls.stapledResponse = signed }
      let trust = try fixture.trust()
      let rules: RevocationTrustEvaluator.Options = [.any, .networkAccessDisabled, .requirePositiveResponse]
      return (try? RevocationTrustEvaluator(options: rules).evaluate(trust, forHost: trust.host)) != nil
    }
    func signed(about identity: TestIdentity) throws -> [UInt8] {
      source == "list"
        ? try trustFixtures.middle.revocationList(of: [stolen])
        : try StatusResponder(trustFixtures.middle, revoked: [stolen]).response(about: identity)
    }
    #expect(try isTrusted(fine, signed(about: fine)))
    let bytes = try signed(about: stolen)
    #expect(try !isTrusted(stolen, bytes))
    for place in bytes.indices {
      var changed = bytes
      changed[place] ^= 1 << UInt8(place % 8)
      #expect(try !isTrusted(stolen, changed), "byte \(place)")
    }
  }

  /// Replaces the list of an authority once with the list of another one, as an attacker can. The forged list must not
  /// prevent the download of the right one until it expires.
  @Test("A stored list of another issuer is ignored") func foreignList() throws {
    let office = try HTTPTestServer(routes: .none)
    func authority(_ name: String) throws -> (TestIdentity, TestIdentity) {
      let authority = try TrustFixtures.authority(name)
      var specification = TestIdentity.Specification(
        commonName: name, dnsNames: ["api.lab.localhost"], issuer: authority)
      specification.listURL = office.url("/list")
      return (authority, try TestIdentity(specification))
    }
    let (mallory, his) = try authority("Mallory")
    let (honest, stolen) = try authority("Honest")
    office.enqueue(.data(try mallory.revocationList(of: [])))
    #expect(try Self.verdict(his, by: mallory, [.crl, .requirePositiveResponse]) == "ok")
    office.enqueue(.data(try honest.revocationList(of: [stolen])))
    #expect(try Self.verdict(stolen, by: honest, .crl) == "revoked")
    #expect(office.requestCount == 2)
  }

  /// Checks that requests to responders use the proxy, if there is one.
  @Test("Responders are requested through the proxy", .steps) func proxy() async throws {
    let authority = try TrustFixtures.authority("Office")
    let straight = try HTTPTestServer(routes: .none)
    let proxy = try HTTPTestServer(routes: .none)
    func identity() throws -> TestIdentity {
      var specification = TestIdentity.Specification(
        commonName: "Server", dnsNames: ["api.lab.localhost"], issuer: authority)
      specification.statusURL = straight.url("/ocsp")
      return try TestIdentity(specification)
    }
    let stolen = try identity()
    proxy.enqueue(.data(try StatusResponder(authority, revoked: [stolen]).response(about: stolen)))
    step("response through the proxy")
    let verdict = try Self.verdict(stolen, by: authority, .ocsp) {
      $0.proxy = .http("127.0.0.1", port: proxy.port, username: "ann", password: "secret")
    }
    #expect(verdict == "revoked")
    let request = try await proxy.takeRequest()
    #expect(request.target == straight.url("/ocsp"))
    #expect(
      request.header("Proxy-Authorization")
        == HTTPHeader.authorization(username: "ann", password: "secret").value)
    step("proxy that refuses")
    // If the proxy does not respond, no direct connection is opened.
    let port = try HTTPTestServer.refusedPort()
    let other = try Self.verdict(try identity(), by: authority, [.any, .requirePositiveResponse]) {
      $0.proxy = .http("127.0.0.1", port: port)
    }
    #expect(other == "unknown")
    #expect(straight.connectionCount == 0)
    step("no network access")
    straight.enqueue(.data(try StatusResponder(authority, revoked: [stolen]).response(about: stolen)))
    let bypassed = try Self.verdict(stolen, by: authority, [.ocsp, .networkAccessDisabled])
    #expect(bypassed == "ok")
  }
}
