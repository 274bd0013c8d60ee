import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Streams of bytes over TLS", .timeLimit(.minutes(5))) struct SecureByteStreamTests {
  private struct Refused: Error {}

  /// An evaluator of a user.
  private final class Slow: ServerTrustEvaluating {
    let calls = Recorder<String>()
    let refuses: Bool

    init(refuses: Bool = false) { self.refuses = refuses }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      calls.add("\(host) \(threadName())")
      if refuses { throw Refused() }
    }
  }

  private func session(_ evaluator: any ServerTrustEvaluating) -> Session {
    .forStreams(manager: ServerTrustManager(evaluators: ["localhost": evaluator]))
  }

  private static func startsTLS(_ connection: StreamTestConnection) throws {
    try connection.write("220 ready\r\n")
    guard try connection.line() == "STARTTLS" else { return }
    try connection.write("220 go on\r\n")
    try connection.startTLS(.localhost)
    try connection.echo()
  }

  @Test("TLS from the start", arguments: [TransportOptions.TLSVersion.tls12, .tls13])
  func tlsFromStart(version: TransportOptions.TLSVersion) async throws {
    let server = try StreamTestServer(.tls(.localhost))
    let session = Session.forStreams {
      $0.minimumTLSVersion = version
      $0.maximumTLSVersion = version
    }
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    try await stream.write(Data("secret".utf8))
    #expect(try await stream.read(atLeast: 6).data == Data("secret".utf8))
    stream.closeWrite()
    let (data, isAtEnd) = try await stream.read()
    #expect(data.isEmpty && isAtEnd)
    #expect(await stream.ended() == nil)
  }

  @Test(
    "Version and cipher of a stream come from the options",
    arguments: [
      (.tls12, "ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2"),
      (.tls12, "ECDHE-ECDSA-CHACHA20-POLY1305", "TLSv1.2"),
      (.tls13, "TLS_AES_128_GCM_SHA256", "TLSv1.3"), (.tls13, "TLS_CHACHA20_POLY1305_SHA256", "TLSv1.3"),
    ] as [(TransportOptions.TLSVersion, String, String)])
  func parametersOfTLS(newest: TransportOptions.TLSVersion, cipher: String, version: String) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let session = Session.forStreams {
      $0.maximumTLSVersion = newest
      if newest == .tls12 { $0.tls12Ciphers = cipher } else { $0.tls13CipherSuites = cipher }
    }
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    try await stream.write(Data("GET /get HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
    let tls = try #require(await server.takeRequest().tls)
    #expect(tls.version == version && tls.cipher == cipher)
    #expect(!tls.isResumed)
    stream.cancel()
  }

  @Test("A stream to a server that is older than the minimum, or newer than the maximum, is refused")
  func refusedVersions() async throws {
    let old = try StreamTestServer(.tls(.localhost, TLSOptions(maximumVersion: .tls1_2)))
    let new = try StreamTestServer(.tls(.localhost, TLSOptions(minimumVersion: .tls1_3)))
    let strict = Session.forStreams { $0.minimumTLSVersion = .tls13 }
    let modest = Session.forStreams { $0.maximumTLSVersion = .tls12 }
    for (session, port) in [(strict, old.port), (modest, new.port)] {
      let stream = session.byteStream(host: "localhost", port: port, secure: true)
      let error = await failure { try await stream.write(Data("secret".utf8)) }
      #expect(error?.transferCode == .secureConnectionFailed)
    }
  }

  @Test("TLS starts in the middle of a stream") func startTLS() async throws {
    let server = try StreamTestServer(script: Self.startsTLS)
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port)
    #expect(try await stream.read().data == Data("220 ready\r\n".utf8))
    try await stream.write(Data("STARTTLS\r\n".utf8))
    #expect(try await stream.read(atLeast: 11).data == Data("220 go on\r\n".utf8))
    try await stream.startTLS()
    try await stream.write(Data("secret".utf8))
    #expect(try await stream.read(atLeast: 6).data == Data("secret".utf8))
    #expect(await failure { try await stream.startTLS() }?.transferCode == .secureConnectionFailed)
    #expect(stream.state == .open)
  }

  @Test("Operations that are queued before the handshake run in order") func queuedOperations() async throws {
    let server = try StreamTestServer(script: Self.startsTLS)
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port)
    let reported = Recorder<String>()
    let queue = DispatchQueue(label: "handlers")
    await withCheckedContinuation { done in
      stream.read(atLeast: 11, atMost: 11, queue: queue) { _ in reported.add("greeting") }
      stream.write(Data("STARTTLS\r\n".utf8), queue: queue) { _ in reported.add("request") }
      stream.read(atLeast: 11, atMost: 11, queue: queue) { _ in reported.add("answer") }
      stream.startTLS(queue: queue) { reported.add((try? $0.get()) == nil ? "failed" : "secure") }
      stream.write(Data("secret".utf8), queue: queue) { _ in reported.add("sent") }
      stream.read(atLeast: 6, queue: queue) { result in
        reported.add((try? result.get()).map { String(decoding: $0.data, as: UTF8.self) } ?? "failed")
        done.resume()
      }
    }
    #expect(Set(reported.values.prefix(3)) == ["greeting", "request", "answer"])
    #expect(reported.values.suffix(3) == ["secure", "sent", "secret"])
  }

  @Test("An untrusted server receives no bytes") func untrustedServer() async throws {
    let stranger = try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"]))
    let server = try StreamTestServer(.tls(stranger))
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(
      await failure { try await stream.write(Data("secret".utf8)) }?.transferCode
        == .serverCertificateHasUnknownRoot)
    #expect(await stream.ended()?.transferCode == .serverCertificateHasUnknownRoot)
    #expect(server.receivedByteCount == 0)
  }

  @Test("The host name is verified") func hostName() async throws {
    let other = try TestIdentity(
      .init(commonName: "other", dnsNames: ["other.localhost"], issuer: .localhostAuthority))
    let server = try StreamTestServer(.tls(other))
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(
      await failure { try await stream.write(Data("secret".utf8)) }?.transferCode
        == .serverCertificateUntrusted)
    #expect(server.receivedByteCount == 0)
  }

  @Test("Evaluators decide about trust") func evaluators() async throws {
    let server = try StreamTestServer(.tls(.localhost))
    let authority = try #require(
      Certificate.all(in: Data(TestIdentity.localhostAuthority.certificatePEM.utf8)).first)
    let wrong = try TestIdentity(.init(commonName: "wrong", isCA: true))
    let stranger = try #require(Certificate.all(in: Data(wrong.certificatePEM.utf8)).first)
    let pinned = session(PinnedCertificatesTrustEvaluator(certificates: [authority]))
    let good = pinned.byteStream(host: "localhost", port: server.port, secure: true)
    try await good.write(Data("x".utf8))
    #expect(try await good.read().data == Data("x".utf8))
    let count = server.receivedByteCount
    let refusing = session(PinnedCertificatesTrustEvaluator(certificates: [stranger]))
    let bad = refusing.byteStream(host: "localhost", port: server.port, secure: true)
    guard case .serverTrustEvaluationFailed? = await failure(of: { try await bad.write(Data("x".utf8)) })
    else {
      Issue.record("\(String(describing: bad.error))")
      return
    }
    #expect(server.receivedByteCount == count)
  }

  /// Checks the handshake in the middle of a stream too: it waits for the evaluator, because the connection cannot be
  /// opened again.
  @Test("An evaluator of the user runs once, on another thread", arguments: [true, false]) func userEvaluator(
    isFromStart: Bool
  ) async throws {
    let slow = Slow()
    let session = session(slow)
    let server =
      try isFromStart ? StreamTestServer(.tls(.localhost)) : StreamTestServer(script: Self.startsTLS)
    for _ in 0..<2 {
      let stream = session.byteStream(host: "localhost", port: server.port, secure: isFromStart)
      if !isFromStart {
        _ = try await stream.read(atLeast: 11)
        try await stream.write(Data("STARTTLS\r\n".utf8))
        _ = try await stream.read(atLeast: 11)
        try await stream.startTLS()
      }
      try await stream.write(Data("secret".utf8))
      #expect(try await stream.read(atLeast: 6).data == Data("secret".utf8))
    }
    #expect(slow.calls.values.count == 1)
    #expect(slow.calls.values.first?.hasPrefix("localhost ") == true)
    #expect(slow.calls.values.first?.contains("http-engine") == false)
    #expect(server.connectionCount == 2)
  }

  @Test("An error of an evaluator is the error of the stream") func evaluatorError() async throws {
    let server = try StreamTestServer(script: Self.startsTLS)
    let session = session(Slow(refuses: true))
    let stream = session.byteStream(host: "localhost", port: server.port)
    _ = try await stream.read(atLeast: 11)
    try await stream.write(Data("STARTTLS\r\n".utf8))
    _ = try await stream.read(atLeast: 11)
    let error = await failure { try await stream.startTLS() }
    guard case .serverTrustEvaluationFailed(.customEvaluationFailed(let cause))? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause is Refused)
  }

  @Test("The client sends its certificate") func clientIdentity() async throws {
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let client = try TestIdentity(.init(commonName: "ada", issuer: authority))
    let server = try StreamTestServer(
      .tls(.localhost, TLSOptions(clientAuthority: authority.certificatePEM)))
    let identity = try ClientIdentity(
      pem: Data(client.certificatePEM.utf8), privateKey: Data(client.privateKeyPEM.utf8))
    let session = Session.forStreams { $0.clientIdentity = identity }
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    try await stream.write(Data("x".utf8))
    #expect(try await stream.read().data == Data("x".utf8))
    let nobody = Session.forStreams { $0.maximumTLSVersion = .tls12 }
    let refused = nobody.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await failure { try await refused.write(Data("x".utf8)) } != nil)
  }

  private static func optionsForClients(_ version: TLSOptions.Version, _ authority: TestIdentity)
    -> TLSOptions
  {
    TLSOptions(
      maximumVersion: version, clientAuthority: authority.certificatePEM, requiresClientCertificate: true)
  }

  /// Checks that the handshake waits for the delegate, because the connection cannot be opened again.
  @Test("A delegate chooses the client certificate", arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func delegateIdentity(version: TLSOptions.Version) async throws {
    // A certificate that no client would choose without its issuer.
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let middle = try TestIdentity(.init(commonName: "Middle", isCA: true, issuer: authority))
    let client = try TestIdentity(.init(commonName: "ada", issuer: middle))
    let options = Self.optionsForClients(version, authority)
    let server = try StreamTestServer { connection in
      guard try connection.line() == "STARTTLS" else { return }
      try connection.startTLS(.localhost, options)
      try connection.echo()
    }
    let delegate = IdentityChooser(
      try ClientIdentity(
        pem: Data((client.certificatePEM + middle.certificatePEM).utf8),
        privateKey: Data(client.privateKeyPEM.utf8)))
    let session = Session.forStreams(delegate: delegate)
    for _ in 0..<2 {
      let stream = session.byteStream(host: "localhost", port: server.port)
      try await stream.write(Data("STARTTLS\r\n".utf8))
      try await stream.startTLS()
      try await stream.write(Data("x".utf8))
      #expect(try await stream.read().data == Data("x".utf8))
    }
    #expect(delegate.calls.values == ["localhost stream", "localhost stream"])
    #expect(server.connectionCount == 2)
  }

  /// Checks that no write follows a TLS record that was only partly sent. A record that was created cannot be
  /// discarded.
  @Test("A write that times out ends the stream") func writeTimeout() async throws {
    let gate = Gate()
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      try connection.pass(gate)
      _ = try connection.readToEnd()
    }
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await stream.flooded().contains { $0?.transferCode == .timedOut })
    gate.open()
    let next = await failure { try await stream.write(Data(repeating: 2, count: 10_000)) }
    #expect(next?.transferCode == .networkConnectionLost)
  }

  @Test("A delegate can decline to send a certificate or cancel") func delegateWithoutIdentity() async throws
  {
    let authority = try TestIdentity(.init(commonName: "Clients", isCA: true))
    let server = try StreamTestServer(.tls(.localhost, Self.optionsForClients(.tls1_2, authority)))
    let nobody = IdentityChooser(nil)
    let session = Session.forStreams(delegate: nobody)
    for _ in 0..<2 {
      let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
      #expect(await failure { try await stream.write(Data("x".utf8)) } != nil)
    }
    // The delegate is asked once, as for requests.
    #expect(nobody.calls.count == 1)
    let cancelling = IdentityChooser(nil, cancels: true)
    let other = Session.forStreams(delegate: cancelling)
    let ended = other.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await failure { try await ended.write(Data("x".utf8)) }?.isExplicitlyCancelledError == true)
    #expect(cancelling.calls.count == 1)
  }

  @Test("Plain bytes before the handshake are not mistaken for secure ones") func plainBytesBeforeTLS()
    async throws
  {
    let server = try StreamTestServer { connection in
      try connection.write("220 go on\r\nEVIL")
      try connection.startTLS(.localhost)
      try connection.echo()
    }
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port)
    #expect(await failure { try await stream.read(atLeast: 100, timeout: .milliseconds(200)) } != nil)
    #expect(await failure { try await stream.startTLS() }?.transferCode == .secureConnectionFailed)
    #expect(await stream.ended()?.transferCode == .secureConnectionFailed)
  }

  @Test("A connection that closes without close_notify is an error") func truncation() async throws {
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      try connection.write("half")
      connection.cutOff()
      try connection.stall()
    }
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(try await stream.read(atLeast: 4).data == Data("half".utf8))
    #expect(await failure { try await stream.read() }?.transferCode == .networkConnectionLost)
  }

  @Test("A server without TLS fails the handshake") func serverWithoutTLS() async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.read()
      try connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
    }
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port, secure: true)
    #expect(await failure { try await stream.read() }?.transferCode == .secureConnectionFailed)
    let silent = try StreamTestServer { try $0.stall() }
    let slow = Session.forStreams(timeout: 0.3)
    let other = slow.byteStream(host: "localhost", port: silent.port, secure: true)
    #expect(await failure { try await other.read() }?.transferCode == .timedOut)
  }

  @Test("Ten megabytes are echoed", arguments: [true, false]) func largeTransfer(isSecure: Bool) async throws
  {
    let server = try isSecure ? StreamTestServer(.tls(.localhost)) : StreamTestServer()
    let session = Session.forStreams()
    let stream = session.byteStream(host: "localhost", port: server.port, secure: isSecure)
    let size = 10 << 20
    let piece = Data((0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    async let written: Void = {
      for _ in 0..<size / piece.count { try await stream.write(piece) }
      stream.closeWrite()
    }()
    var count = 0
    var longest = 0
    while true {
      let (data, isAtEnd) = try await stream.read()
      for (offset, byte) in data.enumerated() where byte != piece[(count + offset) % piece.count] {
        Issue.record("a wrong byte at \(count + offset)")
        return
      }
      count += data.count
      longest = max(longest, data.count)
      if isAtEnd { break }
    }
    try await written
    #expect(count == size && longest <= 65_536)
  }
}
