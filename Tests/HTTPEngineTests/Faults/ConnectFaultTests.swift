import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ConnectFaultTests {
  @Test("A refused port is a clear failure") func aRefusedPort() async throws {
    let port = try HTTPTestServer.refusedPort()
    let client = Client()
    for scheme in ["http", "https"] {
      let failure = try await client.failure(of: "\(scheme)://127.0.0.1:\(port)/")
      #expect(failure.kind == .cannotConnectToHost)
      #expect(failure.helps(host: "127.0.0.1"))
      #expect(failure.message.contains("\(port)"))
      #expect(failure.metrics?.values.isReusedConnection == false)
    }
  }

  @Test("An unknown name is a clear failure") func unknownName() async throws {
    let failure = try await Client().failure(of: "http://no-such-host.invalid/")
    #expect(failure.kind == .cannotFindHost)
    #expect(failure.helps(host: "no-such-host.invalid"))
  }

  static let handshakes: [(ConnectionEffect, [TransportFailure.FailureKind])] = [
    (.closeOnAccept, [.secureConnectionFailed, .connectionLost]),
    // The reset may come before the client knows that it is connected.
    (.resetOnAccept, [.secureConnectionFailed, .connectionLost, .cannotConnectToHost]),
    (.closeInHandshake, [.secureConnectionFailed, .connectionLost]), (.plainText, [.secureConnectionFailed]),
    (.alert(40), [.secureConnectionFailed]), (.alert(70), [.secureConnectionFailed]),
  ]

  @Test("A failed handshake is a clear failure", arguments: handshakes)
  func failedHandshake(effect: ConnectionEffect, kinds: [TransportFailure.FailureKind]) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: effect)
    let client = Client()
    let failure = try await client.failure(of: server.url("/get"))
    #expect(kinds.contains(failure.kind), "\(failure.kind): \(failure.message)")
    #expect(failure.helps(host: "localhost"), "\(failure.message)")
    #expect(try await client.get(server.url("/get")).status == 200)
  }

  @Test(
    "A plain connection that ends at once is a clear failure",
    arguments: [ConnectionEffect.closeOnAccept, .resetOnAccept, .closeInHandshake])
  func closedConnection(effect: ConnectionEffect) async throws {
    let server = try HTTPTestServer()
    server.enqueue(connections: effect)
    let client = Client()
    let failure = try await client.failure(of: server.url("/get"))
    let isLateReset = effect == .resetOnAccept && failure.kind == .cannotConnectToHost
    #expect(failure.kind == .connectionLost || isLateReset, "\(failure.message)")
    #expect(failure.helps(host: "127.0.0.1"))
    #expect(try await client.get(server.url("/get")).status == 200)
  }

  @Test("HTTP on a TLS port, and TLS on an HTTP port, are clear failures") func schemeMismatch() async throws
  {
    let secure = try HTTPTestServer(.tls(.localhost))
    let plain = try HTTPTestServer()
    let client = Client()
    let first = try await client.failure(of: "http://localhost:\(secure.port)/get")
    #expect([.connectionLost, .badServerResponse].contains(first.kind), "\(first.message)")
    #expect(first.helps(host: "localhost"))
    // The server waits for the end of a line.
    let second = try await client.failure(
      of: "https://localhost:\(plain.port)/get", idleTimeout: .milliseconds(300))
    #expect([.secureConnectionFailed, .timedOut].contains(second.kind), "\(second.message)")
    #expect(second.helps(host: "localhost"))
  }

  @Test(
    "A URL with another scheme is refused",
    arguments: [
      "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/", "http://[::1/", "http://a b/",
    ])
  func otherScheme(url: String) async throws {
    let client = Client()
    let request = WireRequest(
      url: url, origin: Origin(scheme: "http", host: "127.0.0.1", port: 1), profile: client.profile)
    let failure = try await client.failure(of: request)
    #expect([.badURL, .unsupportedURL].contains(failure.kind), "\(failure.kind): \(failure.message)")
    #expect(failure.helps())
  }
}
