import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Streams of bytes through proxies over TLS", .timeLimit(.minutes(5)))
struct SecurelyProxiedByteStreamTests {
  private func session(port: Int, timeout: TimeInterval = 60) -> Session {
    var proxy = ProxyServer(.https, host: "localhost", port: port, username: "ann", password: "secret")
    proxy.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    return .forStreams({ $0.proxy = .server(proxy) }, timeout: timeout)
  }

  /// Starts a proxy that answers CONNECT and then acts as the server.
  private func proxy(
    _ options: TLSOptions = TLSOptions(), behind: @escaping @Sendable (StreamTestConnection) throws -> Void
  ) throws -> StreamTestServer {
    try StreamTestServer(.tls(.localhost, options)) { connection in
      while try !connection.line().isEmpty {}
      try connection.write("HTTP/1.1 200 OK\r\n\r\n")
      try behind(connection)
    }
  }

  @Test("Tunnel through a proxy over TLS", arguments: [false, true], [TLSOptions.Version.tls1_2, .tls1_3])
  func tunnel(isSecure: Bool, version: TLSOptions.Version) async throws {
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { connection in
      // The server sends first, right after the response of the proxy.
      try connection.write("hello\n")
      try connection.echo()
    }
    let seen = Recorder<String>()
    let proxy = try ProxiedByteStreamTests.proxy(
      .tls(.localhost, TLSOptions(maximumVersion: version)), to: server.port, seen: seen)
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777, secure: isSecure)
    #expect(try await stream.read(atLeast: 6, atMost: 6).data == Data("hello\n".utf8))
    let piece = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    for _ in 0..<10 {
      try await stream.write(piece)
      #expect(try await stream.read(atLeast: piece.count, atMost: piece.count).data == piece)
    }
    #expect(seen.values.first == "CONNECT localhost:7777 HTTP/1.1")
    #expect(seen.values.contains { $0.hasPrefix("Proxy-Authorization: Basic ") })
    stream.closeWrite()
    let (data, isAtEnd) = try await stream.read()
    #expect(data.isEmpty && isAtEnd)
    #expect(await stream.ended() == nil)
    // The same easy handle sends requests afterwards.
    let http = try HTTPTestServer()
    let direct = session.request(http.url("/get"))
    direct.transportOptions { $0.proxy = .none }
    #expect(await direct.serializingData().response.response?.statusCode == 200)
  }

  @Test("TLS starts in the middle of a tunnel") func startTLS() async throws {
    let server = try StreamTestServer { connection in
      guard try connection.line() == "STARTTLS" else { return }
      try connection.startTLS(.localhost)
      try connection.echo()
    }
    let proxy = try ProxiedByteStreamTests.proxy(.tls(.localhost), to: server.port, seen: Recorder<String>())
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777)
    try await stream.write(Data("STARTTLS\r\n".utf8))
    try await stream.startTLS()
    try await stream.write(Data("secret".utf8))
    #expect(try await stream.read(atLeast: 6).data == Data("secret".utf8))
  }

  /// Checks that a full buffer in one direction does not block the other direction.
  @Test("Large transfers in one direction do not block", arguments: [true, false]) func oneDirection(
    isSecure: Bool
  ) async throws {
    let count = 4_000_000
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { connection in
      var left = count
      while left > 0 {
        let read = try connection.read().count
        if read == 0 { return }
        left -= read
      }
      try connection.write([UInt8](repeating: 7, count: count))
    }
    let proxy = try ProxiedByteStreamTests.proxy(.tls(.localhost), to: server.port, seen: Recorder<String>())
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777, secure: isSecure)
    try await stream.write(Data(repeating: 1, count: count))
    let data = try await stream.read(atLeast: count, atMost: count).data
    #expect(data.count == count && data.allSatisfy { $0 == 7 })
  }

  /// Sends requests through the proxy while a stream through it is open.
  @Test("Concurrent requests do not disturb a stream") func concurrentRequests() async throws {
    let proxy = try proxy { connection in
      try connection.write("early")
      try connection.echo()
    }
    let http = try HTTPTestServer()
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: http.port)
    stream.resume()
    #expect(await eventually { stream.state == .open })
    func get(_ path: String) async -> AFError? {
      await session.request(http.url(path)).transportOptions { $0.proxy = .none }.serializingData().response
        .error
    }
    for _ in 0..<2 {
      async let slow = get("/delay/0.1")
      #expect(await get("/get") == nil)
      #expect(await slow == nil)
    }
    try await stream.write(Data(" late".utf8))
    #expect(try await stream.read(atLeast: 10).data == Data("early late".utf8))
    #expect(proxy.connectionCount == 1)
  }

  @Test("A write that times out ends the stream") func writeTimeout() async throws {
    let gate = Gate()
    let proxy = try proxy { try $0.pass(gate) }
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777)
    #expect(await stream.flooded().contains { $0?.transferCode == .timedOut })
    gate.open()
    let next = await failure { try await stream.write(Data(repeating: 2, count: 10_000)) }
    #expect(next?.transferCode == .networkConnectionLost)
  }

  @Test("Cancelling closes the connection") func cancel() async throws {
    let proxy = try proxy { connection in
      try connection.write("x")
      _ = try connection.readToEnd()
    }
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777)
    _ = try await stream.read()
    stream.cancel()
    guard case .explicitlyCancelled? = await stream.ended() else {
      Issue.record("it was not cancelled")
      return
    }
    while proxy.openConnectionCount > 0 { await Task.yield() }
  }

  @Test("The end of the session ends its streams") func endOfSession() async throws {
    let proxy = try proxy { try $0.echo() }
    var session: Session? = session(port: proxy.port)
    let stream = try #require(session).byteStream(host: "localhost", port: 7777)
    try await stream.write(Data("x".utf8))
    async let error = failure { try await stream.read(atLeast: 2) }
    session = nil
    guard case .sessionDeinitialized? = await error else {
      Issue.record("it was not ended")
      return
    }
    while proxy.openConnectionCount > 0 { await Task.yield() }
  }

  @Test("A proxy that refuses fails the stream") func refusal() async throws {
    let seen = Recorder<String>()
    let proxy = try ProxiedByteStreamTests.proxy(
      .tls(.localhost), to: 1, seen: seen, status: "403 Forbidden")
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777)
    #expect(await failure { try await stream.read() }?.transferCode == .cannotConnectToHost)
    let asking = try ProxiedByteStreamTests.proxy(.tls(.localhost), to: 1, seen: seen, status: "407 Who")
    let otherSession = self.session(port: asking.port)
    let other = otherSession.byteStream(host: "localhost", port: 7777)
    #expect(await failure { try await other.read() }?.transferCode == .userAuthenticationRequired)
  }

  @Test("An untrusted proxy receives no bytes") func untrustedProxy() async throws {
    let stranger = try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"]))
    let proxy = try StreamTestServer(.tls(stranger))
    let session = self.session(port: proxy.port)
    let stream = session.byteStream(host: "localhost", port: 7777)
    let error = await failure { try await stream.write(Data("secret".utf8)) }
    #expect(error?.transferCode == .serverCertificateHasUnknownRoot)
    #expect(error?.localizedDescription.contains("the proxy localhost") == true)
    #expect(proxy.receivedByteCount == 0)
  }
}
