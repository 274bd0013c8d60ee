import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Connections of HTTP/2 after GOAWAY from the server, while a long stream continues (RFC 9113 §6.8).
@Suite("Connections that drain", .timeLimit(.minutes(3))) struct DrainingTests {
  /// Opens a connection of HTTP/2 instead of the first one that the pool begins.
  private static func open(_ fixture: ConnectionFixture, streams: UInt8? = nil) throws -> MemoryPipe {
    let maker = try #require(fixture.pool.pending.first)
    let pipe = MemoryPipe()
    let connection = try fixture.http2(pipe)
    let settings: [UInt8] = streams.map { [0, 3, 0, 0, 0, $0] } ?? []
    pipe.incoming = HTTP2TestConnection.bytes(of: .settings, payload: settings)
    maker.cancel()
    fixture.pool.opened(connection, by: maker)
    fixture.core.exchanges.turn()
    return pipe
  }

  private static func receive(_ bytes: [UInt8], on pipe: MemoryPipe, _ fixture: ConnectionFixture) {
    pipe.incoming += bytes
    pipe.owner?.pipeIsReady()
    fixture.core.exchanges.turn()
  }

  private static func goAway(_ lastStream: UInt8 = 1) -> [UInt8] {
    HTTP2TestConnection.bytes(of: .goAway, payload: [0, 0, 0, lastStream, 0, 0, 0, 0])
  }

  private static let response = HTTP2TestConnection.bytes(
    of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block([(":status", "200")]))

  @Test("A long stream on a connection that drains does not keep other requests waiting") func place()
    async throws
  {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let pool = fixture.pool
      let (long, ending) = try fixture.exchange()
      pool.serve(long)
      let old = try Self.open(fixture)
      Self.receive(Self.goAway(), on: old, fixture)
      #expect(long.phase == .running && pool.pending.isEmpty)
      let (next, _) = try fixture.exchange(ticket: 2)
      pool.serve(next)
      #expect(pool.pending.count == 1, "the request waits for the end of the long stream")
      let new = try Self.open(fixture)
      #expect(next.phase == .running && pool.group.open == 2)
      Self.receive(Self.response, on: old, fixture)
      #expect(ending.status == 200 && old.isClosed && !new.isClosed)
      #expect(pool.group.open == 1 && pool.group.draining == 0 && pool.group.occupied == 1)
    }
  }

  @Test("A request that waits when the server says goodbye gets a new connection") func waiting() async throws
  {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (long, _) = try fixture.exchange()
      let (next, _) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(long)
      let old = try Self.open(fixture, streams: 1)
      Self.receive([], on: old, fixture)
      fixture.pool.serve(next)
      #expect(fixture.pool.pending.isEmpty && fixture.pool.waiting.count == 1, "the server allows one stream")
      Self.receive(Self.goAway(), on: old, fixture)
      #expect(long.phase == .running && next.phase == .connecting && fixture.pool.pending.count == 1)
    }
  }

  @Test(
    "A server that always says goodbye gets at most twice as many connections as allowed", arguments: 1...3)
  func bound(limit: Int) async throws {
    try await ConnectionFixture.run(connections: limit, { $0.httpVersions = .http2PriorKnowledge }) {
      fixture in
      let pool = fixture.pool
      var pipes: [MemoryPipe] = []
      for ticket in 1...UInt64(3 * limit) {
        pool.serve(try fixture.exchange(ticket: ticket).0)
        guard !pool.pending.isEmpty else { continue }
        let pipe = try Self.open(fixture)
        Self.receive(Self.goAway(), on: pipe, fixture)
        pipes.append(pipe)
      }
      #expect(pipes.count == 2 * limit && pool.group.open == 2 * limit && pool.waiting.count == limit)
      Self.receive(Self.response, on: pipes[0], fixture)
      #expect(pipes[0].isClosed && pool.pending.count == 1, "the slot of a closed connection is not used")
    }
  }

  @Test("A connection without streams is closed when its server says goodbye, and counts no more") func idle()
    async throws
  {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (first, _) = try fixture.exchange()
      fixture.pool.serve(first)
      let pipe = try Self.open(fixture)
      Self.receive(Self.response, on: pipe, fixture)
      #expect(fixture.pool.group.idleCount == 1)
      Self.receive(Self.goAway(), on: pipe, fixture)
      #expect(pipe.isClosed && fixture.pool.isForgettable)
      #expect(fixture.pool.group.open == 0 && fixture.pool.group.draining == 0)
    }
  }
}
