import FoundationEssentials
import Glibc
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("Violations of TLS", .timeLimit(.minutes(2))) struct TLSViolationTests {
  /// A handshake message that may not come first: `server_hello_done` (RFC 5246 §7.4.5).
  private static let unexpected: [UInt8] = [22, 3, 3, 0, 4, 14, 0, 0, 0]

  /// Begins a handshake, changes its connection, and expects the handshake to fail.
  private func expectFailure(
    _ kind: TransportFailure.FailureKind, after change: @escaping @Sendable (MemoryPipe) -> Void
  ) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let origin = try #require(Origin(url: "https://localhost/"))
      let peer = TLSPeer(origin, Client.profile())
      let tls = try TLSConnection.over(pipe, with: peer, fixture.core.contexts).get()
      guard case .waitsToRead = tls.handshake() else { throw CancellationError() }
      change(pipe)
      guard case .failed(let failure) = tls.handshake() else { throw CancellationError() }
      #expect(failure.kind == kind, "\(failure.message)")
    }
  }

  @Test("The violation is the reason of a failed handshake, even if the alert cannot be written")
  func unwrittenAlert() async throws {
    try await expectFailure(.secureConnectionFailed) { pipe in
      pipe.incoming = Self.unexpected
      pipe.room = 0
      pipe.afterRoom = .failed(.lost("localhost", EPIPE))
    }
  }

  @Test("A handshake ends with the failure of the connection")
  func brokenConnection() async throws {
    try await expectFailure(.connectionLost) { $0.afterIncoming = .failed(.lost("localhost", ECONNRESET)) }
  }

  @Test("A violation behind a proxy over TLS is the reason of the failure")
  func violationBehindProxy() async throws {
    let proxy = try StreamTestServer { connection in
      try connection.startTLS(.localhost)
      while try !connection.line().isEmpty {}
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      _ = try connection.read()
      try connection.write(Self.unexpected)
      _ = try connection.readToEnd()
    }
    var settings = ProxyServer(.https, host: "localhost", port: proxy.port)
    settings.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let client = Client { $0.proxy = .server(settings) }
    let failure = try await client.failure(of: "https://nowhere.test/")
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.message.contains("unexpected message"), "\(failure.message)")
  }
}
