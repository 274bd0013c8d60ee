import COpenSSL
import FoundationEssentials
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Servers that ask for a client certificate. With TLS 1.2, the certificate is sent in the clear.
@Suite("Order of trust and client certificates", .timeLimit(.minutes(2))) struct IdentityOrderTests {
  private static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]

  private static func identity() throws -> ClientIdentity {
    let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
    return try ClientIdentity.read(
      certificates: Data(ada.chainPEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8), passphrase: nil
    ).get()
  }

  /// A connection with a server in memory, before its handshake.
  private struct Setup {
    let pipe = MemoryPipe()
    let server: MemoryTLSServer
    let tls: TLSConnection

    init(
      _ fixture: ConnectionFixture, _ evaluator: FixedEvaluator, _ identity: ClientIdentity?, _ version: Int32
    ) throws {
      server = try MemoryTLSServer(.localhost, on: pipe, version: version)
      let options = Client.profile { $0.clientIdentity = identity }.options
      let profile = ConnectionProfile(options: options, evaluator: evaluator)
      let origin = try #require(Origin(url: "https://localhost/"))
      tls = try TLSConnection.over(pipe, with: TLSPeer(origin, profile), fixture.core.contexts).get()
    }

    func hasSent(_ identity: ClientIdentity) throws -> Bool {
      Data(pipe.written).firstRange(of: try #require(identity.certificates.first)) != nil
    }
  }

  @Test("A server that was accepted gets the client certificate", arguments: versions, [false, true])
  func accepted(version: Int32, atStatus: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let identity = try Self.identity()
      let evaluator = FixedEvaluator(.accept, requestsStapledResponse: atStatus)
      let setup = try Setup(fixture, evaluator, identity, version)
      guard case .moved = try setup.server.handshakeForCertificate(with: setup.tls) else {
        throw MemoryTLSServer.Failure()
      }
      #expect(setup.server.hasClientCertificate && evaluator.chains.count == 1)
      #expect(try setup.hasSent(identity) == (version == TLS1_2_VERSION))
    }
  }

  @Test(
    "A server gets no client certificate while its evaluation is pending", arguments: versions, [false, true])
  func pending(version: Int32, atStatus: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let identity = try Self.identity()
      let evaluator = FixedEvaluator(.ask, requestsStapledResponse: atStatus)
      let setup = try Setup(fixture, evaluator, identity, version)
      guard case .undecided = try setup.server.handshakeForCertificate(with: setup.tls) else {
        throw MemoryTLSServer.Failure()
      }
      #expect(try !setup.server.hasClientCertificate && !setup.hasSent(identity))
    }
  }

  @Test("A refused server gets no client certificate", arguments: versions, [false, true])
  func refused(version: Int32, atStatus: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let identity = try Self.identity()
      let evaluator = FixedEvaluator(.refuse(FixedEvaluator.Refusal()), requestsStapledResponse: atStatus)
      let setup = try Setup(fixture, evaluator, identity, version)
      guard case .failed(let failure) = try setup.server.handshakeForCertificate(with: setup.tls) else {
        throw MemoryTLSServer.Failure()
      }
      #expect(failure.kind == .trustRefused, "\(failure.message)")
      #expect(try !setup.server.hasClientCertificate && !setup.hasSent(identity))
    }
  }

  @Test(
    "A delegate is asked for a client certificate after the server was accepted", arguments: versions,
    [false, true])
  func choice(version: Int32, atStatus: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let undecided = try Setup(
        fixture, FixedEvaluator(.ask, requestsStapledResponse: atStatus, choosesIdentity: true), nil, version)
      guard case .undecided = try undecided.server.handshakeForCertificate(with: undecided.tls) else {
        throw MemoryTLSServer.Failure()
      }
      let evaluator = FixedEvaluator(.accept, requestsStapledResponse: atStatus, choosesIdentity: true)
      let setup = try Setup(fixture, evaluator, nil, version)
      guard case .asksForIdentity = try setup.server.handshakeForCertificate(with: setup.tls) else {
        throw MemoryTLSServer.Failure()
      }
      setup.tls.choose(try Self.identity())
      guard case .moved = try setup.server.handshakeForCertificate(with: setup.tls) else {
        throw MemoryTLSServer.Failure()
      }
      #expect(setup.server.hasClientCertificate && evaluator.chains.count == 1)
    }
  }
}
