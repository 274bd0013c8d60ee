import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Steps of connections that a real server cannot bring about one by one.
@Suite("Steps of connections", .timeLimit(.minutes(1)))
struct ConnectionStepTests {
  private static let lost = TransportFailure(.connectionLost, "The connection broke here.")
  private static let ok = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)

  @Test("A failed send ends the streams of a connection that has nothing to read") func failedSend()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      let (first, firstEnding) = try fixture.exchange("POST", .bytes(Data([1, 2, 3])))
      #expect(connection.start(first))
      connection.continueTurn()
      #expect(pipe.written.count > 50 && firstEnding.outcome == nil)
      // The next write fails, and the peer has sent nothing.
      pipe.room = 0
      pipe.afterRoom = .failed(Self.lost)
      let (second, secondEnding) = try fixture.exchange(ticket: 2)
      #expect(connection.start(second))
      connection.continueTurn()
      #expect(firstEnding.failure?.kind == .connectionLost)
      #expect(firstEnding.failure?.message.hasPrefix("The connection broke here.") == true)
      #expect(firstEnding.failure?.message.contains("may have processed") == true)
      #expect(secondEnding.outcome == nil, "it was not sent, so it goes to another connection")
      #expect(pipe.isClosed && connection.isClosed && connection.freeStreams == 0)
    }
  }

  @Test("What a server has sent before a failed send is still read") func answerBeforeFailure() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      pipe.room = 10
      pipe.afterRoom = .failed(Self.lost)
      pipe.incoming = Self.ok
      let (exchange, ending) = try fixture.exchange("POST", .bytes(Data(repeating: 1, count: 100_000)))
      connection.start(exchange)
      #expect(ending.status == 200 && ending.text == "ok")
      #expect(pipe.isClosed, "the connection accepts no more bytes")
    }
  }

  @Test("The reason of a failed send is the failure of a request without a response")
  func failedSendOverHTTP1()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      pipe.room = 10
      pipe.afterRoom = .failed(Self.lost)
      pipe.afterIncoming = .ended
      let (exchange, ending) = try fixture.exchange("POST", .bytes(Data([1])))
      connection.start(exchange)
      #expect(
        ending.failure?.message.hasPrefix("The connection broke here.") == true,
        "\(ending.failure?.message ?? "")")
      #expect(ending.failure?.message.contains("may have processed") == true)
    }
  }

  @Test("A server that refuses the connection has not processed the request", arguments: [true, false])
  func refusedConnection(isHTTP2: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let (exchange, ending) = try fixture.exchange("POST", .bytes(Data([1])))
      let refusal = TransportFailure(.clientCertificateRequired, "It asks for a client certificate.")
      if isHTTP2 {
        let connection = try fixture.http2(pipe)
        #expect(connection.start(exchange))
        connection.continueTurn()
        pipe.afterIncoming = .failed(refusal)
        connection.pipeIsReady()
      } else {
        let connection = fixture.http1(pipe)
        pipe.afterIncoming = .failed(refusal)
        connection.start(exchange)
      }
      #expect(ending.failure?.kind == .clientCertificateRequired)
      #expect(ending.failure?.message == "It asks for a client certificate.")
    }
  }

  @Test("A server that changes its certificate may have processed the request", arguments: [true, false])
  func changedCertificate(isPOST: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let (exchange, ending) =
        try isPOST ? fixture.exchange("POST", .bytes(Data([1]))) : fixture.exchange()
      let connection = fixture.http1(pipe)
      pipe.afterIncoming = .failed(TransportFailure(.secureConnectionFailed, "It changed its certificate."))
      connection.start(exchange)
      #expect(ending.failure?.kind == .secureConnectionFailed)
      let message = ending.failure?.message ?? ""
      #expect(message.hasPrefix("It changed its certificate."))
      #expect(message.contains("may have processed") == isPOST, "\(message)")
    }
  }

  @Test(
    "A POST of which a used connection took no byte is sent again, one of which it took a byte is not",
    arguments: [0, 1])
  func untouchedPOST(count: Int) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      pipe.incoming = Self.ok
      let (first, firstEnding) = try fixture.exchange()
      connection.start(first)
      connection.goOn(with: first)
      #expect(firstEnding.status == 200)
      connection.settle()
      pipe.room = count
      pipe.afterRoom = .failed(Self.lost)
      pipe.afterIncoming = .ended
      let (second, secondEnding) = try fixture.exchange("POST", .bytes(Data([1])), ticket: 2)
      connection.start(second)
      #expect((secondEnding.outcome == nil) == (count == 0))
      #expect(second.needsNewConnection == (count == 0))
    }
  }

  @Test("Content that was held back does not reach the next response") func heldContent() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let rest = "dy\r\n0\r\n\r\n"
      pipe.incoming = Array(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\n\(rest)".utf8)
      let sink = ScriptedSink(room: 0)
      let (exchange, ending) = try fixture.exchange(sink: sink)
      connection.start(exchange)
      connection.goOn(with: exchange)
      #expect(sink.bytes == Array("bo".utf8))
      #expect(connection.unread == Array(rest.utf8) && ending.outcome == nil)
      connection.abandon(exchange)
      #expect(connection.unread.isEmpty && pipe.isClosed)
    }
  }

  /// Begins with a socket that has reported everything while it connected, so that nothing wakes the connection.
  @Test("What came before the first request is read", arguments: [false, true])
  func earlyBytes(hasResponse: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      if hasResponse { pipe.incoming = Self.ok }
      pipe.afterIncoming = .ended
      let (exchange, ending) = try fixture.exchange()
      connection.start(exchange)
      #expect(ending.status == (hasResponse ? 200 : nil))
      #expect(ending.failure?.kind == (hasResponse ? nil : .connectionLost))
    }
  }

  @Test("A connection has one share of a turn, however often its socket was ready") func oneShare()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let size = 12 * HTTP1Connection.turnSize
      pipe.incoming = Array("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n".utf8)
      pipe.incoming += [UInt8](repeating: 1, count: size)
      let (exchange, ending) = try fixture.exchange()
      connection.start(exchange)
      for _ in 0..<3 { connection.pipeIsReady() }
      for _ in 0..<2 {
        let left = pipe.incoming.count
        fixture.core.exchanges.turn()
        #expect(left - pipe.incoming.count == HTTP1Connection.turnSize)
      }
      #expect(ending.outcome == nil)
    }
  }

  @Test("A connection is not reused if its end arrived with its response", arguments: [false, true])
  func endWithResponse(hasMore: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let (exchange, ending) = try fixture.exchange()
      connection.start(exchange)
      #expect(ending.outcome == nil)
      pipe.incoming = Self.ok
      connection.pipeIsReady()
      #expect(ending.status == 200)
      // Both arrive after the read of the response, and with the same event.
      if hasMore { pipe.incoming = [1] } else { pipe.afterIncoming = .ended }
      connection.settle()
      #expect(pipe.isClosed && fixture.pool.idle.isEmpty && fixture.pool.settling == 0)
    }
  }

  @Test("A connection without news is used again") func reuse() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      pipe.incoming = Self.ok
      let (exchange, ending) = try fixture.exchange()
      connection.start(exchange)
      #expect(ending.status == 200)
      connection.settle()
      #expect(!pipe.isClosed && fixture.pool.idle.count == 1)
      pipe.incoming = [1]
      connection.pipeIsReady()
      #expect(pipe.isClosed && fixture.pool.idle.isEmpty, "nothing may arrive without a request")
    }
  }
}
