import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Steps of a pool with connections of HTTP/2 in memory.
@Suite("Pools of connections of HTTP/2", .timeLimit(.minutes(1))) struct HTTP2PoolTests {
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
      #expect(queue.multiplexes == true && queue.streams == nil)
    }
  }
}
