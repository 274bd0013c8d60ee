import COpenSSL
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Tickets of TLS 1.3 (RFC 8446 §4.6.1), for each of which OpenSSL creates buffers of 16 KiB. An idle connection must
/// not keep them, and no byte that was decrypted may be lost with them.
@Suite("Tickets of TLS", .timeLimit(.minutes(2))) struct TicketTests {
  /// A connection with a server in memory, after its handshake.
  private struct Setup {
    let pipe = MemoryPipe()
    let server: MemoryTLSServer
    let tls: TLSConnection

    init(_ fixture: ConnectionFixture) throws {
      server = try MemoryTLSServer(.localhost, on: pipe, version: TLS1_3_VERSION)
      let origin = try #require(Origin(url: "https://localhost/"))
      tls = try TLSConnection.over(pipe, with: TLSPeer(origin, Client.profile()), fixture.core.contexts).get()
      try server.handshake(with: tls)
    }

    /// Reads at most `count` bytes. Returns an empty array if there are none.
    func read(_ count: Int) throws -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: count)
      let step = bytes.withUnsafeMutableBytes { tls.read(into: $0) }
      switch step {
      case .moved(let moved): return Array(bytes[..<moved])
      case .waitsToRead: return []
      default:
        Issue.record("unexpected step \(step)")
        throw CancellationError()
      }
    }
  }

  @Test("Bytes that were decrypted survive a ticket", arguments: [1, 100, 16_384])
  func decryptedBytes(size: Int) async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      var sent: [UInt8] = []
      var received: [UInt8] = []
      for round in 0..<4 {
        setup.server.sendTicket()
        let record = (0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ round) }
        setup.server.send(record)
        if round % 2 == 1 { setup.server.sendTicket() }
        sent += record
        while true {
          let bytes = try setup.read(size)
          if bytes.isEmpty { break }
          received += bytes
        }
        #expect(received == sent, "round \(round)")
        #expect(!setup.tls.hasSpareBuffers, "round \(round)")
      }
    }
  }

  @Test("A connection that waits after a ticket holds no buffers, and can be written to") func idle()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      #expect(try setup.read(100).isEmpty, "the tickets of the handshake")
      #expect(!setup.tls.hasSpareBuffers)
      for text in ["one", "two"] {
        let step = Array(text.utf8).withUnsafeBytes { setup.tls.write($0) }
        guard case .moved(3) = step else { throw MemoryTLSServer.Failure() }
        #expect(setup.server.receive() == text)
        setup.server.sendTicket()
        #expect(try setup.read(100).isEmpty)
        #expect(!setup.tls.hasSpareBuffers)
      }
    }
  }

  @Test("A ticket before the rest of a record leaves the part that has arrived") func partOfRecord()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      _ = try setup.read(100)
      setup.server.sendTicket()
      let ticket = setup.pipe.incoming
      setup.pipe.incoming = []
      setup.server.send("the record")
      let record = setup.pipe.incoming
      setup.pipe.incoming = ticket + record.prefix(9)
      #expect(try setup.read(100).isEmpty)
      #expect(setup.tls.hasSpareBuffers, "a part of a record is in the buffer")
      setup.pipe.incoming = Array(record.dropFirst(9))
      #expect(try setup.read(100) == Array("the record".utf8))
      #expect(!setup.tls.hasSpareBuffers)
    }
  }
}
