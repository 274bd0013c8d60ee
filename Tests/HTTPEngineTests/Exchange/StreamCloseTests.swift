import FoundationEssentials
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
    // The system accepts the first bytes, and learns of the closed connection by them.
    var failure: TransportFailure?
    for _ in 0..<100 where failure == nil {
      failure = await withCheckedContinuation { continuation in
        stream.write(Data("late".utf8), timeout: WaitLimit.duration) { result in
          if case .failure(let failure) = result { continuation.resume(returning: failure) }
          if case .success = result { continuation.resume(returning: nil) }
        }
      }
      try await client.roundTrip()
    }
    #expect(failure?.kind == .connectionLost, "\(failure?.message ?? "no failure")")
    stream.close()
    _ = await probe.end()
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
