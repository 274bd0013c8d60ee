import FoundationEssentials
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// The bytes of a response that a connection keeps because its sink is full.
@Suite("Bytes that are buffered for a full sink", .timeLimit(.minutes(1))) struct FullSinkTests {
  private static let piece = 65_536
  private static let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 16777216\r\n\r\n".utf8)

  /// A connection that receives a long response into a sink.
  private struct Setup {
    let pipe = MemoryPipe()
    let connection: HTTP1Connection
    let exchange: Exchange
    let sink: CountingSink
    private let fixture: ConnectionFixture

    init(
      _ fixture: ConnectionFixture, tellsRoom: Bool = false, head: [UInt8] = FullSinkTests.head
    ) throws {
      self.fixture = fixture
      sink = CountingSink(room: FullSinkTests.piece, tellsRoom: tellsRoom)
      exchange = try fixture.exchange(sink: sink).0
      fixture.pool.serve(exchange)
      connection = try fixture.open(pipe)
      pipe.incoming = head
      connection.pipeIsReady()
    }

    /// Lets bytes arrive. Returns how many of them the connection has read, but not delivered.
    func keeps(_ count: Int) -> Int {
      pipe.incoming = [UInt8](repeating: 7, count: count)
      let delivered = sink.count
      // More than a turn may read.
      for _ in 0..<64 { connection.pipeIsReady() }
      return count - pipe.incoming.count - (sink.count - delivered)
    }

    func grant(_ room: Int) {
      sink.grant(room)
      exchange.flow.proceed()
      connection.goOn(with: exchange)
    }
  }

  @Test("A connection of HTTP/1.1 keeps one piece for a sink that is suddenly full") func suddenlyFull()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, tellsRoom: false)
      #expect(setup.keeps(1 << 20) <= Self.piece, "the sink was full for the first time")
      for round in 0..<20 {
        // What arrived before was dropped by the test.
        setup.pipe.incoming = []
        setup.grant(Self.piece)
        #expect(setup.keeps(1 << 20) <= Self.piece, "round \(round)")
      }
    }
  }

  @Test("A connection of HTTP/1.1 does not read for a sink that reports that it is full") func fullBefore()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, tellsRoom: true)
      _ = setup.keeps(Self.piece)
      for round in 0..<20 {
        setup.pipe.incoming = []
        #expect(setup.sink.count >= setup.sink.granted)
        #expect(setup.keeps(1 << 20) == 0 && setup.pipe.incoming.count == 1 << 20, "round \(round)")
        setup.pipe.incoming = []
        setup.grant(setup.sink.count - setup.sink.granted + 1)
        // A read that begins while there is room delivers one piece.
        #expect(setup.keeps(Self.piece) == 0 && setup.pipe.incoming.isEmpty, "round \(round)")
      }
    }
  }

  @Test(
    "A sink that reports its room gets several pieces at a time, and no bytes are buffered for it",
    arguments: [1, 65_536, 65_537, 200_000, 262_144, 1_000_000])
  func room(_ room: Int) async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, tellsRoom: true)
      _ = setup.keeps(Self.piece)
      for round in 0..<10 {
        setup.pipe.incoming = []
        setup.grant(setup.sink.count - setup.sink.granted + room)
        #expect(setup.exchange.readLimit() == min(4, (room + Self.piece - 1) / Self.piece) * Self.piece)
        #expect(setup.keeps(1 << 20) == 0, "round \(round)")
        #expect(setup.sink.count >= setup.sink.granted, "round \(round)")
      }
    }
  }

  @Test("A sink that is full of decoded bytes does not get more") func decodedBytes() async throws {
    let coded = Array(try #require(Deflater.compress(Data(Content.bytes(500_000)), .gzip)))
    try await ConnectionFixture.run { fixture in
      let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(coded.count)\r\n\r\n"
      let setup = try Setup(fixture, head: Array(head.utf8))
      setup.pipe.incoming = coded
      setup.connection.pipeIsReady()
      #expect(setup.sink.count >= Self.piece && setup.sink.count < 500_000)
      #expect(setup.sink.largestPiece <= Self.piece)
    }
  }

  private static let frame = HTTP2TestConnection.bytes(
    of: .data, stream: 1, payload: [UInt8](repeating: 7, count: 16_384))

  /// Begins a response over HTTP/2, and lets the first window of its content arrive.
  private func stream(
    into sink: CountingSink, of fixture: ConnectionFixture
  ) throws -> (MemoryPipe, HTTP2Connection, Exchange, ConnectionFixture.Ending) {
    let pipe = MemoryPipe()
    let connection = try fixture.http2(pipe)
    let (exchange, ending) = try fixture.exchange(sink: sink)
    pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
    #expect(connection.start(exchange))
    fixture.core.exchanges.turn()
    pipe.incoming = HTTP2TestConnection.bytes(
      of: .headers, flags: 0x4, stream: 1, payload: SessionPeer.block([(":status", "200")]))
    for _ in 0..<16 { pipe.incoming += Self.frame }
    connection.pipeIsReady()
    return (pipe, connection, exchange, ending)
  }

  @Test("A stream of HTTP/2 keeps its first window, and the server may not send more") func stream()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let sink = CountingSink(room: 1)
      let (pipe, connection, exchange, ending) = try stream(into: sink, of: fixture)
      #expect(ending.outcome == nil && sink.count <= Self.piece, "the window has 262,144 bytes")
      pipe.incoming = Self.frame
      connection.pipeIsReady()
      sink.grant(.max / 2)
      exchange.flow.proceed()
      connection.goOn(with: exchange)
      fixture.core.exchanges.turn()
      #expect(ending.failure != nil, "more than the window was accepted")
    }
  }

  @Test(
    "A full sink gets nothing because the source of the request or the caller goes on",
    arguments: [false, true])
  func otherWakes(isResumed: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let sink = CountingSink(room: 1, tellsRoom: true)
      let (_, connection, exchange, _) = try stream(into: sink, of: fixture)
      let count = sink.count
      #expect(count > 0 && count <= Self.piece)
      for _ in 0..<10 {
        if isResumed { exchange.flow.suspend() }
        if isResumed { _ = exchange.resume() } else { exchange.proceed() }
        connection.goOn(with: exchange)
        #expect(sink.count == count)
      }
      sink.grant(1 << 20)
      exchange.proceed()
      connection.goOn(with: exchange)
      #expect(sink.count > count, "buffered bytes are delivered when there is room")
    }
  }
}
