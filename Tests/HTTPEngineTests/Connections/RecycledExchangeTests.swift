import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Exchanges and pools that are used again, and what they remember.
@Suite("Exchanges that are used again", .timeLimit(.minutes(3)))
struct RecycledExchangeTests {
  private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  @Test("A request that needs HTTP/1.1 does not change the next one") func http11Required() async throws {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    let server = try StreamTestServer(.tls(.localhost, options)) { connection in
      guard connection.applicationProtocol == "h2" else {
        _ = try connection.readHead()
        return try connection.write(Self.ok)
      }
      let http2 = try HTTP2TestConnection(connection)
      let refused = try http2.request()
      try http2.reset(refused, .http11Required)
      while true { try http2.respond(200, on: http2.request(except: [refused])) }
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).head.version == .http1_1)
    // It has its own connection, which the server closes, so that only HTTP/2 is left.
    for _ in 0..<3 { #expect(try await client.get(url).head.version == .http2) }
    #expect(server.connectionCount == 2)
  }

  @Test("A refused expectation does not change the next request") func refusedExpectation() async throws {
    let expectations = Counter()
    let server = try StreamTestServer { connection in
      while true {
        let head = String(decoding: try connection.readHead(), as: UTF8.self).lowercased()
        let expects = head.contains("expect: 100-continue")
        if expects { expectations.enter() }
        if expects {
          return try connection.write("HTTP/1.1 417 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        }
        _ = try connection.readExactly(1)
        try connection.write(Self.ok)
      }
    }
    let client = Client()
    for count in 1...2 {
      let request = try client.request(
        "http://127.0.0.1:\(server.port)/", "POST",
        fields: [HTTPHeader(name: "Expect", value: "100-continue")], body: .bytes(Data([1])))
      #expect(try await client.send(request).status == 200)
      #expect(expectations.now == count)
    }
  }

  @Test("A request on a connection that was used before has no times of connecting") func reusedTimes()
    async throws
  {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    let first = try await client.get(server.url("/get")).metrics.values
    #expect(first.connectEnd >= 0 && first.secureEnd >= first.connectEnd)
    let second = try await client.get(server.url("/get")).metrics.values
    #expect(second.isReusedConnection)
    #expect([second.lookupEnd, second.connectEnd, second.secureEnd] == [-1, -1, -1])
  }

  @Test("Shutting down closes idle connections at once") func shutDown() async throws {
    let server = try HTTPTestServer()
    let client = Client(lingering: .seconds(60))
    #expect(try await client.get(server.url("/get")).status == 200)
    client.transport.shutDown()
    #expect(await ProcessFacts.eventually { server.openConnectionCount == 0 }, "the connection is open")
    withExtendedLifetime(client) {}
  }

  @Test("The limit of connecting holds after another request has timed out") func severalLimits() async throws
  {
    let silent = try UnresponsivePort()
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let client = Client { $0.connectTimeout = .milliseconds(400) }
    async let connecting = client.failure(of: "http://127.0.0.1:\(silent.port)/")
    let silence = try await client.failure(
      of: client.request(server.url("/"), idleTimeout: .milliseconds(50)))
    #expect(silence.kind == .timedOut && silence.phase == .idle)
    let failure = try await connecting
    #expect(failure.kind == .timedOut && failure.phase == .connect, "\(failure.message)")
    gate.open()
  }

  @Test("Waiting for a discarded body that does not arrive ends in time") func droppedBody() async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 302 Found\r\nContent-Length: 10\r\n\r\npart")
      connection.waitForEnd()
    }
    let client = Client()
    let request = try client.request("http://127.0.0.1:\(server.port)/")
    let response = try await client.send(request, watcher: Watcher(disposition: .discard))
    #expect(response.status == 302)
  }

  @Test("More than 64 idle connections stay open if one host may have more") func idleLimit() async throws {
    let (client, server) = try await Self.client(hosts: 80, connectionsPerHost: 100)
    let snapshot = await client.transport.snapshot()
    #expect(snapshot.hosts.reduce(0) { $0 + $1.idleConnections } == 80)
    withExtendedLifetime(server) {}
  }

  @Test("A connection is used again although many hosts were used since") func manyHosts() async throws {
    let (client, server) = try await Self.client(hosts: 300)
    let response = try await client.get("http://h255.test/")
    #expect(response.metrics.values.isReusedConnection)
    withExtendedLifetime(server) {}
  }

  /// Makes a client that has sent a request to each of many hosts.
  private static func client(hosts: Int, connectionsPerHost: Int = 6) async throws -> (
    Client, StreamTestServer
  ) {
    let server = try StreamTestServer { connection in
      while true {
        _ = try connection.readHead()
        try connection.write(Self.ok)
      }
    }
    let client = Client(connectionsPerHost: connectionsPerHost) { options in
      options.hostOverrides = (0..<hosts).map {
        .init(host: "h\($0).test", target: "127.0.0.1", targetPort: server.port)
      }
    }
    for number in 0..<hosts { #expect(try await client.get("http://h\(number).test/").text == "ok") }
    return (client, server)
  }
}
