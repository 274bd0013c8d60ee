import HTTPTestServer
import HTTPWire
import Randomness
import Testing

@testable import HTTPEngine

/// Many exchanges that wait for few connections, with connections in memory.
@Suite("Exchanges that wait for a connection", .timeLimit(.minutes(5))) struct WaitingExchangeTests {
  private static let ok = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
  private static let count = 10_000

  /// Makes exchanges that wait for the connections of a pool.
  private static func crowd(
    _ count: Int, of fixture: ConnectionFixture, idleTimeout: Duration? = nil
  ) throws -> (exchanges: [Exchange], endings: [ConnectionFixture.Ending]) {
    var exchanges: [Exchange] = []
    var endings: [ConnectionFixture.Ending] = []
    for ticket in 1...UInt64(count) {
      let (exchange, ending) = try fixture.exchange(ticket: ticket, idleTimeout: idleTimeout)
      exchanges.append(exchange)
      endings.append(ending)
      fixture.pool.serve(exchange)
    }
    return (exchanges, endings)
  }

  @Test("Each of 10,000 waiting exchanges is considered a few times, and they are sent in their order")
  func steps() async throws {
    try await ConnectionFixture.run(connections: 2) { fixture in
      let (exchanges, endings) = try Self.crowd(Self.count, of: fixture)
      let pipes = [MemoryPipe(), MemoryPipe()]
      let connections = try pipes.map { try fixture.open($0) }
      var next = 2
      while next < Self.count {
        for (pipe, connection) in zip(pipes, connections) {
          pipe.incoming = Self.ok
          connection.pipeIsReady()
          connection.settle()
          #expect(connection.exchange === exchanges[next], "exchange \(next) was not the next one")
          next += 1
        }
      }
      #expect(endings.count { $0.status == 200 } == Self.count - 2 && fixture.pool.waiting.isEmpty)
      #expect(fixture.pool.assignmentSteps <= 6 * Self.count, "\(fixture.pool.assignmentSteps) steps")
    }
  }

  @Test("Connections that close after each response cost no more") func closing() async throws {
    try await ConnectionFixture.run(connections: 1) { fixture in
      let count = 1_000
      let (_, endings) = try Self.crowd(count, of: fixture, idleTimeout: .seconds(60))
      for _ in 0..<count {
        let pipe = MemoryPipe()
        let connection = try fixture.open(pipe)
        pipe.incoming = Array("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8)
        connection.pipeIsReady()
        fixture.core.exchanges.turn()
      }
      #expect(endings.allSatisfy { $0.status == 200 })
      #expect(fixture.pool.assignmentSteps <= 6 * count, "\(fixture.pool.assignmentSteps) steps")
    }
  }

  @Test("Waiting exchanges that are cancelled or suspended cost no more") func leaving() async throws {
    try await ConnectionFixture.run(connections: 1) { fixture in
      let (exchanges, _) = try Self.crowd(Self.count, of: fixture)
      for exchange in exchanges[5_000...] { fixture.suspendInPool(exchange) }
      for exchange in exchanges[1..<5_000].reversed() { fixture.pool.withdraw(exchange) }
      #expect(fixture.pool.waiting.count == 5_001 && fixture.pool.pending.count == 1)
      for exchange in exchanges[5_000...] { fixture.core.exchanges.resume(exchange) }
      fixture.pool.withdraw(exchanges[0])
      let connection = try fixture.open(MemoryPipe())
      #expect(connection.exchange === exchanges[5_000])
      #expect(fixture.pool.assignmentSteps <= 6 * Self.count, "\(fixture.pool.assignmentSteps) steps")
      for exchange in exchanges[5_001...] { fixture.pool.withdraw(exchange) }
    }
  }

  /// Withdraws an exchange from its pool, like one that waits for the token of a login.
  @Test("The pool of an exchange is kept while the exchange does not wait for a connection") func keptPool()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let (exchange, _) = try fixture.submit()
      let pool = try #require(exchange.pool)
      pool.withdraw(exchange)
      #expect(pool.isForgettable && exchange.phase == .connecting)
      for port in 1...600 {
        let url = "http://127.0.0.1:\(port)/"
        let request = WireRequest(url: url, origin: try #require(Origin(url: url)), profile: Client.profile())
        {
          $0.method = "not a method"
        }
        let ending = ConnectionFixture.Ending()
        fixture.core.exchanges.submit(
          request, ticket: UInt64(1_000 + port), observer: Watcher(), completion: ending)
        #expect(ending.failure != nil, "it is ended before it connects")
      }
      fixture.core.exchanges.serveRound(exchange)
      let (next, _) = try fixture.submit(ticket: 2)
      #expect(next.pool === pool && pool.waiting.count == 2)
    }
  }

  @Test("An exchange that is suspended while it connects allows none beyond the burst that was used since")
  func refilledToken() async throws {
    let rate = TransportOptions.RequestLimits.Rate(perSecond: 10, burst: 5)
    try await ConnectionFixture.run(connections: 10, { $0.requestLimits.ratePerHost = rate }) { fixture in
      let (first, _) = try fixture.submit()
      #expect(first.phase == .connecting)
      // Its token is refilled long before.
      fixture.core.state.now += 2_000_000_000
      let burst = try (2...6).map { try fixture.submit(ticket: $0).0 }
      #expect(burst.allSatisfy { $0.phase == .connecting }, "the whole burst is there")
      fixture.core.exchanges.suspend(first)
      #expect(first.phase == .withheld)
      let (next, _) = try fixture.submit(ticket: 7)
      #expect(next.phase == .queued, "it was admitted with a token that was refilled already")
    }
  }

  @Test("Failures to connect end their exchanges one by one") func failing() async throws {
    try await ConnectionFixture.run(connections: 2) { fixture in
      let count = 1_000
      let (_, endings) = try Self.crowd(count, of: fixture)
      for index in 0..<count {
        try fixture.failFirst()
        #expect(endings[index].failure?.kind == .cannotConnectToHost, "exchange \(index)")
      }
      #expect(fixture.pool.isForgettable && fixture.pool.group.open == 0)
      #expect(fixture.pool.assignmentSteps <= 6 * count, "\(fixture.pool.assignmentSteps) steps")
    }
  }

  @Test("A login, an upgrade and other requests that need HTTP/1.1 do not wait for a connection of HTTP/2")
  func mixed() async throws {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (exchanges, _) = try Self.crowd(3, of: fixture)
      #expect(fixture.pool.pending.count == 1, "one connection may carry all of them")
      let (upgrade, _) = try fixture.exchange(
        fields: [HTTPHeader(name: "Connection", value: "Upgrade"), HTTPHeader(name: "Upgrade", value: "x")],
        ticket: 4)
      fixture.pool.serve(upgrade)
      #expect(fixture.pool.pending.count == 2)
      let maker = try #require(fixture.pool.pending.first)
      let connection = try fixture.http2(MemoryPipe())
      maker.cancel()
      fixture.pool.opened(connection, by: maker)
      #expect(exchanges.allSatisfy { $0.phase == .running } && upgrade.phase == .connecting)
      #expect(fixture.pool.pending.count == 1, "the upgrade waits for its own connection")
    }
  }

  @Test("An exchange that needs a new connection is not overtaken for ever by those that do not")
  func overtaken()
    async throws
  {
    try await ConnectionFixture.run(connections: 1) { fixture in
      fixture.pool.serve(try fixture.exchange().0)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      let (again, _) = try fixture.exchange(ticket: 2)
      again.needsNewConnection = true
      let (other, _) = try fixture.exchange(ticket: 3)
      for exchange in [again, other] { fixture.pool.serve(exchange) }
      pipe.incoming = Self.ok
      connection.pipeIsReady()
      connection.settle()
      #expect(pipe.isClosed && fixture.pool.pending.count == 1 && other.phase == .connecting)
      let fresh = try fixture.open(MemoryPipe())
      #expect(fresh.exchange === again)
    }
  }

  @Test("Random walks lose no exchange and keep the limit", arguments: UInt64(0)..<200)
  func walk(seed: UInt64) async throws {
    try await ConnectionFixture.run(connections: Int(seed % 3) + 1) { fixture in
      var random = SeededGenerator(seed: seed)
      var live: [UInt64: (exchange: Exchange, ending: ConnectionFixture.Ending)] = [:]
      var open: [(pipe: MemoryPipe, connection: HTTP1Connection)] = []
      let pool = fixture.pool
      let table = fixture.core.exchanges
      for step in UInt64(1)...300 {
        let name = Comment(rawValue: "seed \(seed), step \(step)")
        open.removeAll { $0.pipe.isClosed }
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1, 2:
          let (exchange, ending) = try fixture.exchange(ticket: step)
          exchange.needsNewConnection = Int.random(in: 0..<4, using: &random) == 0
          live[step] = (exchange, ending)
          pool.serve(exchange)
        case 3 where !pool.pending.isEmpty:
          let pipe = MemoryPipe()
          open.append((pipe, try fixture.open(pipe)))
        case 4 where !pool.pending.isEmpty: try fixture.failFirst()
        case 5:
          guard let ticket = live.keys.sorted().randomElement(using: &random), let one = live[ticket],
            one.ending.outcome == nil
          else { break }
          if Bool.random(using: &random) {
            if one.exchange.flow.isSuspended {
              table.resume(one.exchange)
            } else {
              fixture.suspendInPool(one.exchange)
            }
          } else {
            table.abandon(one.exchange, LoopExchanges.cancelled)
          }
        default:
          guard let (pipe, connection) = open.randomElement(using: &random), connection.exchange != nil else {
            break
          }
          pipe.incoming = Self.ok
          connection.pipeIsReady()
        }
        table.lookAtSockets {}
        table.turn()
        live = live.filter { $0.value.ending.outcome == nil }
        Self.check(pool, live.values.map(\.exchange).filter { $0.phase == .connecting }, name)
      }
    }
  }

  private static func check(_ pool: Pool, _ waiting: [Exchange], _ name: Comment) {
    let group = pool.group
    #expect(pool.waiting.count == waiting.count, name)
    #expect(group.open <= group.limit && group.open >= pool.pending.count, name)
    let isSuspended = waiting.allSatisfy(\.flow.isSuspended)
    let isFull = group.open == group.limit && group.idleCount == 0
    #expect(isSuspended || !pool.pending.isEmpty || isFull, "\(name): an exchange waits for nothing")
  }
}
