import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Steps of a pool with connections of HTTP/2 in memory.
@Suite("Pools of connections of HTTP/2", .timeLimit(.minutes(1))) struct HTTP2PoolTests {
  /// Opens a connection instead of the first one that the pool begins. The server has sent frames before it reads.
  private static func open(
    _ fixture: ConnectionFixture, _ pool: Pool, _ frames: [UInt8] = []
  ) throws -> (MemoryPipe, HTTP2Connection) {
    let maker = try #require(pool.pending.first)
    let pipe = MemoryPipe()
    let connection = try fixture.http2(pipe, for: pool)
    pipe.incoming = frames
    maker.cancel()
    pool.opened(connection, by: maker)
    return (pipe, connection)
  }

  private static func settings(streams: UInt8) -> [UInt8] {
    HTTP2TestConnection.bytes(of: .settings, payload: [0, 3, 0, 0, 0, streams])
  }

  private static func run(
    connections: Int, _ body: @escaping @Sendable (ConnectionFixture) throws -> Void
  ) async throws {
    try await ConnectionFixture.run(
      connections: connections, { $0.httpVersions = .http2PriorKnowledge }
    ) { fixture in
      defer { fixture.core.exchanges.failAll(LoopExchanges.cancelled) }
      try body(fixture)
    }
  }

  @Test("The preface of a connection leaves without a request") func preface() async throws {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let pool = fixture.pool
      let (exchange, _) = try fixture.exchange()
      pool.serve(exchange)
      let maker = try #require(pool.pending.first)
      // It is suspended while its connection is being established.
      fixture.suspendInPool(exchange)
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      maker.cancel()
      pool.opened(connection, by: maker)
      #expect(pool.waiting.count == 1 && pool.group.idleCount == 1)
      fixture.core.exchanges.turn()
      #expect(pipe.written.starts(with: "PRI * HTTP/2.0".utf8))
    }
  }

  @Test("A queue knows with the first request how many streams a connection carries") func streams()
    async throws
  {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (exchange, _) = try fixture.exchange()
      #expect(fixture.core.hostQueues.enqueue(exchange, fixture.core.now))
      let queue = try #require(exchange.hostQueue)
      #expect(queue.multiplexes == nil)
      let connection = try fixture.http2(MemoryPipe())
      exchange.phase = .connecting
      #expect(connection.start(exchange))
      #expect(queue.multiplexes == true && queue.streamLimit == nil)
    }
  }

  // MARK: Limits of streams

  @Test("A request above the limit that a server announces at once uses another connection") func aboveLimit()
    async throws
  {
    try await Self.run(connections: 2) { fixture in
      let (first, _) = try fixture.submit()
      let (second, ending) = try fixture.submit("POST", .bytes(Data([7])), ticket: 2)
      let pool = try #require(first.pool)
      let (_, connection) = try Self.open(fixture, pool, Self.settings(streams: 1))
      #expect(second.connection === connection, "until its settings are read, it carries both")
      fixture.core.exchanges.turn()
      #expect(first.connection === connection && first.phase == .running)
      #expect(second.phase == .connecting && pool.pending.count == 1, "the request waits for the first one")
      let (pipe, other) = try Self.open(fixture, pool, Self.settings(streams: 1))
      fixture.core.exchanges.turn()
      #expect(second.connection === other)
      pipe.incoming = HTTP2TestConnection.bytes(
        of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block([(":status", "200")]))
      other.pipeIsReady()
      #expect(ending.status == 200)
    }
  }

  @Test("Before its settings are read, a connection gets as many requests as the last one has allowed")
  func lastLimit() async throws {
    try await Self.run(connections: 3) { fixture in
      let exchanges = try (1...5).map { try fixture.submit(ticket: $0).0 }
      let pool = try #require(exchanges[0].pool)
      _ = try Self.open(fixture, pool, Self.settings(streams: 2))
      fixture.core.exchanges.turn()
      let queue = try #require(exchanges[0].hostQueue)
      #expect(queue.streamLimit?.streams == 2)
      let (_, other) = try Self.open(fixture, pool)
      fixture.core.exchanges.turn()
      #expect(exchanges.count { $0.connection === other } == 2)
      #expect(queue.streamLimit?.streams == 2, "the queue admits more than the connections can carry")
      #expect(pool.waiting.count == 1 && pool.pending.count == 1)
    }
  }

  @Test("A server that allows no streams gets a few connections, with pauses between them") func noStreams()
    async throws
  {
    try await Self.run(connections: 2) { fixture in
      let (exchange, ending) = try fixture.submit()
      let pool = try #require(exchange.pool)
      var count = 0
      while ending.outcome == nil, count < 50 {
        _ = try Self.open(fixture, pool, Self.settings(streams: 0))
        count += 1
        fixture.core.exchanges.turn()
        guard exchange.repeatTime < .max else { continue }
        fixture.core.state.now = exchange.repeatTime
        fixture.core.exchanges.turn()
      }
      let failure = try #require(ending.failure)
      #expect(failure.kind == .connectionLost && failure.message.contains("SETTINGS_MAX_CONCURRENT_STREAMS"))
      #expect(count == 7)
    }
  }

  @Test("A queue learns how many connections there are, although each carries as many streams as before")
  func connectionCount() async throws {
    try await Self.run(connections: 3) { fixture in
      let queues = fixture.core.hostQueues
      let exchanges = try (1...3).map { try fixture.exchange(ticket: $0).0 }
      #expect(queues.enqueue(exchanges[0], 0))
      let queue = try #require(exchanges[0].hostQueue)
      #expect(queues.noteStreams(1, connections: 1, of: queue, 0) == [])
      #expect(queues.enqueue(exchanges[1], 0), "a second connection may be begun")
      #expect(!queues.enqueue(exchanges[2], 0))
      #expect(queues.noteStreams(1, connections: 1, of: queue, 0) == [])
      #expect(queues.noteStreams(1, connections: 2, of: queue, 0) == [3], "a third connection may be begun")
    }
  }

  // MARK: GOAWAY

  @Test("The code of GOAWAY counts for requests that have not left") func codeOfGoAway() async throws {
    try await Self.run(connections: 2) { fixture in
      let (exchange, ending) = try fixture.submit("POST")
      let pool = try #require(exchange.pool)
      let goAway = { (code: UInt8) in
        HTTP2TestConnection.bytes(of: .settings)
          + HTTP2TestConnection.bytes(of: .goAway, payload: [0, 0, 0, 0, 0, 0, 0, code])
      }
      for number in 1...2 {
        #expect(exchange.repeatTime == .max, "attempt \(number) waits")
        // ENHANCE_YOUR_CALM.
        _ = try Self.open(fixture, pool, goAway(11))
        fixture.core.exchanges.turn()
      }
      #expect(exchange.repeatTime < .max, "the server is asked again at once")
      fixture.core.state.now = exchange.repeatTime
      fixture.core.exchanges.turn()
      #expect(!exchange.requiresHTTP1)
      _ = try Self.open(fixture, pool, goAway(13))
      fixture.core.exchanges.turn()
      #expect(ending.outcome == nil && exchange.requiresHTTP1, "it asks for HTTP/2 again")
    }
  }

  // MARK: HTTP/1.1 beside prior knowledge

  private static let ok = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)

  /// Submits a request that offers to switch to another protocol, which HTTP/2 cannot carry.
  private static func submitUpgrade(
    _ fixture: ConnectionFixture, ticket: UInt64
  ) throws -> (Exchange, ConnectionFixture.Ending) {
    let model = try fixture.exchange(ticket: 100 + ticket).0
    let request = try #require(model.request).changing {
      $0.fields = [HTTPHeader(name: "Upgrade", value: "other/1")]
    }
    let ending = ConnectionFixture.Ending()
    fixture.core.exchanges.submit(request, ticket: ticket, observer: Watcher(), completion: ending)
    return (try #require(fixture.core.exchanges.exchanges[ticket]), ending)
  }

  /// Opens a connection of HTTP/1.1 for an exchange, which gets its response, so that the connection is idle.
  private static func respond(
    _ fixture: ConnectionFixture, to exchange: Exchange, _ ending: ConnectionFixture.Ending
  ) throws -> (MemoryPipe, HTTP1Connection) {
    let pool = try #require(exchange.pool)
    let pipe = MemoryPipe()
    let connection = try fixture.open(pipe, for: pool)
    #expect(connection.exchange === exchange)
    pipe.incoming = ok
    connection.pipeIsReady()
    connection.settle()
    #expect(ending.status == 200 && pool.idle.count == 1)
    return (pipe, connection)
  }

  @Test("A request for which HTTP/2 is demanded is not carried by a connection of HTTP/1.1")
  func besideUpgrade() async throws {
    try await Self.run(connections: 4) { fixture in
      let (upgrade, ending) = try Self.submitUpgrade(fixture, ticket: 1)
      let (_, connection) = try Self.respond(fixture, to: upgrade, ending)
      let plain = try (2...4).map { try fixture.submit(ticket: $0).0 }
      #expect(plain.allSatisfy { $0.connection == nil }, "a request was sent over HTTP/1.1")
      let pool = try #require(plain[0].pool)
      #expect(pool.pending.count == 1 && pool.waiting.count == 3, "one connection may carry them all")
      #expect(pool.group === connection.pool.group, "the limit of the host holds for all connections")
      let (next, _) = try Self.submitUpgrade(fixture, ticket: 5)
      #expect(next.connection === connection, "the idle connection is not used")
    }
  }

  @Test("A request that a server refuses over HTTP/2 leaves no connection of HTTP/1.1 to others")
  func requiredHTTP1() async throws {
    try await Self.run(connections: 2) { fixture in
      let (exchange, ending) = try fixture.submit()
      let pool = try #require(exchange.pool)
      let (pipe, connection) = try Self.open(fixture, pool, HTTP2TestConnection.bytes(of: .settings))
      fixture.core.exchanges.turn()
      #expect(exchange.connection === connection)
      // HTTP_1_1_REQUIRED.
      pipe.incoming = HTTP2TestConnection.bytes(of: .reset, stream: 1, payload: [0, 0, 0, 13])
      connection.pipeIsReady()
      #expect(exchange.requiresHTTP1 && exchange.phase == .connecting)
      let (_, other) = try Self.respond(fixture, to: exchange, ending)
      connection.close()
      let (next, _) = try fixture.submit("POST", .bytes(Data([7])), ticket: 2)
      #expect(next.connection == nil && next.pool === pool, "the request was sent over HTTP/1.1")
      #expect(pool.pending.count == 1 && other.pool.idle.count == 1)
    }
  }

  @Test("Idle connections of HTTP/1.1 and of HTTP/2 make room for one another") func room() async throws {
    try await Self.run(connections: 1) { fixture in
      let (upgrade, ending) = try Self.submitUpgrade(fixture, ticket: 1)
      let (plainPipe, _) = try Self.respond(fixture, to: upgrade, ending)
      let (exchange, secondEnding) = try fixture.submit(ticket: 2)
      let pool = try #require(exchange.pool)
      #expect(plainPipe.isClosed && pool.pending.count == 1, "the request waits for the idle limit")
      let (pipe, connection) = try Self.open(fixture, pool, HTTP2TestConnection.bytes(of: .settings))
      fixture.core.exchanges.turn()
      pipe.incoming = HTTP2TestConnection.bytes(
        of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block([(":status", "200")]))
      connection.pipeIsReady()
      #expect(secondEnding.status == 200 && connection.isIdle)
      let (next, _) = try Self.submitUpgrade(fixture, ticket: 3)
      #expect(connection.isClosed && next.pool?.pending.count == 1, "the request waits for the idle limit")
    }
  }
}
