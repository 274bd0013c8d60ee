import COpenSSL
import FoundationEssentials
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@testable import HTTPEngine

/// Servers that begin another handshake of TLS within a connection. Apache and IIS do so with TLS 1.2 to ask for a
/// client certificate when they know which path is requested.
@Suite("Renegotiation of TLS", .timeLimit(.minutes(2))) struct RenegotiationTests {
  /// A client without an identity, with one, one that has to choose, and one that has chosen none.
  private enum Party { case anonymous, identified, choosing, declining }

  private final class ChoosingEvaluator: ServerEvaluator {
    let wantsToChoose: Atomic<Bool>

    init(wantsToChoose: Bool) { self.wantsToChoose = Atomic(wantsToChoose) }

    func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict { .accept }
    func choosesIdentity(forHost host: String, port: Int) -> Bool { wantsToChoose.load(ordering: .relaxed) }
  }

  private static func profile(_ client: Party) throws -> ConnectionProfile {
    let plain = Client.profile()
    switch client {
    case .anonymous: return plain
    case .choosing, .declining:
      let evaluator = ChoosingEvaluator(wantsToChoose: client == .choosing)
      return ConnectionProfile(options: plain.options, evaluator: evaluator)
    case .identified:
      let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
      let identity = try ClientIdentity.read(
        certificates: Data(ada.chainPEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8), passphrase: nil
      ).get()
      return Client.profile { $0.clientIdentity = identity }
    }
  }

  /// A connection with a server in memory, after its handshake.
  private struct Setup {
    let pipe = MemoryPipe()
    let server: MemoryTLSServer
    let tls: TLSConnection

    init(_ fixture: ConnectionFixture, _ client: Party, version: Int32 = TLS1_2_VERSION) throws {
      server = try MemoryTLSServer(.localhost, on: pipe, version: version)
      let origin = try #require(Origin(url: "https://localhost/"))
      tls = try TLSConnection.over(
        pipe, with: TLSPeer(origin, RenegotiationTests.profile(client)), fixture.core.contexts
      ).get()
      try server.handshake(with: tls)
    }

    /// Sends a request to the server, which reads it and does not answer yet.
    func send(
      _ fixture: ConnectionFixture, _ method: String = "GET", _ body: RequestBody = .none
    ) throws -> ConnectionFixture.Ending {
      let (exchange, ending) = try fixture.exchange(method, body)
      fixture.pool.serve(exchange)
      _ = try fixture.open(pipe, tls)
      server.receive()
      return ending
    }

    /// Lets both sides answer each other, until they have nothing more to say.
    func converse() {
      for _ in 0..<8 {
        pipe.owner?.pipeIsReady()
        server.receive()
      }
    }
  }

  private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  @Test(
    "A request of a client with an identity is answered after a renegotiation, which shows the certificate")
  func identity() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .identified)
      for round in 1...2 as ClosedRange<UInt64> {
        let (exchange, ending) = try fixture.exchange(ticket: round)
        fixture.pool.serve(exchange)
        let connection =
          round == 1
          ? try fixture.open(setup.pipe, setup.tls) : try #require(exchange.connection as? HTTP1Connection)
        #expect(setup.server.receive().hasPrefix("GET / HTTP/1.1"))
        setup.server.renegotiate()
        setup.converse()
        #expect(setup.server.hasClientCertificate, "round \(round)")
        setup.server.send(Self.ok)
        setup.converse()
        #expect(ending.text == "ok", "round \(round)")
        connection.settle()
        #expect(!setup.pipe.isClosed && fixture.pool.idle.count == 1, "the connection is used again")
      }
    }
  }

  @Test("A certificate that is chosen outside is asked for again, on another connection") func choice()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .choosing)
      let ending = try setup.send(fixture, "POST", .bytes(Data([1, 2, 3])))
      setup.server.renegotiate()
      setup.converse()
      #expect(ending.failure?.kind == .identityUndecided && setup.pipe.isClosed)
    }
  }

  @Test("A client that has decided to remain anonymous is not asked again on an older connection")
  func decided() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .choosing)
      let ending = try setup.send(fixture, "POST", .bytes(Data([1, 2, 3])))
      let evaluator = try #require(setup.tls.peer.profile.evaluator as? ChoosingEvaluator)
      evaluator.wantsToChoose.store(false, ordering: .relaxed)
      setup.server.renegotiate()
      setup.converse()
      #expect(!setup.server.hasClientCertificate && !setup.tls.renegotiation.wasRefused)
      setup.server.send(Self.ok)
      setup.converse()
      #expect(ending.text == "ok", "\(ending.failure?.message ?? "")")
    }
  }

  @Test("A request that cannot be sent again names the reason", arguments: [false, true])
  func unrepeatable(hasResponse: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .choosing)
      let source = ScriptedSource(.bytes([1, 2, 3]), .wait, isRepeatable: false)
      let (exchange, ending) = try fixture.exchange("POST", hasResponse ? .none : .source(source))
      _ = exchange.startSource()
      fixture.pool.serve(exchange)
      _ = try fixture.open(setup.pipe, setup.tls)
      setup.server.receive()
      if hasResponse { setup.server.send("HTTP/1.1 200 OK\r\n") }
      setup.server.renegotiate()
      setup.converse()
      #expect(ending.failure?.kind == .clientCertificateRequired && setup.pipe.isClosed)
      let reason = hasResponse ? "its response has begun" : "its body can be read only once"
      #expect(ending.failure?.message.contains(reason) == true, "\(ending.failure?.message ?? "")")
    }
  }

  @Test("A client without an identity shows no certificate, which is enough for a server that requires none")
  func optional() async throws {
    try await ConnectionFixture.run { fixture in
      for client in [Party.anonymous, .declining] {
        let setup = try Setup(fixture, client)
        let (exchange, ending) = try fixture.exchange("POST", .bytes(Data([1, 2, 3])))
        fixture.pool.serve(exchange)
        let connection = try fixture.open(setup.pipe, setup.tls)
        setup.server.receive()
        setup.server.renegotiate()
        setup.converse()
        #expect(!setup.server.hasClientCertificate && !setup.tls.renegotiation.wasRefused, "\(client)")
        setup.server.send(Self.ok)
        setup.converse()
        #expect(ending.text == "ok", "\(client): \(ending.failure?.message ?? "")")
        connection.settle()
        #expect(!setup.pipe.isClosed && fixture.pool.idle.count == 1, "the connection is used again")
        connection.close()
      }
    }
  }

  @Test("A client without an identity says what the server wants if it requires a certificate")
  func required() async throws {
    try await ConnectionFixture.run { fixture in
      for client in [Party.anonymous, .declining] {
        let setup = try Setup(fixture, client)
        let ending = try setup.send(fixture)
        setup.server.renegotiate(requiresCertificate: true)
        setup.converse()
        #expect(ending.failure?.kind == .clientCertificateRequired && setup.pipe.isClosed, "\(client)")
        let message = ending.failure?.message ?? ""
        #expect(message.contains("localhost asks for a client certificate"), "\(message)")
      }
    }
  }

  @Test("A server that asks for a certificate and answers without waiting for one is heard")
  func answered() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .anonymous)
      let ending = try setup.send(fixture)
      setup.server.renegotiate()
      setup.server.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
      setup.pipe.owner?.pipeIsReady()
      #expect(ending.status == 403)
    }
  }

  @Test("A renegotiation begins after the bytes that came with its request") func postponed() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .identified)
      let ending = try setup.send(fixture)
      setup.server.renegotiate()
      setup.server.send("HTTP/1.1 103 Early Hints\r\n\r\n")
      setup.converse()
      #expect(setup.server.hasClientCertificate && ending.outcome == nil)
      setup.server.send(Self.ok)
      setup.converse()
      #expect(ending.status == 200)
    }
  }

  @Test("A server may renegotiate once a request") func again() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .identified)
      let ending = try setup.send(fixture)
      setup.server.renegotiate()
      setup.converse()
      #expect(ending.outcome == nil && !setup.tls.renegotiation.wasRefused)
      setup.server.renegotiate()
      setup.converse()
      #expect(setup.tls.renegotiation.wasRefused)
      setup.pipe.afterIncoming = .ended
      setup.converse()
      #expect(ending.failure?.kind == .clientCertificateRequired && setup.pipe.isClosed)
    }
  }

  @Test("Endless messages of handshakes end the connection", arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
  func flood(version: Int32) async throws {
    try await ConnectionFixture.run { fixture in
      for client in [Party.anonymous, .identified] {
        let setup = try Setup(fixture, client, version: version)
        let (exchange, ending) = try fixture.exchange(ticket: client == .anonymous ? 1 : 2)
        fixture.pool.serve(exchange)
        _ = try fixture.open(setup.pipe, setup.tls)
        for _ in 0..<300 {
          if version == TLS1_2_VERSION { setup.server.renegotiate() } else { setup.server.sendTicket() }
        }
        setup.pipe.owner?.pipeIsReady()
        #expect(
          ending.failure?.kind == .secureConnectionFailed, "\(client): \(ending.failure?.message ?? "no end")"
        )
        #expect(setup.pipe.isClosed)
      }
    }
  }

  @Test("Messages of handshakes between data do not count as an attack") func tickets() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .identified, version: TLS1_3_VERSION)
      let ending = try setup.send(fixture)
      setup.server.send("HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n")
      for _ in 0..<300 {
        setup.server.sendTicket()
        setup.server.send("a")
        setup.pipe.owner?.pipeIsReady()
      }
      #expect(ending.text?.count == 300, "\(ending.failure?.message ?? "no end")")
    }
  }

  @Test("A certificate that the server does not accept is an error that says so") func rejected() async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .identified)
      let ending = try setup.send(fixture)
      setup.server.refuseCertificates()
      setup.server.renegotiate()
      setup.converse()
      #expect(ending.failure?.kind == .clientCertificateRejected && setup.pipe.isClosed)
      #expect(
        ending.failure?.message.contains("did not accept the client certificate") == true,
        "\(ending.failure?.message ?? "")")
    }
  }

  @Test("A server must present the certificate that was accepted") func otherCertificate() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, .identified)
      let ending = try setup.send(fixture)
      let other = try TestIdentity(
        .init(commonName: "localhost", dnsNames: ["localhost"], issuer: .localhostAuthority))
      try setup.server.present(other)
      setup.server.renegotiate()
      setup.converse()
      #expect(ending.failure?.kind == .secureConnectionFailed && setup.pipe.isClosed)
      #expect(
        ending.failure?.message.contains("another certificate") == true, "\(ending.failure?.message ?? "")")
      #expect(!setup.server.hasClientCertificate)
    }
  }

  @Test("An idle connection is closed if the server renegotiates", arguments: [false, true])
  func idle(hasIdentity: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, hasIdentity ? .identified : .anonymous)
      let (exchange, ending) = try fixture.exchange()
      fixture.pool.serve(exchange)
      let connection = try fixture.open(setup.pipe, setup.tls)
      setup.server.receive()
      setup.server.send(Self.ok)
      setup.pipe.owner?.pipeIsReady()
      connection.settle()
      #expect(ending.text == "ok" && fixture.pool.idle.count == 1)
      setup.server.renegotiate()
      setup.pipe.owner?.pipeIsReady()
      #expect(setup.pipe.isClosed && fixture.pool.idle.isEmpty && !setup.server.hasClientCertificate)
    }
  }

  @Test("Over HTTP/2 a renegotiation ends the connection (RFC 9113 §9.2.1)") func http2() async throws {
    try await ConnectionFixture.run { fixture in
      for client in [Party.anonymous, .identified, .choosing] {
        let setup = try Setup(fixture, client)
        let connection = try fixture.http2(setup.pipe, setup.tls)
        let (exchange, ending) = try fixture.exchange()
        setup.server.send(HTTP2TestConnection.bytes(of: .settings))
        #expect(connection.start(exchange))
        fixture.core.exchanges.turn()
        setup.server.renegotiate()
        setup.pipe.owner?.pipeIsReady()
        #expect(ending.failure?.kind == .badServerResponse && setup.pipe.isClosed, "\(client)")
        #expect(
          ending.failure?.message.contains("RFC 9113 §9.2.1") == true, "\(ending.failure?.message ?? "")")
      }
    }
  }
}
