import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Steps of an exchange on a connection of HTTP/2 in memory.
@Suite("Steps of a connection of HTTP/2", .timeLimit(.minutes(1)))
struct HTTP2StepTests {
  /// A connection that has received the settings of its server, and an exchange on its first stream.
  private struct Setup {
    let pipe = MemoryPipe()
    let connection: HTTP2Connection
    let exchange: Exchange
    let ending: ConnectionFixture.Ending

    init(
      _ fixture: ConnectionFixture, _ method: String = "GET", _ body: RequestBody = .none,
      fields: [HTTPHeader] = [], observer: Watcher = Watcher()
    ) throws {
      connection = try fixture.http2(pipe)
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
      (exchange, ending) = try fixture.exchange(method, body, fields: fields, observer: observer)
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      #expect(pipe.written.starts(with: "PRI * HTTP/2.0".utf8) && ending.outcome == nil)
    }

    /// Receives a head, content, and trailers, which end the stream.
    func receive(_ content: [UInt8] = [], endsStream: Bool = true, trailers: [(String, String)] = []) {
      pipe.incoming += HTTP2TestConnection.bytes(
        of: .headers, flags: 0x4, stream: 1, payload: SessionPeer.block([(":status", "200")]))
      let isLast = endsStream && trailers.isEmpty
      pipe.incoming += HTTP2TestConnection.bytes(
        of: .data, flags: isLast ? 0x1 : 0, stream: 1, payload: content)
      if !trailers.isEmpty {
        pipe.incoming += HTTP2TestConnection.bytes(
          of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block(trailers))
      }
      connection.pipeIsReady()
    }

    var metrics: TransferMetrics.Values? { try? ending.outcome?.get().metrics.values }
  }

  private static let upload = RequestBody.bytes(Data([7, 7, 7]))
  private static let expect = [HTTPHeader(name: "Expect", value: "100-continue")]

