import Alamofire
import Foundation
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Responders and revocation lists over the network. ``EvaluationTable`` covers the rest.
@Suite("Revocation over the network", .timeLimit(.minutes(5))) struct RevocationNetworkTests {
  /// The server of an authority, and certificates that name it.
  private final class Office: Sendable {
    let server: HTTPTestServer
    let authority: TestIdentity
    let stolen: TestIdentity
    let fine: TestIdentity

    init() throws {
      let server = try HTTPTestServer(routes: Routes.standard)
      let authority = try TrustFixtures.authority("Office")
      func identity(_ name: String) throws -> TestIdentity {
        var specification = TestIdentity.Specification(
          commonName: name, dnsNames: ["api.lab.localhost"], issuer: authority)
        specification.statusURL = server.url("/ocsp")
        specification.listURL = server.url("/list")
        return try TestIdentity(specification)
      }
      self.server = server
      self.authority = authority
      stolen = try identity("Stolen")
      fine = try identity("Fine")
    }

    var responder: StatusResponder { StatusResponder(authority, revoked: [stolen]) }

    func trust(_ identity: TestIdentity, _ lists: [[UInt8]] = []) throws -> ServerTrust {
      var options = TransportOptions()
      options.certificateRevocationLists = lists.map { Data($0) }
      options.trustStore = .pem(Data(authority.certificatePEM.utf8))
      let certificates = try Certificate.all(in: Data(identity.certificatePEM.utf8))
      return ServerTrust(certificates: certificates, host: "api.lab.localhost", transportOptions: options)
    }

    func verdict(
      _ identity: TestIdentity, _ options: RevocationTrustEvaluator.Options, lists: [[UInt8]] = []
    ) -> String {
      do {
        try RevocationTrustEvaluator(options: options).evaluate(
          trust(identity, lists), forHost: "api.lab.localhost")
        return "ok"
      } catch {
        return EvaluationTable.word(for: error)
      }
    }

    func answer(about identity: TestIdentity, status: StatusResponder.Status? = nil) throws -> Reply {
      .data(try responder.response(about: identity, status: status))
    }

    func list() throws -> Reply { .data(try authority.revocationList(of: [stolen])) }

    /// Returns a PEM text with `count` lists: at the end the authority's, before it lists with its name that it did not
    /// sign.
    func lists(_ count: Int) throws -> Reply {
      let forged = try pem(TrustFixtures.authority("Office").revocationList(of: []))
      let own = try pem(authority.revocationList(of: [stolen]))
      return .data(Array((String(repeating: forged, count: count - 1) + own).utf8))
    }

    private func pem(_ list: [UInt8]) -> String {
      let lines = Data(list).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
      return "-----BEGIN X509 CRL-----\n\(lines)\n-----END X509 CRL-----\n"
    }
  }

  private let office: Office

  init() throws {
    office = try Office()
  }

  @Test("A responder is requested and its response is stored") func responder() async throws {
    office.server.enqueue(try office.answer(about: office.stolen), try office.answer(about: office.fine))
    #expect(office.verdict(office.stolen, .ocsp) == "revoked")
    let request = try await office.server.takeRequest()
    #expect(request.method == "POST" && request.path == "/ocsp")
    #expect(request.header("Content-Type") == "application/ocsp-request")
    // The request is about this certificate.
    _ = try office.responder.response(to: request.body)
    #expect(office.verdict(office.fine, [.ocsp, .requirePositiveResponse]) == "ok")
    #expect(office.verdict(office.stolen, .ocsp) == "revoked")
    #expect(office.verdict(office.fine, [.ocsp, .requirePositiveResponse]) == "ok")
    #expect(office.server.requestCount == 2)
  }

  @Test("OpenSSL's responder reads the request") func openSSLResponder() throws {
    let authority = try TrustFixtures.authority("Office")
    let box = Box()
    let server = try HTTPTestServer(
      routes: Routes.standard.adding("/real", methods: ["POST"]) { request, _ in
        guard let responder = box.responder.withLock({ $0 }),
          let bytes = try? responder.response(to: request.body)
        else { return .status(400) }
        return .data(bytes)
      })
    func identity() throws -> TestIdentity {
      var specification = TestIdentity.Specification(
        commonName: "Server", dnsNames: ["api.lab.localhost"], issuer: authority)
      specification.statusURL = server.url("/real")
      return try TestIdentity(specification)
    }
    let (stolen, fine) = (try identity(), try identity())
    box.responder.withLock { $0 = StatusResponder(authority, revoked: [stolen]) }
    for (identity, verdict) in [(stolen, "revoked"), (fine, "ok")] {
      var options = TransportOptions()
      options.trustStore = .pem(Data(authority.certificatePEM.utf8))
      let trust = ServerTrust(
        certificates: try Certificate.all(in: Data(identity.certificatePEM.utf8)), host: "api.lab.localhost",
        transportOptions: options)
      var caught: (any Error)?
      do {
        try RevocationTrustEvaluator(options: [.ocsp, .requirePositiveResponse]).evaluate(
          trust, forHost: trust.host)
      } catch { caught = error }
      #expect(EvaluationTable.word(for: caught) == verdict)
    }
  }

  private final class Box: Sendable {
    let responder = Mutex<StatusResponder?>(nil)
  }

  @Test(
    "An invalid response leaves the status unknown",
    arguments: [
      Reply.status(500), .text("no response"), .reset, .data([]),
      .data([UInt8](repeating: 0x30, count: 70_000)),
      .redirect(to: "https://localhost:1/ocsp"), .redirect(to: "file:///etc/hosts"),
      .redirect(to: "/ocsp", status: 307),
    ])
  func invalidResponses(reply: Reply) throws {
    office.server.enqueue(reply, reply, reply, reply, reply)
    #expect(office.verdict(office.stolen, .ocsp) == "ok")
    #expect(office.verdict(office.stolen, [.ocsp, .requirePositiveResponse]) == "unknown")
  }

  @Test("A missing responder leaves the status unknown") func missingResponder() throws {
    office.server.stop()
    #expect(office.verdict(office.stolen, .any) == "ok")
    #expect(office.verdict(office.stolen, [.any, .requirePositiveResponse]) == "unknown")
  }

  @Test("A response of another issuer is ignored") func foreignResponse() throws {
    var forged = office.responder
    forged.signer = try TrustFixtures.authority("Office")
    let reply = Reply.data(try forged.response(about: office.fine, status: .good))
    office.server.enqueue(reply)
    #expect(office.verdict(office.fine, [.ocsp, .requirePositiveResponse]) == "unknown")
    // The response was not stored.
    office.server.enqueue(try office.answer(about: office.fine))
    #expect(office.verdict(office.fine, [.ocsp, .requirePositiveResponse]) == "ok")
  }

  @Test("Redirects over HTTP are followed") func redirects() throws {
    office.server.enqueue(
      .redirect(to: office.server.url("/elsewhere"), status: 307), try office.answer(about: office.stolen))
    #expect(office.verdict(office.stolen, .ocsp) == "revoked")
    #expect(office.server.recordedRequests.map(\.path) == ["/ocsp", "/elsewhere"])
    #expect(office.server.recordedRequests.last?.method == "POST")
  }

  @Test("A list is downloaded once") func list() throws {
    office.server.enqueue(try office.list())
    #expect(office.verdict(office.stolen, .crl) == "revoked")
    #expect(office.verdict(office.fine, [.crl, .requirePositiveResponse]) == "ok")
    #expect(office.server.recordedRequests.map(\.path) == ["/list"])
    #expect(office.server.recordedRequests.first?.method == "GET")
  }

  /// Checks the limit, because the signature of each list with the name of the authority is verified.
  @Test("A download has a limited number of lists, and the authority's may be any of them") func manyLists()
    throws
  {
    office.server.enqueue(try office.lists(17), try office.lists(17), try office.lists(16))
    #expect(office.verdict(office.fine, [.crl, .requirePositiveResponse]) == "unknown")
    #expect(office.verdict(office.stolen, .crl) == "ok")
    #expect(office.verdict(office.stolen, .crl) == "revoked")
    #expect(office.verdict(office.fine, [.crl, .requirePositiveResponse]) == "ok")
    #expect(office.server.requestCount == 3)
  }

  @Test("A list of another issuer is ignored and not stored") func foreignList() throws {
    let forged = try TrustFixtures.authority("Office").revocationList(of: [office.fine])
    office.server.enqueue(.data(forged))
    #expect(office.verdict(office.fine, .crl) == "ok")
    office.server.enqueue(try office.list())
    #expect(office.verdict(office.fine, [.crl, .requirePositiveResponse]) == "ok")
    #expect(office.server.requestCount == 2)
  }

  @Test("A responder is asked about a certificate that the given list does not name") func givenList() throws
  {
    let clean = [try office.authority.revocationList(of: [])]
    #expect(
      office.verdict(office.stolen, [.any, .preferCRL, .requirePositiveResponse], lists: clean) == "ok")
    #expect(office.verdict(office.stolen, [.crl, .requirePositiveResponse], lists: clean) == "ok")
    #expect(office.server.requestCount == 0, "a given list takes the place of the issuer's")
    office.server.enqueue(.status(404))
    #expect(office.verdict(office.stolen, [.any, .requirePositiveResponse], lists: clean) == "ok")
    office.server.enqueue(try office.answer(about: office.stolen))
    #expect(office.verdict(office.stolen, .any, lists: clean) == "revoked")
    #expect(office.server.recordedRequests.map(\.path) == ["/ocsp", "/ocsp"])
  }

  @Test("Sources are used in the order of the options") func order() throws {
    office.server.enqueue(.status(404), .status(404), .status(404), .status(404))
    #expect(office.verdict(office.fine, .any) == "ok")
    #expect(office.verdict(office.fine, [.any, .preferCRL]) == "ok")
    #expect(office.server.recordedRequests.map(\.path) == ["/ocsp", "/list", "/list", "/ocsp"])
  }

  @Test("Only the methods of the options are used") func methods() throws {
    for (options, paths) in [
      (.preferCRL, ["/list"]), (.crl, ["/list"]), (.ocsp, ["/ocsp"]),
      ([.ocsp, .preferCRL], ["/list", "/ocsp"]),
      ([.crl, .preferCRL], ["/list"]), ([], ["/ocsp", "/list"]),
      (.requirePositiveResponse, ["/ocsp", "/list"]),
    ] as [(RevocationTrustEvaluator.Options, [String])] {
      office.server.forgetRequests()
      for _ in paths { office.server.enqueue(.status(404)) }
      let verdict = office.verdict(office.fine, options)
      #expect((verdict == "ok") != options.contains(.requirePositiveResponse), "\(options): \(verdict)")
      #expect(office.server.recordedRequests.map(\.path) == paths, "\(options)")
      // A stapled response is an answer of a responder, too.
      let evaluator = RevocationTrustEvaluator(options: options)
      #expect(evaluator.requestsStapledResponse == paths.contains("/ocsp"), "\(options)")
    }
  }

  @Test("Without the network, or for unknown issuers, no request is sent") func noRequest() throws {
    #expect(office.verdict(office.stolen, [.any, .networkAccessDisabled]) == "ok")
    let untrusted = ServerTrust(
      certificates: try Certificate.all(in: Data(office.stolen.certificatePEM.utf8)),
      host: "api.lab.localhost",
      transportOptions: try TrustFixtures.shared.get().options)
    let evaluator = RevocationTrustEvaluator(performDefaultValidation: false, validateHost: false)
    #expect(throws: AFError.self) { try evaluator.evaluate(untrusted, forHost: "api.lab.localhost") }
    #expect(office.server.requestCount == 0)
  }
}
