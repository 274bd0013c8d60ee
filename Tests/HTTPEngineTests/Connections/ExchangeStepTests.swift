import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Times and bodies of an exchange on a connection in memory, with a clock that the test sets.
@Suite("Steps of an exchange", .timeLimit(.minutes(1)))
struct ExchangeStepTests {
  private static func response(_ fields: String, _ body: String = "") -> [UInt8] {
    Array("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n\(body)".utf8)
  }

  // MARK: Discarded bodies

  @Test("The loss of a discarded body is not a failure") func lostBody() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let (exchange, ending) = try fixture.exchange(observer: Watcher(disposition: .discard))
      pipe.incoming = Self.response("Content-Length: 10", "part")
      connection.start(exchange)
      #expect(ending.outcome == nil, "the rest is short, so it is read")
      pipe.afterIncoming = .ended
      connection.pipeIsReady()
      #expect(ending.status == 200 && pipe.isClosed)
    }
  }

  @Test("The time for a discarded body is limited") func dropLimit() async throws {
    try await ConnectionFixture.run { fixture in
      let connection = fixture.http1(MemoryPipe())
      let pipe = try #require(connection.pipe as? MemoryPipe)
      let (exchange, _) = try fixture.exchange(observer: Watcher(disposition: .discard))
      pipe.incoming = Self.response("Content-Length: 10", "part")
      connection.start(exchange)
      #expect(exchange.expiry == fixture.core.now + DroppedBody.patience)
    }
  }

  @Test("A discarded body is not read while the request is still being sent") func dropWithinUpload()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let source = ScriptedSource(.bytes([1, 2, 3]), .wait)
      let (exchange, ending) = try fixture.exchange(
        "POST", .source(source), observer: Watcher(disposition: .discard))
      connection.start(exchange)
      pipe.incoming = Self.response("Content-Length: 10")
      connection.pipeIsReady()
      #expect(ending.status == 200 && pipe.isClosed, "the connection could not be used again")
    }
  }

  // MARK: Repeats

  @Test(
    "The metrics say whether an earlier attempt may have reached the server",
    arguments: [RepeatDecision.Evidence.unknown, .refused])
  func earlierAttempt(evidence: RepeatDecision.Evidence) async throws {
    try await ConnectionFixture.run { fixture in
      let (exchange, ending) = try fixture.exchange()
      exchange.mayFollowAnEnd = true
      #expect(exchange.metrics()?.values.mayHaveArrived == false)
      fixture.core.exchanges.lost(exchange, TransportFailure(.connectionLost, "lost"), evidence)
      #expect(exchange.phase == .connecting && ending.outcome == nil)
      fixture.core.exchanges.abandon(exchange, TransportFailure(.cannotConnectToHost, "No connection."))
      let values = try #require(ending.failure?.metrics?.values)
      #expect(values.requestStart == -1 && values.mayHaveArrived == (evidence == .unknown))
    }
  }

  @Test("A repeated request sends its content, while the trailers of its first sending are still being made")
  func lateTrailers() async throws {
    try await ConnectionFixture.run { fixture in
      let (exchange, _) = try fixture.exchange(
        "PUT", .bytes(Data("content".utf8)), trailers: RequestTrailers(names: ["X-Sum"]) { _ in })
      let pipes = [MemoryPipe(), MemoryPipe()]
      let connection = fixture.http1(pipes[0])
      connection.start(exchange)
      exchange.mayFollowAnEnd = true
      pipes[0].afterIncoming = .ended
      connection.pipeIsReady()
      _ = try fixture.open(pipes[1], for: exchange.pool)
      for pipe in pipes {
        let text = String(decoding: pipe.written, as: UTF8.self)
        #expect(text.hasPrefix("PUT / ") && text.contains("content"), "\(text)")
      }
    }
  }

  // MARK: Times

  @Test("The limits of the phases start over with each round of a login") func phasesOfRounds() async throws {
    try await ConnectionFixture.run({ $0.timeLimits.requestSend = .seconds(2) }) { fixture in
      let (exchange, _) = try fixture.exchange()
      fixture.http1(MemoryPipe()).start(exchange)
      // A response asks for a token, which is being generated.
      exchange.restart()
      fixture.core.state.now = Clock.now(plus: .seconds(3))
      let failure = exchange.timeout()
      #expect(failure == nil, "\(failure?.message ?? "")")
    }
  }

  @Test("A final response ends the wait for the response 100") func finalResponse() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let (exchange, ending) = try fixture.exchange(
        "POST", .bytes(Data([1, 2, 3])), fields: [HTTPHeader(name: "Expect", value: "100-continue")])
      connection.start(exchange)
      #expect(exchange.continueTime < .max && !pipe.written.contains(1))
      pipe.incoming = Self.response("Content-Length: 10", "part")
      connection.pipeIsReady()
      #expect(exchange.continueTime == .max && exchange.expiry == .max && ending.outcome == nil)
    }
  }

  @Test("The wait for the response 100 lasts a second") func continueTimeout() async throws {
    try await ConnectionFixture.run { fixture in
      let connection = fixture.http1(MemoryPipe())
      let (exchange, _) = try fixture.exchange(
        "POST", .bytes(Data([1])), fields: [HTTPHeader(name: "Expect", value: "100-continue")])
      let start = Clock.now()
      connection.start(exchange)
      #expect((start...Clock.now()).contains(exchange.continueTime - 1_000_000_000))
      #expect(fixture.core.exchanges.expiry <= exchange.continueTime, "the loop would sleep on")
    }
  }

  @Test("A response begins with the first byte of an informational one") func responseStart() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let (exchange, ending) = try fixture.exchange()
      connection.start(exchange)
      #expect(exchange.times.responseStart == 0)
      pipe.incoming = Array("HTTP/1.1 103 Early Hints\r\n\r\n".utf8)
      connection.pipeIsReady()
      let start = exchange.times.responseStart
      #expect(start > 0)
      pipe.incoming = Self.response("Content-Length: 10", "part")
      connection.pipeIsReady()
      #expect(exchange.times.responseStart == start && ending.outcome == nil)
    }
  }

  @Test("A connection is used no longer than its server has announced") func announcedIdleTime() async throws
  {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      #expect(connection.idleLimit == fixture.core.now + 118_000_000_000)
      pipe.incoming = Self.response(
        "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 0")
      connection.start(try fixture.exchange().0)
      connection.settle()
      #expect(fixture.pool.idle.count == 1)
      #expect(connection.idleLimit == fixture.core.now + 4_000_000_000)
      #expect(fixture.pool.sweep() == connection.idleLimit)
      fixture.core.state.now += 4_000_000_000
      #expect(fixture.pool.sweep() == .max)
      #expect(pipe.isClosed && fixture.pool.idle.isEmpty)
    }
  }

  @Test("A request is not timed out while all connections are in use") func waitForConnection() async throws {
    try await ConnectionFixture.run(connections: 1) { fixture in
      fixture.pool.serve(try fixture.exchange().0)
      let connection = try fixture.open(MemoryPipe())
      let (second, _) = try fixture.exchange(ticket: 2, idleTimeout: .seconds(1))
      fixture.pool.serve(second)
      fixture.core.state.now += 60_000_000_000
      #expect(second.expiry == .max && second.timeout() == nil)
      // From now on the host has to answer. The new connection reads the clock itself.
      fixture.core.state.now = Clock.now()
      connection.close()
      fixture.core.exchanges.turn()
      #expect(fixture.pool.pending.count == 1)
      #expect(second.expiry == fixture.core.now + 1_000_000_000)
      fixture.core.state.now += 1_000_000_000
      #expect(second.timeout()?.phase == .idle)
    }
  }

  @Test("A suspended exchange is not timed out") func suspended() async throws {
    try await ConnectionFixture.run { fixture in
      let connection = fixture.http1(MemoryPipe())
      let (exchange, _) = try fixture.exchange(idleTimeout: .seconds(1))
      connection.start(exchange)
      fixture.core.state.now += 10_000_000_000
      #expect(exchange.timeout()?.phase == .idle)
      exchange.flow.suspend()
      #expect(exchange.timeout() == nil && exchange.expiry == .max)
    }
  }

  @Test("The time for which a source has no bytes does not count for a phase") func waitingSource()
    async throws
  {
    try await ConnectionFixture.run({ $0.timeLimits.requestSend = .seconds(10) }) { fixture in
      let connection = fixture.http1(MemoryPipe())
      let source = ScriptedSource(.bytes([1, 2, 3]), .wait, .bytes([4]))
      let (exchange, _) = try fixture.exchange("POST", .source(source))
      connection.start(exchange)
      #expect(exchange.phaseTimer?.expiry == .max, "the timer runs while the source has no bytes")
      exchange.flow.proceed()
      exchange.alignPhaseTimer()
      #expect(exchange.phaseTimer.map { $0.expiry < .max } == true)
    }
  }

  @Test("Each piece that is sent is activity") func activity() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      let (exchange, _) = try fixture.exchange(
        "POST", .bytes(Data(repeating: 1, count: 100_000)), idleTimeout: .seconds(1))
      pipe.room = 50_000
      connection.start(exchange)
      fixture.core.state.now += 900_000_000
      pipe.room = 20_000
      connection.pipeIsReady()
      #expect(exchange.expiry == fixture.core.now + 1_000_000_000)
    }
  }

  @Test("A complete response is delivered, although its server does not take the rest of the request")
  func answeredUpload() async throws {
    try await ConnectionFixture.run { fixture in
      let table = fixture.core.exchanges
      defer { table.failAll(LoopExchanges.cancelled) }
      let (exchange, ending) = try fixture.submit(
        "POST", .bytes(Data(repeating: 1, count: 100_000)), idleTimeout: .seconds(1))
      let pipe = MemoryPipe()
      pipe.room = 50_000
      let connection = try fixture.open(pipe, for: exchange.pool)
      pipe.incoming = Self.response("Content-Length: 2", "ok")
      connection.pipeIsReady()
      #expect(ending.outcome == nil, "the server may read the rest")
      fixture.core.state.now += 600_000_000
      pipe.incoming = Array("more".utf8)
      connection.pipeIsReady()
      fixture.core.state.now += 600_000_000
      table.turn()
      #expect(ending.status == 200 && ending.text == "ok" && pipe.isClosed)
    }
  }

  @Test("The time of a suspension counts for no limit") func suspension() async throws {
    try await ConnectionFixture.run({ $0.timeLimits.firstByte = .seconds(10) }) { fixture in
      let connection = fixture.http1(MemoryPipe())
      let (exchange, _) = try fixture.exchange(idleTimeout: .seconds(1))
      connection.start(exchange)
      #expect(exchange.phaseTimer.map { $0.expiry < .max } == true)
      fixture.core.exchanges.suspend(exchange)
      #expect(exchange.phaseTimer?.expiry == .max)
      fixture.core.state.now += 5_000_000_000
      fixture.core.exchanges.resume(exchange)
      #expect(exchange.phaseTimer.map { $0.expiry < .max } == true)
      #expect(exchange.timeout() == nil && exchange.expiry == fixture.core.now + 1_000_000_000)
    }
  }

  @Test("The loop wakes for the limits of connecting and of idle connections") func wakeUps() async throws {
    try await ConnectionFixture.run({ $0.connectTimeout = .seconds(60) }) { fixture in
      let exchanges = fixture.core.exchanges
      #expect(exchanges.expiry == .max)
      fixture.pool.serve(try fixture.exchange().0)
      #expect(exchanges.expiry < .max, "the connection has a limit")
    }
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = fixture.http1(pipe)
      pipe.incoming = Self.response("Content-Length: 0")
      connection.start(try fixture.exchange().0)
      connection.settle()
      #expect(fixture.core.exchanges.expiry == connection.idleLimit)
    }
  }

  @Test("The time in the queue of a host is not its silence") func queueTime() async throws {
    try await ConnectionFixture.run({ $0.httpVersions = .http2PriorKnowledge }) { fixture in
      let (first, _) = try fixture.exchange()
      let (second, _) = try fixture.exchange(ticket: 2, idleTimeout: .seconds(1))
      fixture.core.exchanges.start(first)
      fixture.core.state.now += 5_000_000_000
      // It waits for the connection of the first one.
      fixture.core.exchanges.start(second)
      #expect(second.pool === first.pool && second.pool?.pending.count == 1)
      #expect(second.timeout() == nil && second.expiry == fixture.core.now + 1_000_000_000)
    }
  }

  @Test("The idle limit of a question to a name service is a limit of its answer", arguments: [false, true])
  func answerLimit(isQuestion: Bool) async throws {
    try await ConnectionFixture.run({ $0.sessionBandwidth.upload = 1_000_000 }) { fixture in
      let pipe = MemoryPipe()
      let (exchange, _) = try fixture.exchange(
        "POST", .bytes(Data([1, 2, 3])), idleTimeout: .seconds(1), isQuestion: isQuestion)
      #expect((exchange.bandwidth == nil) == isQuestion, "a question waits for no bandwidth")
      fixture.core.state.now = Clock.now()
      let connection = fixture.http1(pipe)
      connection.start(exchange)
      exchange.phase = .running
      fixture.core.exchanges.turn()
      let limit = exchange.times.requestStart + 1_000_000_000
      fixture.core.state.now = limit - 1
      pipe.incoming = Array("HTTP/1.1 200 OK\r\n".utf8)
      connection.pipeIsReady()
      #expect(exchange.times.responseStart > 0)
      #expect(exchange.expiry == (isQuestion ? limit : limit + 999_999_999))
      #expect(exchange.timeout() == nil)
      fixture.core.state.now = limit
      let failure = exchange.timeout()
      #expect((failure != nil) == isQuestion)
      if isQuestion { #expect(failure?.message.contains("did not answer within 1.0 seconds") == true) }
    }
  }
}
