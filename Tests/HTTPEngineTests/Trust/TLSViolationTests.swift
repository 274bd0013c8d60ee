import COpenSSL
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

  /// Sends a request to a server that requires a client certificate. The server answers the handshake and closes the
  /// connection, so that the request cannot be written. Returns the failure of the next read.
  private static func failureAfterWrite(
    _ fixture: ConnectionFixture, _ change: (MemoryPipe) -> Void = { _ in }
  ) throws -> TransportFailure {
    let pipe = MemoryPipe()
    let server = try MemoryTLSServer(.localhost, on: pipe, version: TLS1_3_VERSION)
    let origin = try #require(Origin(url: "https://localhost/"))
    let peer = TLSPeer(origin, Client.profile())
    let tls = try TLSConnection.over(pipe, with: peer, fixture.core.contexts).get()
    guard case .moved = try server.handshakeForCertificate(with: tls, requiresCertificate: true) else {
      throw MemoryTLSServer.Failure()
    }
    pipe.room = 0
    pipe.afterRoom = .failed(.lost("localhost", EPIPE))
    let request = [UInt8](repeating: 7, count: 100)
    for _ in 0..<2 {
      guard case .failed(let lost) = request.withUnsafeBytes({ tls.write($0) }) else {
        throw MemoryTLSServer.Failure()
      }
      #expect(lost.message.contains("Broken pipe"), "\(lost.message)")
    }
    change(pipe)
    var room = [UInt8](repeating: 0, count: 1_000)
    guard case .failed(let failure) = room.withUnsafeMutableBytes({ tls.read(into: $0) }) else {
      throw MemoryTLSServer.Failure()
    }
    return failure
  }

  @Test("An alert that the server has sent is the reason of the failure, even if a write has failed before")
  func alertAfterFailedWrite() async throws {
    try await ConnectionFixture.run { fixture in
      let failure = try Self.failureAfterWrite(fixture)
      #expect(failure.kind == .clientCertificateRequired, "\(failure.message)")
    }
  }

  @Test(
    "A failed write is the reason of the failure if the server has sent nothing", arguments: [true, false])
  func failedWrite(isReset: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let failure = try Self.failureAfterWrite(fixture) { pipe in
        pipe.incoming = []
        pipe.afterIncoming = isReset ? .failed(.lost("localhost", ECONNRESET)) : .ended
      }
      #expect(failure.message.contains("Broken pipe"), "\(failure.message)")
    }
  }

  /// Starts a proxy over TLS whose targets send `greeting` together with its answer, and then violate TLS.
  private static func proxy(greeting: String = "") throws -> StreamTestServer {
    try StreamTestServer(.tls(.localhost)) { connection in
      while try !connection.line().isEmpty {}
      try connection.write("HTTP/1.1 200 OK\r\n\r\n" + greeting)
      _ = try connection.read()
      try connection.write(Self.unexpected)
      _ = try connection.readToEnd()
    }
  }

  private static func client(_ port: Int) -> Client {
    var settings = ProxyServer(.https, host: "localhost", port: port)
    settings.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    return Client { $0.proxy = .server(settings) }
  }

  @Test("A violation behind a proxy over TLS is the reason of the failure")
  func violationBehindProxy() async throws {
    let proxy = try Self.proxy()
    let client = Self.client(proxy.port)
    let failure = try await client.failure(of: "https://nowhere.test/")
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.message.contains("unexpected message"), "\(failure.message)")
  }

  @Test("A greeting that came with the answer of the proxy does not hide a later violation")
  func violationAfterGreeting() async throws {
    let proxy = try Self.proxy(greeting: "220 hi\r\n")
    let (stream, probe) = Self.client(proxy.port).stream("nowhere.test", port: 7)
    let greeting = await withCheckedContinuation { continuation in
      stream.read(least: 8, most: 8, timeout: nil) { continuation.resume(returning: $0) }
    }
    #expect(try greeting.get().data == Data("220 hi\r\n".utf8))
    stream.secure { _ in }
    guard case .failure(let failure) = await probe.end() else {
      return _ = Issue.record("the stream was secured")
    }
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.message.contains("unexpected message"), "\(failure.message)")
  }
}
