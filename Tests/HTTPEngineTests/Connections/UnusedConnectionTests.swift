import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Connections in memory that a pool has begun, and that their exchange does not need any more.
@Suite("Connections that no exchange has used", .timeLimit(.minutes(1)))
struct UnusedConnectionTests {
  private static let ok = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)

  @Test(
    "A connection that ends, or that sends bytes, before it has carried an exchange is not used",
    arguments: ["", String(decoding: ok, as: UTF8.self)])
  func unusedConnection(bytes: String) async throws {
    try await ConnectionFixture.run { fixture in
      for ticket in [1, 2] as [UInt64] { fixture.pool.serve(try fixture.exchange(ticket: ticket).0) }
      let pipe = MemoryPipe()
      let first = try fixture.open(pipe)
      pipe.incoming = Self.ok
      first.pipeIsReady()
      first.settle()
      #expect(first.exchange?.ticket == 2)
      let spare = MemoryPipe()
      spare.incoming = Array(bytes.utf8)
      if bytes.isEmpty { spare.afterIncoming = .ended }
      _ = try fixture.open(spare)
      #expect(spare.isClosed && fixture.pool.idle.isEmpty)
      let (third, ending) = try fixture.exchange("POST", ticket: 3)
      fixture.pool.serve(third)
      #expect(ending.outcome == nil && fixture.pool.pending.count == 1)
    }
  }

  @Test("A connection that is begun for HTTP/1.1 goes on when an exchange for HTTP/2 leaves")
  func connectionOfOther() async throws {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let exchanges = try [1, 2].map { try fixture.exchange(ticket: $0).0 }
      exchanges[1].requiresHTTP1 = true
      for exchange in exchanges { fixture.pool.serve(exchange) }
      let own = try #require(fixture.pool.pending.last)
      #expect(fixture.pool.pending.count == 2)
      fixture.pool.withdraw(exchanges[0])
      #expect(fixture.pool.pending.contains { $0 === own })
    }
  }
}
