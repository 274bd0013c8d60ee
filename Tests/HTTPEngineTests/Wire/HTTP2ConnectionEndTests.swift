import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// The ends of connections of HTTP/2 over our own sockets, and what their requests learn of them.
@Suite("Ends of connections of HTTP/2", .timeLimit(.minutes(3)))
struct HTTP2ConnectionEndTests {
  private static func client() -> Client { Client { $0.httpVersions = .http2PriorKnowledge } }
  private static func url(_ server: StreamTestServer) -> String { "http://localhost:\(server.port)/" }

  @Test(
    "The failure of a refused request names the code of GOAWAY",
    arguments: [(0, "NO_ERROR"), (2, "INTERNAL_ERROR")])
  func codeOfGoAway(code: UInt8, name: String) async throws {
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      while try http2.next().kind != .data {}
      try http2.write(.goAway, payload: [0, 0, 0, 0, 0, 0, 0, code])
      connection.waitForEnd()
    }
    let client = Self.client()
    let source = ScriptedSource(.bytes([1, 2, 3]), .wait, isRepeatable: false)
    let failure = try await client.failure(
      of: client.request(Self.url(server), "POST", body: .source(source)))
    #expect(
      failure.kind == .connectionLost && failure.message.contains("(\(name))"), "\(failure.message)")
    #expect(failure.message.contains("can be read only once"), "\(failure.message)")
  }

  /// Refuses more often than a server that is busy may.
  @Test("A server that sends GOAWAY with NO_ERROR is not mistaken for a busy one") func goodbyes()
    async throws
  {
    let connections = Counter()
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      connections.enter()
      let stream = try http2.request()
      guard connections.now > 10 else {
        try http2.goAway(last: 0)
        return connection.waitForEnd()
      }
      try http2.respond(200, on: stream)
      connection.waitForEnd()
    }
    #expect(try await Self.client().get(Self.url(server)).status == 200)
    #expect(server.connectionCount == 11)
  }

  @Test("A connection that ends within a response says so", arguments: [false, true])
  func endWithinResponse(hasContent: Bool) async throws {
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      if hasContent { try http2.send([1, 2, 3], on: stream, endsStream: false) }
      connection.closeWriting()
      connection.waitForEnd()
    }
    let failure = try await Self.client().failure(of: Self.url(server))
    #expect(failure.kind == .connectionLost)
    #expect(failure.message.contains("before the response was complete"), "\(failure.message)")
    #expect(failure.partial?.head.status == 200)
    #expect(server.connectionCount == 1)
  }

  @Test("The client closes a connection that accepts no more requests") func afterGoAway() async throws {
    let isClosed = Moment()
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      let stream = try http2.request()
      try http2.goAway(last: stream)
      try http2.respond(200, on: stream)
      connection.waitForEnd()
      isClosed.come()
    }
    let client = Self.client()
    #expect(try await client.get(Self.url(server)).status == 200)
    await isClosed.wait()
    let snapshot = await client.transport.snapshot()
    #expect(snapshot.hosts.isEmpty, "\(snapshot)")
  }

  @Test("An idle connection that ends no longer counts as idle") func idleCount() async throws {
    let connections = Counter()
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      connections.enter()
      let isLast = connections.now == 4
      try http2.respond(200, on: http2.request())
      if isLast { connection.waitForEnd() }
    }
    let client = Self.client()
    for round in 1...4 {
      #expect(try await client.get(Self.url(server)).status == 200)
      let hasEnded = await ProcessFacts.eventually { server.openConnectionCount == (round == 4 ? 1 : 0) }
      #expect(hasEnded, "the server did not end connection \(round)")
    }
    #expect(server.connectionCount == 4)
    let host = try #require(await client.transport.snapshot().hosts.first)
    #expect(host.openConnections == 1 && host.idleConnections == 1, "\(host)")
  }
}
