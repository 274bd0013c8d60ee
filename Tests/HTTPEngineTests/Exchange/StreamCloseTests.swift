import FoundationEssentials
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("Streams that are closed", .timeLimit(.minutes(2))) struct StreamCloseTests {
  @Test("A write after the end of a secure connection fails") func writeAfterEnd() async throws {
    let server = try StreamTestServer(.tls(.localhost)) { _ in }
    let client = Client()
    let (stream, probe) = client.stream("localhost", port: server.port, isSecure: true)
    let end = await withCheckedContinuation { continuation in
      stream.read(least: 1, most: 1, timeout: nil) { continuation.resume(returning: $0) }
    }
    #expect(try end.get().isAtEnd)
    #expect(await ProcessFacts.eventually { server.openConnectionCount == 0 })
    let failure = try await Self.failureOfWrites(stream, of: client)
    #expect(failure?.kind == .connectionLost, "\(failure?.message ?? "no failure")")
    stream.close()
    _ = await probe.end()
  }

  /// Writes until a write fails, and returns its failure.
  private static func failureOfWrites(
    _ stream: any ByteStream, of client: Client
  ) async throws -> TransportFailure? {
    var failure: TransportFailure?
    for _ in 0..<100 where failure == nil {
      failure = await withCheckedContinuation { continuation in
        stream.write(Data("late".utf8), timeout: WaitLimit.duration) { result in
          if case .failure(let failure) = result { continuation.resume(returning: failure) }
          if case .success = result { continuation.resume(returning: nil) }
        }
      }
      // The system may learn of the closed connection by the bytes that it has accepted.
      try await client.roundTrip()
    }
    return failure
  }

  private static func read(_ count: Int, of stream: any ByteStream) async -> Result<Int, TransportFailure> {
    await withCheckedContinuation { continuation in
      stream.read(least: count, most: count, timeout: WaitLimit.duration) { result in
        continuation.resume(returning: result.map { $0.data.count })
      }
    }
  }

  /// Opens a stream to a server that sends 40,000 bytes and resets the connection. The first byte is read.
  private static func resetStream(
    _ client: Client, isSecure: Bool
  ) async throws -> (any ByteStream, StreamProbe, StreamTestServer) {
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { connection in
      try connection.write([UInt8](repeating: 7, count: 40_000))
      connection.reset()
    }
    let (stream, probe) = client.stream("localhost", port: server.port, isSecure: isSecure)
    #expect(try await read(1, of: stream).get() == 1)
    #expect(await ProcessFacts.eventually { server.openConnectionCount == 0 })
    return (stream, probe, server)
  }

  @Test("After a failed write the bytes of the server are read to the end", arguments: [false, true])
  func bytesAfterFailedWrite(isSecure: Bool) async throws {
    let client = Client()
    let (stream, probe, server) = try await Self.resetStream(client, isSecure: isSecure)
    let failure = try await Self.failureOfWrites(stream, of: client)
    #expect(failure?.kind == .connectionLost, "\(failure?.message ?? "no failure")")
    let rest = try await withCheckedContinuation { continuation in
      stream.read(least: 1, most: 65_536, timeout: WaitLimit.duration) { continuation.resume(returning: $0) }
    }.get()
    #expect(rest.data.count == 39_999 && !rest.isAtEnd, "a reset is not the end")
    guard case .failure(let end) = await probe.end() else { return _ = Issue.record("there is no failure") }
    #expect(end.message == failure?.message)
    withExtendedLifetime(server) {}
  }

  @Test("If the end of a secure stream cannot be announced, the bytes of the server are read nevertheless")
  func bytesAfterClosing() async throws {
    let (stream, probe, server) = try await Self.resetStream(Client(), isSecure: true)
    stream.closeWriting()
    #expect(try await Self.read(39_999, of: stream).get() == 39_999)
    stream.close()
    _ = await probe.end()
    withExtendedLifetime(server) {}
  }

  @Test("A failed write ends a stream that is not read", arguments: [false, true])
  func unreadStream(isSecure: Bool) async throws {
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { _ in }
    let client = Client()
    let (stream, probe) = client.stream("localhost", port: server.port, isSecure: isSecure)
    await withCheckedContinuation { continuation in
      stream.write(Data("first".utf8), timeout: WaitLimit.duration) { _ in continuation.resume() }
    }
    #expect(
      await ProcessFacts.eventually { server.connectionCount == 1 && server.openConnectionCount == 0 })
    let failure = try await Self.failureOfWrites(stream, of: client)
    guard case .failure(let end) = await probe.end() else { return _ = Issue.record("there is no failure") }
    #expect(end.kind == .connectionLost && end.message == failure?.message)
    withExtendedLifetime(server) {}
  }

  @Test("An alert that is read after a failed write is the reason why a stream ends") func alertAfterWrite()
    async throws
  {
    // With earlier versions, the handshake would fail.
    let options = TLSOptions(
      minimumVersion: .tls1_3, clientAuthority: TestIdentity.localhostAuthority.caPEM)
    let server = try StreamTestServer(.tls(.localhost, options))
    let client = Client()
    let (stream, probe) = client.stream("localhost", port: server.port, isSecure: true)
    await withCheckedContinuation { continuation in
      stream.write(Data("first".utf8), timeout: WaitLimit.duration) { _ in continuation.resume() }
    }
    #expect(
      await ProcessFacts.eventually { server.connectionCount == 1 && server.openConnectionCount == 0 })
    _ = try await Self.failureOfWrites(stream, of: client)
    guard case .failure(let end) = await probe.end() else { return _ = Issue.record("there is no failure") }
    #expect(end.kind == .clientCertificateRequired, "\(end.message)")
    withExtendedLifetime(server) {}
  }

  /// Closes a stream on which bytes have arrived that were not read. The system would reset such a connection, and the
  /// server might lose what was written before.
  @Test("A server reads to the end of a stream although the client has not read the last bytes")
  func unreadBytes()
    async throws
  {
    let ends = Received()
    let hasEnded = Moment()
    let server = try StreamTestServer { connection in
      defer { hasEnded.come() }
      try connection.write([UInt8](repeating: 7, count: 10_000))
      ends.add(try connection.readExactly(4))
      // A connection that is reset throws here.
      ends.add(try connection.readToEnd())
    }
    let (stream, probe) = Client().stream("127.0.0.1", port: server.port)
    let first = await withCheckedContinuation { continuation in
      stream.read(least: 1, most: 1, timeout: nil) { continuation.resume(returning: $0) }
    }
    #expect(try first.get().data == Data([7]))
    stream.write(Data("last".utf8), timeout: nil) { _ in }
    stream.close()
    await #expect(throws: Never.self) { try await probe.end().get() }
    await hasEnded.wait()
    #expect(ends.texts == ["last", ""])
  }

  /// The owner of a stream that does not decide about the server until it is cancelled.
  private final class UndecidedWatcher: ByteStreamWatcher {
    let wasAsked = Moment()
    let wasCancelled = Moment()

    func evaluate(_ chain: PresentedChain) async -> TransportFailure? {
      wasAsked.come()
      let isCancelled = await FirstValue<Bool>().value(
        until: .now + WaitLimit.duration, otherwise: false, ifCancelled: true)
      if isCancelled { wasCancelled.come() }
      return nil
    }

    func identity() async -> Result<ClientIdentity?, TransportFailure> { .success(nil) }
    func streamOpened() {}
    func streamEnded(_ failure: TransportFailure?) {}
  }

  @Test("The end of a stream cancels the question about its server") func endDuringQuestion() async throws {
    let server = try StreamTestServer(.tls(.localhost))
    let client = Client()
    let profile = ConnectionProfile(options: client.profile.options, evaluator: FixedEvaluator(.ask))
    let request = try client.request("https://localhost:\(server.port)/", profile: profile)
    let watcher = UndecidedWatcher()
    let stream = client.transport.stream(request, isSecure: true, watcher: watcher)
    stream.read(least: 1, most: 1, timeout: nil) { _ in }
    await watcher.wasAsked.wait()
    stream.cancel()
    await watcher.wasCancelled.wait()
    withExtendedLifetime(server) {}
  }

  @Test("Closing a suspended stream begins the timeouts of its writes again") func suspendedWrite()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let silent = try UnresponsivePort()
      let client = Client()
      let transport = try #require(client.transport as? HTTPTransport)
      let request = try client.request("http://127.0.0.1:\(silent.port)/")
      let link = StreamLink(request, isSecure: false, transport: transport, watcher: StreamProbe())
      link.write(1, Data([1]), timeout: .milliseconds(1), { _ in }, fixture.core)
      let expiry = link.expiry
      link.suspend()
      #expect(link.expiry > expiry, "a suspended stream does not time out")
      link.close()
      #expect(link.expiry > expiry)
      link.cancel()
    }
  }
}