  @Test("The time of an idle connection begins with the end of its last exchange") func idleTime()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      #expect(!setup.connection.isIdle)
      fixture.core.state.now += 50_000_000_000
      setup.receive(Array("ok".utf8))
      #expect(setup.ending.text == "ok" && setup.connection.isIdle)
      #expect(setup.connection.idleSince == fixture.core.now)
      #expect(setup.connection.idleLimit == fixture.core.now + 118_000_000_000)
    }
  }

  @Test(
    "Exchanges are repeated after the end of a connection that was idle before", arguments: [false, true])
  func endOfNewConnection(wasIdle: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      if wasIdle { fixture.core.state.now += 1 }
      let (first, firstEnding) = try fixture.exchange()
      let (second, secondEnding) = try fixture.exchange(ticket: 2)
      #expect(connection.start(first) && connection.start(second))
      fixture.core.exchanges.turn()
      #expect(pipe.written.starts(with: "PRI * HTTP/2.0".utf8))
      let (third, thirdEnding) = try fixture.exchange(ticket: 3)
      #expect(connection.start(third))
      fixture.core.exchanges.turn()
      pipe.afterIncoming = .ended
      connection.pipeIsReady()
      #expect((firstEnding.outcome == nil) == wasIdle && (secondEnding.outcome == nil) == wasIdle)
      #expect(thirdEnding.outcome == nil, "the connection had carried others before")
    }
  }

  @Test("A connection that is closed says so with GOAWAY") func goAway() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      setup.receive()
      setup.connection.close()
      // The head of GOAWAY, stream 0, and NO_ERROR.
      #expect(setup.pipe.written.suffix(17).prefix(9) == [0, 0, 8, 7, 0, 0, 0, 0, 0])
      #expect(setup.pipe.written.suffix(4) == [0, 0, 0, 0] && setup.pipe.isClosed)
    }
  }

  @Test("Content is sent when the time for the response 100 is over") func expiredExpectation() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, "POST", Self.upload, fields: Self.expect)
      #expect(setup.pipe.written.suffix(3) != [7, 7, 7])
      #expect(setup.exchange.continueTime < .max)
      #expect(fixture.core.exchanges.expiry <= setup.exchange.continueTime, "the loop would sleep on")
      setup.connection.continueExpired(setup.exchange)
      fixture.core.exchanges.turn()
      #expect(setup.pipe.written.suffix(3) == [7, 7, 7])
    }
  }

  @Test("Metrics have the end of a request without content, and the size of trailers") func metrics()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let plain = try Setup(fixture)
      plain.receive([1])
      let values = try #require(plain.metrics)
      #expect(values.requestEnd >= values.requestStart && values.requestStart >= 0)
      let longer = try Setup(fixture)
      longer.receive([1], trailers: [("x-end", "1")])
      #expect(
        longer.metrics?.responseHeaderBytes == values.responseHeaderBytes + Int64("x-end: 1\r\n".utf8.count))
    }
  }

  @Test("The limit of the first byte begins with the end of an upload") func firstByteLimit() async throws {
    try await ConnectionFixture.run({ $0.timeLimits.firstByte = .seconds(10) }) { fixture in
      let setup = try Setup(fixture, "POST", Self.upload)
      #expect(setup.pipe.written.suffix(3) == [7, 7, 7])
      #expect(setup.exchange.phaseTimer.map { $0.expiry < .max } == true)
    }
  }

  @Test("A stream is answered once its response is complete, although its request is not") func answered()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let source = RequestBody.source(ScriptedSource(.bytes([1]), .wait))
      let setup = try Setup(fixture, "POST", source)
      setup.receive([1], endsStream: false)
      #expect(!setup.connection.isAnswered(setup.exchange))
      setup.pipe.incoming += HTTP2TestConnection.bytes(of: .data, flags: 0x1, stream: 1)
      setup.connection.pipeIsReady()
      #expect(setup.connection.isAnswered(setup.exchange) && setup.ending.outcome == nil)
    }
  }

  @Test("The loss of a discarded body is not a failure") func lostBody() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, observer: Watcher(disposition: .discard))
      setup.receive([1], endsStream: false)
      #expect(setup.ending.outcome == nil, "the rest is short, so it is read")
      setup.pipe.afterIncoming = .ended
      setup.connection.pipeIsReady()
      #expect(setup.ending.status == 200 && setup.pipe.isClosed)
    }
  }

  @Test(
    "A response leads to a request on another connection, whose bytes do not replace those that follow it")
  func otherBytes() async throws {
    try await ConnectionFixture.run { fixture in
      let neighbour = try fixture.neighbour()
      let (suspended, _) = try neighbour.exchange(ticket: 3)
      neighbour.pool.serve(suspended)
      neighbour.suspendInPool(suspended)
      let other = MemoryPipe()
      _ = try neighbour.open(other)
      other.incoming = [UInt8](repeating: 0x20, count: 1_000)
      let (next, nextEnding) = try neighbour.exchange(ticket: 4)

      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
      let (first, firstEnding) = try fixture.exchange { neighbour.pool.serve(next) }
      let (second, secondEnding) = try fixture.exchange(ticket: 2)
      #expect(connection.start(first) && connection.start(second))
      fixture.core.exchanges.turn()
      for stream in [1, 3] as [UInt32] {
        pipe.incoming += HTTP2TestConnection.bytes(
          of: .headers, flags: 0x5, stream: stream, payload: SessionPeer.block([(":status", "200")]))
      }
      connection.pipeIsReady()
      #expect(firstEnding.status == 200 && nextEnding.failure?.kind == .badServerResponse)
      #expect(secondEnding.status == 200, "\(secondEnding.failure?.message ?? "no outcome")")
    }
  }

  @Test(
    "A request that is repeated because its connection has ended is not sent there", arguments: [true, false])
  func unsent(isNew: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      if !isNew {
        pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
        connection.pipeIsReady()
      }
      // The server may have ended the idle connection for a reason of its own.
      fixture.core.state.now += 1
      let (exchange, ending) = try fixture.exchange("DELETE")
      #expect(connection.start(exchange))
      if isNew { pipe.incoming = HTTP2TestConnection.bytes(of: .settings) }
      pipe.afterIncoming = .ended
      connection.pipeIsReady()
      fixture.core.exchanges.turn()
      #expect(pipe.isClosed && ending.outcome == nil && exchange.connection == nil)
      #expect(!Self.kinds(of: pipe.written).contains(HTTP2TestConnection.Kind.headers.rawValue))
    }
  }

  /// Bytes that are not frames of HTTP/2.
  private static let text = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)

  @Test(
    "A violation is the failure of a request although the connection ends at once", arguments: [false, true],
    [false, true])
  func violationBeforeEnd(wasIdle: Bool, hasGoAway: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      if wasIdle { fixture.core.state.now += 1 }
      let (exchange, ending) = try fixture.exchange()
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      #expect(Self.kinds(of: pipe.written).contains(HTTP2TestConnection.Kind.headers.rawValue))
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
      if hasGoAway {
        pipe.incoming += HTTP2TestConnection.bytes(of: .goAway, payload: [0, 0, 0, 1, 0, 0, 0, 0])
      }
      pipe.incoming += Self.text
      pipe.afterIncoming = .ended
      connection.pipeIsReady()
      let message = ending.failure?.message ?? "no failure"
      #expect(ending.failure?.kind == .badServerResponse, "\(message)")
      #expect(message.contains("a frame has a length that is not allowed"), "\(message)")
      #expect(Self.kinds(of: pipe.written).last == HTTP2TestConnection.Kind.goAway.rawValue)
      #expect(pipe.isClosed)
    }
  }

  @Test(
    "A violation before a request is sent is its failure, unless the connection was idle before",
    arguments: [false, true],
    [false, true])
  func violationBeforeRequest(wasIdle: Bool, ends: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      if wasIdle { fixture.core.state.now += 1 }
      let (exchange, ending) = try fixture.exchange("POST", Self.upload)
      #expect(connection.start(exchange))
      pipe.incoming = Self.text
      if ends { pipe.afterIncoming = .ended }
      connection.pipeIsReady()
      #expect(pipe.isClosed)
      #expect(!Self.kinds(of: pipe.written).contains(HTTP2TestConnection.Kind.headers.rawValue))
      if wasIdle {
        #expect(ending.outcome == nil && exchange.connection == nil, "it is sent on another connection")
        return
      }
      let message = ending.failure?.message ?? "no failure"
      #expect(ending.failure?.kind == .badServerResponse, "\(message)")
      #expect(message.contains("its first frame is not SETTINGS"), "\(message)")
      #expect(ending.failure?.metrics?.values.requestStart == -1, "no byte of it was sent")
    }
  }

  /// Returns the frames of a response whose head has a field of 70,000 bytes.
  private static func largeField(on stream: UInt32) -> [UInt8] {
    var rest = SessionPeer.block([(":status", "200"), ("x", String(repeating: "v", count: 70_000))])[...]
    var bytes: [UInt8] = []
    while !rest.isEmpty {
      let part = Array(rest.prefix(16_384))
      rest = rest.dropFirst(part.count)
      bytes += HTTP2TestConnection.bytes(
        of: bytes.isEmpty ? .headers : .continuation, flags: rest.isEmpty ? 0x4 : 0, stream: stream,
        payload: part)
    }
    return bytes
  }

  @Test("A field that is too large for nghttp2 fails its request, and not the others of a new connection")
  func largeField() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      let (large, largeEnding) = try fixture.exchange()
      let (get, getEnding) = try fixture.exchange(ticket: 2)
      let (post, postEnding) = try fixture.exchange("POST", Self.upload, ticket: 3)
      for exchange in [large, get, post] { #expect(connection.start(exchange)) }
      fixture.core.exchanges.turn()
      let (unsent, unsentEnding) = try fixture.exchange("POST", Self.upload, ticket: 4)
      #expect(connection.start(unsent))
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings) + Self.largeField(on: 1)
      connection.pipeIsReady()
      #expect(pipe.isClosed)
      let message = largeEnding.failure?.message ?? "no failure"
      #expect(largeEnding.failure?.kind == .dataLengthExceedsMaximum, "\(message)")
      #expect(message.contains("64 KiB") && message.contains("http1Only"), "\(message)")
      #expect(getEnding.outcome == nil && get.connection == nil, "it is sent on another connection")
      #expect(unsentEnding.outcome == nil && unsent.connection == nil, "it is sent on another connection")
      let other = postEnding.failure?.message ?? "no failure"
      #expect(postEnding.failure?.kind == .connectionLost, "\(other)")
      #expect(other.contains("another response") && other.contains("may have processed"), "\(other)")
    }
  }

  /// Returns the kinds of the frames of a client.
  private static func kinds(of bytes: [UInt8]) -> [UInt8] {
    var rest = bytes.dropFirst(24)
    var kinds: [UInt8] = []
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      kinds.append(head[3])
      rest = rest.dropFirst(9 + Int(head[0]) << 16 + Int(head[1]) << 8 + Int(head[2]))
    }
    return kinds
  }

  @Test("A stream that is free once its reset has left is used by an exchange that waits") func freedStream()
    async throws
  {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (upload, _) = try fixture.exchange("POST", .bytes(Data(count: 400_000)))
      fixture.pool.serve(upload)
      let maker = try #require(fixture.pool.pending.first)
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      // One stream, and windows of more than a megabyte.
      pipe.incoming =
        HTTP2TestConnection.bytes(of: .settings, payload: [0, 3, 0, 0, 0, 1, 0, 4, 0, 0x10, 0, 0])
        + HTTP2TestConnection.bytes(of: .windowUpdate, payload: [0, 0x10, 0, 0])
      pipe.room = 100
      maker.cancel()
      fixture.pool.opened(connection, by: maker)
      fixture.core.exchanges.turn()
      #expect(upload.phase == .running)
      let (next, _) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(next)
      fixture.core.exchanges.turn()
      connection.abandon(upload)
      fixture.core.exchanges.turn()
      #expect(fixture.pool.waiting.count == 1)
      pipe.room = .max
      connection.pipeIsReady()
      #expect(fixture.core.exchanges.isBusy, "the loop would sleep")
      fixture.core.exchanges.turn()
      #expect(next.phase == .running && fixture.pool.waiting.count == 0)
    }
  }

  @Test(
    "The head of a request is sent when the system has accepted it, although content of another one waits")
  func headBesideContent() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      // Windows of 16 megabytes.
      pipe.incoming =
        HTTP2TestConnection.bytes(of: .settings, payload: [0, 4, 1, 0, 0, 0])
        + HTTP2TestConnection.bytes(of: .windowUpdate, payload: [1, 0, 0, 0])
      pipe.room = 1_000
      let (upload, _) = try fixture.exchange("POST", .bytes(Data(count: 4 << 20)))
      #expect(connection.start(upload))
      fixture.core.exchanges.turn()
      let (plain, _) = try fixture.exchange(ticket: 2)
      let limits = TransportOptions.TimeLimits(firstByte: .seconds(1))
      plain.phaseTimer = PhaseTimer(try #require(PhaseLimits(limits)))
      #expect(connection.start(plain))
      fixture.core.exchanges.turn()
      #expect(pipe.written.count == 1_000 && plain.times.requestEnd == 0)
      // The head waits behind as much content as is encoded at a time.
      pipe.room = 200_000
      connection.pipeIsReady()
      #expect(pipe.written.count == 201_000 && upload.times.requestEnd == 0, "content is left")
      #expect(
        plain.times.requestEnd > 0, "the head does not count as sent before the content of another request")
      let expiry = plain.phaseTimer?.expiry ?? 0
      #expect(
        expiry >= plain.times.requestEnd + 1_000_000_000, "the response is awaited for too short a time")
      let (next, _) = try fixture.exchange(ticket: 3)
      #expect(connection.start(next) && next.mayFollowAnEnd)
    }
  }

  @Test(
    "The code of GOAWAY is the reason why a request has no response, also if the connection breaks",
    arguments: [true, false], [true, false])
  func codeOfGoAway(isBroken: Bool, hasBegun: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, "POST", Self.upload)
      if hasBegun { setup.receive(endsStream: false) }
      // The stream of the request is the last one, and the code is ENHANCE_YOUR_CALM.
      setup.pipe.incoming += HTTP2TestConnection.bytes(of: .goAway, payload: [0, 0, 0, 1, 0, 0, 0, 11])
      setup.pipe.afterIncoming = isBroken ? .failed(TransportFailure(.connectionLost, "It broke.")) : .ended
      setup.connection.pipeIsReady()
      let message = setup.ending.failure?.message ?? "no failure"
      #expect(setup.ending.failure?.kind == .connectionLost)
      #expect(message.contains("(ENHANCE_YOUR_CALM)") && !message.contains("https"), "\(message)")
      #expect(message.contains("may have processed") == !hasBegun, "\(message)")
    }
  }

  @Test("A server that speaks HTTP/2 is not taken for one of TLS", arguments: [true, false])
  func schemeAdvice(hasSettings: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      let (exchange, ending) = try fixture.exchange("POST", Self.upload)
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      if hasSettings { pipe.incoming = HTTP2TestConnection.bytes(of: .settings) }
      pipe.afterIncoming = .ended
      connection.pipeIsReady()
      let message = ending.failure?.message ?? "no failure"
      #expect(message.contains("without a response"), "\(message)")
      #expect(message.contains("then use https://") == !hasSettings, "\(message)")
    }
  }

  @Test("The reason of an end is kept for a request that was not sent") func reasonOfUnsent() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      pipe.room = 0
      let connection = try fixture.http2(pipe)
      let (exchange, ending) = try fixture.exchange("POST", Self.upload)
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      let refusal = TransportFailure(.clientCertificateRequired, "It asks for a client certificate.")
      pipe.afterIncoming = .failed(refusal)
      connection.pipeIsReady()
      #expect(ending.failure?.kind == .clientCertificateRequired, "\(ending.failure?.message ?? "none")")
    }
  }

  @Test("A stream that has ended is used by an exchange that waits, although its own exchange is held")
  func freedStreamOfHeldExchange() async throws {
    try await ConnectionFixture.run(connections: 1, { $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (held, heldEnding) = try fixture.exchange(observer: Watcher(disposition: .hold))
      fixture.pool.serve(held)
      let maker = try #require(fixture.pool.pending.first)
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      // One stream.
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings, payload: [0, 3, 0, 0, 0, 1])
      maker.cancel()
      fixture.pool.opened(connection, by: maker)
      fixture.core.exchanges.turn()
      let (next, _) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(next)
      fixture.core.exchanges.turn()
      #expect(held.phase == .running && fixture.pool.waiting.count == 1)
      #expect(!fixture.core.exchanges.isBusy, "nothing is left to do")
      pipe.incoming = HTTP2TestConnection.bytes(
        of: .headers, flags: 0x5, stream: 1, payload: SessionPeer.block([(":status", "200")]))
      connection.pipeIsReady()
      #expect(heldEnding.outcome == nil && connection.freeStreams == 1)
      #expect(fixture.core.exchanges.isBusy, "the loop would sleep")
      fixture.core.exchanges.turn()
      #expect(next.phase == .running && fixture.pool.waiting.count == 0)
      fixture.core.exchanges.resume(held)
      #expect(heldEnding.status == 200)
    }
  }
}
