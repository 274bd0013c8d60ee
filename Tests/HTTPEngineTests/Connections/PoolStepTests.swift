import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Steps of a pool, one at a time, with connections in memory.
@Suite("Steps of a pool", .timeLimit(.minutes(1))) struct PoolStepTests {
  private static let ok = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)

  private static func answer(_ pipe: MemoryPipe, _ connection: HTTP1Connection) {
    pipe.incoming = ok
    connection.pipeIsReady()
  }

  /// Opens a connection of HTTP/2, which carries the first exchange of a pool.
  private static func multiplexed(_ fixture: ConnectionFixture) throws -> (MemoryPipe, HTTP2Connection) {
    let maker = try #require(fixture.pool.pending.first)
    let pipe = MemoryPipe()
    let connection = try fixture.http2(pipe)
    pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
    maker.cancel()
    fixture.pool.opened(connection, by: maker)
    fixture.core.exchanges.turn()
    return (pipe, connection)
  }

  /// Opens a connection of HTTP/2, which carries an exchange to its end and is idle then.
  private static func idleMultiplexed(_ fixture: ConnectionFixture) throws -> HTTP2Connection {
    let (exchange, ending) = try fixture.exchange()
    fixture.pool.serve(exchange)
    let (pipe, connection) = try multiplexed(fixture)
    pipe.incoming += HTTP2TestConnection.bytes(
      of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block([(":status", "200")]))
    connection.pipeIsReady()
    fixture.core.exchanges.turn()
    #expect(ending.status == 200 && connection.isIdle && fixture.pool.group.idleCount == 1)
    return connection
  }

  @Test("An expired idle connection of HTTP/2 is not reused") func expired() async throws {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let connection = try Self.idleMultiplexed(fixture)
      fixture.core.state.now = connection.idleLimit
      let (next, _) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(next)
      #expect(connection.isClosed && next.phase == .connecting && fixture.pool.pending.count == 1)
    }
  }

  @Test("An idle connection of HTTP/2 makes room for a request that needs HTTP/1.1") func versions()
    async throws
  {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let connection = try Self.idleMultiplexed(fixture)
      let (next, _) = try fixture.exchange(ticket: 2)
      next.requiresHTTP1 = true
      fixture.pool.serve(next)
      #expect(connection.isClosed && fixture.pool.pending.count == 1, "the request waits for its idle limit")
      #expect(try fixture.open(MemoryPipe()).exchange === next)
    }
  }

  @Test("A suspended exchange neither uses nor opens a connection") func suspended() async throws {
    try await ConnectionFixture.run { fixture in
      let (exchange, _) = try fixture.exchange()
      exchange.flow.suspend()
      fixture.pool.serve(exchange)
      #expect(fixture.pool.pending.isEmpty && fixture.pool.waiting.count == 1)
      fixture.core.exchanges.resume(exchange)
      #expect(fixture.pool.pending.count == 1)
    }
  }

  @Test("An exchange that is suspended leaves its pool, and does not time out with its connection")
  func suspendedWhileConnecting() async throws {
    try await ConnectionFixture.run(connections: 1, { $0.connectTimeout = .seconds(5) }) { fixture in
      let (exchange, ending) = try fixture.exchange()
      fixture.pool.serve(exchange)
      let pending = try #require(fixture.pool.pending.first)
      fixture.core.exchanges.suspend(exchange)
      #expect(exchange.phase == .withheld && fixture.pool.isForgettable && pending.expiry == .max)
      pending.expire(Clock.now(plus: .seconds(6)))
      #expect(ending.outcome == nil, "\(ending.failure?.message ?? "no failure")")
    }
  }

  /// Checks a login, which goes on with its connection, so that its exchange stays in the pool.
  @Test("An exchange that is suspended in its pool does not end with its connection") func suspendedLogin()
    async throws
  {
    try await ConnectionFixture.run(connections: 1) { fixture in
      let (exchange, ending) = try fixture.exchange()
      fixture.pool.serve(exchange)
      fixture.suspendInPool(exchange)
      try fixture.failFirst()
      #expect(ending.outcome == nil && fixture.pool.waiting.count == 1 && fixture.pool.group.open == 0)
      fixture.core.exchanges.resume(exchange)
      #expect(fixture.pool.pending.count == 1)
      try fixture.failFirst()
      #expect(ending.failure?.kind == .cannotConnectToHost)
    }
  }

  @Test("An exchange that enters its pool again does not end with the connection of its first stay")
  func earlierConnection() async throws {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (first, ending) = try fixture.exchange()
      let (second, _) = try fixture.exchange(ticket: 2)
      for exchange in [first, second] { fixture.pool.serve(exchange) }
      fixture.core.exchanges.suspend(first)
      // The other exchange has waited for the same connection.
      #expect(fixture.pool.pending.map(\.ticket) == [nil])
      #expect(first.resume())
      fixture.pool.serve(first)
      try fixture.failFirst()
      #expect(ending.outcome == nil && fixture.pool.waiting.count == 2)
    }
  }

  @Test("An exchange that leaves ends its own connection attempt, and no other one")
  func ownAttempt() async throws {
    try await ConnectionFixture.run { fixture in
      let pool = fixture.pool
      let exchanges = try (1...3).map { try fixture.exchange(ticket: $0).0 }
      for exchange in exchanges { pool.serve(exchange) }
      #expect(pool.pending.map(\.ticket) == [1, 2, 3])
      pool.withdraw(exchanges[0])
      #expect(pool.pending.map(\.ticket) == [2, 3])
      fixture.core.exchanges.suspend(exchanges[1])
      #expect(pool.pending.map(\.ticket) == [3])
    }
  }

  @Test("An exchange that leaves without an attempt ends one that is not needed any more")
  func unneededAttempt() async throws {
    try await ConnectionFixture.run { fixture in
      let pool = fixture.pool
      pool.serve(try fixture.exchange().0)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      for ticket in [2, 3] as [UInt64] { pool.serve(try fixture.exchange(ticket: ticket).0) }
      Self.answer(pipe, connection)
      connection.settle()
      #expect(connection.exchange?.ticket == 2)
      let (last, _) = try fixture.exchange(ticket: 4)
      pool.serve(last)
      #expect(
        pool.pending.map(\.ticket) == [2, 3], "the connection of the second exchange is for the last one")
      pool.withdraw(last)
      #expect(pool.pending.map(\.ticket) == [3])
    }
  }

  @Test("An exchange waits for a connection that has just completed a response") func settling() async throws
  {
    try await ConnectionFixture.run { fixture in
      let pool = fixture.pool
      pool.serve(try fixture.exchange().0)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      Self.answer(pipe, connection)
      let (second, _) = try fixture.exchange(ticket: 2)
      pool.serve(second)
      #expect(pool.pending.isEmpty && pool.waiting.count == 1)
      #expect(fixture.core.exchanges.isBusy, "the loop would not look at the socket")
      let (third, _) = try fixture.exchange(ticket: 3)
      pool.serve(third)
      #expect(pool.pending.count == 1, "one connection cannot carry two exchanges")
      connection.settle()
      #expect(connection.exchange === second && pool.waiting.count == 1 && pool.group.open == 2)
    }
  }

  @Test("An exchange is not sent on a connection if its end is reported with the end of its response")
  func reportedEnd() async throws {
    try await ConnectionFixture.run(connections: 1) { fixture in
      fixture.pool.serve(try fixture.exchange().0)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      let (second, _) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(second)
      Self.answer(pipe, connection)
      let count = pipe.written.count
      fixture.core.exchanges.lookAtSockets {
        pipe.afterIncoming = .ended
        connection.pipeIsReady()
      }
      fixture.core.exchanges.turn()
      #expect(pipe.isClosed && pipe.written.count == count, "the second request was sent")
      #expect(fixture.pool.pending.count == 1 && second.phase == .connecting)
    }
  }

  @Test(
    "A request that follows a response is not sent on a connection whose end is reported next",
    arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"])
  func reportedNext(bytes: String) async throws {
    try await ConnectionFixture.run { fixture in
      let table = fixture.core.exchanges
      defer { table.failAll(LoopExchanges.cancelled) }
      var last: (exchange: Exchange, ending: ConnectionFixture.Ending)?
      let (first, _) = try fixture.submit(ticket: 1) { last = try? fixture.submit(ticket: 3) }
      let (second, _) = try fixture.submit(ticket: 2)
      let pool = try #require(first.pool)
      let pipes = [MemoryPipe(), MemoryPipe()]
      let connections = try pipes.map { try fixture.open($0, for: pool) }
      #expect(connections[1].exchange === second)
      Self.answer(pipes[1], connections[1])
      table.lookAtSockets {}
      #expect(pool.idle.count == 1)
      let count = pipes[1].written.count
      table.lookAtSockets {
        Self.answer(pipes[0], connections[0])
        pipes[1].incoming = Array(bytes.utf8)
        pipes[1].afterIncoming = .ended
        connections[1].pipeIsReady()
      }
      let (exchange, ending) = try #require(last)
      #expect(pipes[1].written.count == count && pipes[1].isClosed, "the request was sent")
      #expect(ending.outcome == nil && exchange.phase == .connecting)
    }
  }

  @Test("A login round is not sent on a connection whose end is reported next") func roundBeforeEnd()
    async throws
  {
    var server = ProxyServer(.http, host: "127.0.0.1", port: 9, username: "a", password: "b")
    server.authentication = .negotiated
    let proxy = Proxy.server(server)
    try await ConnectionFixture.run({ $0.proxy = proxy }) { fixture in
      let table = fixture.core.exchanges
      defer { table.failAll(LoopExchanges.cancelled) }
      let (first, ending) = try fixture.submit(ticket: 1)
      let (second, _) = try fixture.submit(ticket: 2)
      let pool = try #require(first.pool)
      let pipes = [MemoryPipe(), MemoryPipe()]
      let connections = try pipes.map { try fixture.open($0, for: pool) }
      #expect(connections[1].exchange === second)
      Self.answer(pipes[1], connections[1])
      table.lookAtSockets {}
      let count = pipes[1].written.count
      let challenge = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nConnection: close\r\n"
      table.lookAtSockets {
        pipes[0].incoming = Array("\(challenge)Content-Length: 0\r\n\r\n".utf8)
        connections[0].pipeIsReady()
        pipes[1].afterIncoming = .ended
        connections[1].pipeIsReady()
      }
      #expect(pipes[1].written.count == count && pipes[1].isClosed, "the round was sent")
      #expect(ending.outcome == nil && first.phase == .connecting && pool.pending.count == 1)
    }
  }

  @Test("The connection that was used last is used first") func order() async throws {
    try await ConnectionFixture.run { fixture in
      let pool = fixture.pool
      var connections: [HTTP1Connection] = []
      for ticket in 1...3 as ClosedRange<UInt64> {
        pool.serve(try fixture.exchange(ticket: ticket).0)
        connections.append(try fixture.open(MemoryPipe()))
      }
      for index in [1, 2, 0] {
        guard let pipe = connections[index].pipe as? MemoryPipe else { continue }
        Self.answer(pipe, connections[index])
        connections[index].settle()
      }
      #expect(pool.idle.count == 3 && pool.group.idleCount == 3 && pool.group.open == 3)
      let (next, _) = try fixture.exchange(ticket: 4)
      pool.serve(next)
      #expect(connections[0].exchange === next && pool.group.idleCount == 2)
    }
  }

  @Test("After a failed connection, exchanges do not wait for the connection of another one")
  func afterFailure()
    async throws
  {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let pool = fixture.pool
      let endings = try (1...3).map { ticket in
        let (exchange, ending) = try fixture.exchange(ticket: UInt64(ticket))
        pool.serve(exchange)
        return ending
      }
      #expect(pool.pending.count == 1, "one connection may carry all of them")
      try fixture.failFirst()
      #expect(endings.map { $0.failure?.kind } == [.cannotConnectToHost, nil, nil])
      #expect(pool.pending.count == 2 && pool.group.open == 2)
      try fixture.failFirst()
      try fixture.failFirst()
      #expect(endings.allSatisfy { $0.outcome != nil })
      #expect(pool.group.open == 0 && pool.isForgettable)
    }
  }

  @Test("A connection that was closed makes room for an exchange that waits") func room() async throws {
    try await ConnectionFixture.run(connections: 1) { fixture in
      let pool = fixture.pool
      let (first, _) = try fixture.exchange()
      pool.serve(first)
      let connection = try fixture.open(MemoryPipe())
      let others = try [2, 3].map { try fixture.exchange(ticket: $0, idleTimeout: .seconds(5)).0 }
      for other in others { pool.serve(other) }
      #expect(pool.pending.isEmpty && pool.waiting.count == 2)
      for other in others { #expect(other.expiry == .max) }
      fixture.core.state.now += 1_000_000
      connection.abandon(first)
      #expect(fixture.core.exchanges.isBusy, "the loop must not sleep")
      fixture.core.exchanges.turn()
      #expect(pool.pending.count == 1 && pool.group.open == 1)
      // Until now they have waited for the first exchange, and not for the host.
      let expiry = fixture.core.now + 5_000_000_000
      for other in others { #expect(other.expiry == expiry) }
      #expect(fixture.core.exchanges.expiry <= expiry, "the loop would sleep on")
    }
  }

  @Test("A connection of another key is closed in favour of an exchange, the oldest one first")
  func otherKey()
    async throws
  {
    try await ConnectionFixture.run(connections: 3) { fixture in
      let other = try fixture.neighbour()
      var opened: [(pipe: MemoryPipe, connection: HTTP1Connection)] = []
      for (ticket, place) in [(UInt64(1), other), (2, other), (3, fixture)] {
        place.pool.serve(try place.exchange(ticket: ticket).0)
        let pipe = MemoryPipe()
        opened.append((pipe, try place.open(pipe)))
      }
      for (pipe, connection) in opened {
        fixture.core.state.now += 1_000
        Self.answer(pipe, connection)
        connection.settle()
      }
      #expect(fixture.pool.group.open == 3 && fixture.pool.group.idleCount == 3)
      for ticket in [4, 5] as [UInt64] { fixture.pool.serve(try fixture.exchange(ticket: ticket).0) }
      #expect(opened.map(\.pipe.isClosed) == [true, false, false])
      #expect(fixture.pool.pending.count == 1 && fixture.pool.group.open == 3)
    }
  }

  @Test("A connection of another key makes room for an exchange when its response has ended")
  func otherKeyLater()
    async throws
  {
    try await ConnectionFixture.run(connections: 1) { fixture in
      let other = try fixture.neighbour()
      other.pool.serve(try other.exchange().0)
      let pipe = MemoryPipe()
      let connection = try other.open(pipe)
      fixture.pool.serve(try fixture.exchange(ticket: 2).0)
      #expect(fixture.pool.pending.isEmpty && fixture.pool.waiting.count == 1)
      Self.answer(pipe, connection)
      #expect(fixture.core.exchanges.isBusy, "the loop would not look at the socket")
      connection.settle()
      fixture.core.exchanges.turn()
      #expect(pipe.isClosed && fixture.pool.pending.count == 1 && fixture.pool.group.open == 1)
    }
  }

  /// The ways in which a place in the limit of a host becomes free.
  enum Departure: CaseIterable { case closed, failed, withdrawn, idleStream, draining }

  @Test("An exchange gets the place that an exchange of another key leaves", arguments: Departure.allCases)
  func otherKeyLeaves(departure: Departure) async throws {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let other = try fixture.neighbour()
      let (first, _) = try other.exchange()
      other.pool.serve(first)
      let wait = {
        fixture.pool.serve(try fixture.exchange(ticket: 2).0)
        #expect(fixture.pool.pending.isEmpty && fixture.pool.waiting.count == 1)
      }
      switch departure {
      case .closed:
        let connection = try other.open(MemoryPipe())
        try wait()
        connection.abandon(first)
      case .failed:
        try wait()
        try other.failFirst()
      case .withdrawn:
        try wait()
        other.pool.withdraw(first)
      case .idleStream, .draining:
        let (pipe, _) = try Self.multiplexed(other)
        try wait()
        pipe.incoming +=
          departure == .draining
          ? HTTP2TestConnection.bytes(of: .goAway, payload: [0, 0, 0, 1, 0, 0, 0, 0])
          : HTTP2TestConnection.bytes(
            of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block([(":status", "200")]))
        pipe.owner?.pipeIsReady()
      }
      fixture.core.exchanges.turn()
      #expect(fixture.pool.pending.count == 1, "the request waits for its time limit")
    }
  }

  @Test("A request on a connection that was idle without use is repeated if that connection ends")
  func unusedIdle() async throws {
    try await ConnectionFixture.run { fixture in
      let (first, _) = try fixture.exchange()
      fixture.pool.serve(first)
      // It is suspended while its connection is being established.
      fixture.suspendInPool(first)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      #expect(connection.exchange == nil)
      fixture.core.state.now += 1_000_000_000
      let (second, ending) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(second)
      #expect(connection.exchange === second && !pipe.written.isEmpty)
      pipe.afterIncoming = .ended
      connection.pipeIsReady()
      #expect(ending.outcome == nil && second.phase == .connecting)
    }
  }

  @Test("A repeated request gets no other connection that was idle without use") func unusedIdleConnections()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let pool = fixture.pool
      let others = try [1, 2].map { try fixture.exchange(ticket: $0).0 }
      for other in others { pool.serve(other) }
      for other in others { fixture.suspendInPool(other) }
      let pipes = [MemoryPipe(), MemoryPipe()]
      for pipe in pipes { _ = try fixture.open(pipe) }
      fixture.core.state.now += 1_000_000_000
      let (next, _) = try fixture.exchange(ticket: 3)
      next.needsNewConnection = true
      pool.serve(next)
      #expect(pipes.allSatisfy { $0.written.isEmpty }, "it was sent on a connection that may have ended")
      #expect(pool.pending.count == 1)
    }
  }

  @Test("A handshake ends after the idle limit, although no exchange waits for it any more") func handshake()
    async throws
  {
    let server = try StreamTestServer { _ = try $0.readToEnd() }
    try await ConnectionFixture.run(scheme: "https", port: server.port) { fixture in
      let (exchange, _) = try fixture.exchange(idleTimeout: .seconds(60))
      fixture.pool.serve(exchange)
      let pending = try #require(fixture.pool.pending.first)
      for _ in 0..<300 where server.receivedByteCount == 0 {
        fixture.core.poller.wait(milliseconds: 100)
        fixture.core.poller.deliver()
      }
      #expect(server.receivedByteCount > 0 && pending.expiry < .max, "the handshake has no limit")
      pending.expire(pending.expiry)
      #expect(fixture.pool.pending.isEmpty && fixture.pool.group.open == 0)
    }
  }

  @Test("An exchange that is sent again closes a used connection of its own key, and not a new one")
  func ownKey() async throws {
    try await ConnectionFixture.run(connections: 1) { fixture in
      let pool = fixture.pool
      pool.serve(try fixture.exchange().0)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      Self.answer(pipe, connection)
      connection.settle()
      let (second, _) = try fixture.exchange(ticket: 2)
      second.needsNewConnection = true
      pool.serve(second)
      #expect(pipe.isClosed && pool.pending.count == 1 && pool.group.open == 1)
      let fresh = try fixture.open(MemoryPipe())
      #expect(fresh.exchange === second)
    }
  }

  @Test("Closing a pool closes its connections and those that are being established") func close()
    async throws
  {
    try await ConnectionFixture.run({ $0.connectTimeout = .seconds(60) }) { fixture in
      let pool = fixture.pool
      pool.serve(try fixture.exchange().0)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      Self.answer(pipe, connection)
      connection.settle()
      let (second, third) = (try fixture.exchange(ticket: 2).0, try fixture.exchange(ticket: 3).0)
      for exchange in [second, third] { pool.serve(exchange) }
      connection.abandon(second)
      let pending = try #require(pool.pending.first)
      #expect(pending.expiry < .max)
      pool.closeAll()
      #expect(pending.expiry == .max, "the attempt goes on")
      #expect(pipe.isClosed && pool.pending.isEmpty && pool.group.open == 0 && pool.group.idleCount == 0)
    }
  }
}
