import HTTPEngine
import HTTPWire
import Testing

@Suite struct TransferTimingTests {
  private static let running = TransferPhase.running(sharesConnection: false)

  @Test("Idle timeout and deadline limit a running transfer") func runningTransfer() {
    var timing = TransferTiming(now: 100, idleLimit: 50, deadline: 170)
    #expect(timing.expiry(Self.running, .moving) == 150)
    timing.lastActivity = 140
    #expect(timing.expiry(Self.running, .moving) == 170)
  }

  @Test(
    "Only the deadline limits a stopped transfer",
    arguments: [
      ByteFlow.stopping, .stopped(.suspended), .stopped(.sinkFull), .stopped(.sourceEmpty),
      .stopped(.throttled),
    ])
  func stopped(flow: ByteFlow) {
    let timing = TransferTiming(now: 100, idleLimit: 50, deadline: 170)
    #expect(timing.expiry(Self.running, flow) == 170)
  }

  @Test(
    "Only the deadline limits a transfer that has not started", arguments: [TransferPhase.withheld, .waiting])
  func unstarted(phase: TransferPhase) {
    let timing = TransferTiming(now: 100, idleLimit: 50, deadline: 170)
    #expect(timing.expiry(phase, .moving) == 170)
  }

  @Test("A transfer without limits never expires") func noLimits() {
    #expect(TransferTiming(now: 100).expiry(Self.running, .moving) == .max)
    #expect(TransferTiming(now: .max - 1, idleLimit: 50).expiry(Self.running, .moving) == .max)
  }
}

@Suite struct ConnectionSetupTests {
  @Test("The first handshake on a socket is that of the proxy") func firstHandshake() {
    var setup = ConnectionSetup()
    setup.socketOpened(3)
    #expect(setup.nextHandshakeIsOfProxy(.https))
    #expect(!setup.lastHandshakeIsOfProxy(.https))
    setup.handshakeBegan()
    #expect(!setup.nextHandshakeIsOfProxy(.https))
    #expect(setup.lastHandshakeIsOfProxy(.https))
    setup.handshakeBegan()
    #expect(!setup.lastHandshakeIsOfProxy(.https))
  }

  @Test("A proxy without TLS has no handshake", arguments: [ProxyServer.Kind.http, .socks5, nil])
  func plainProxy(kind: ProxyServer.Kind?) {
    var setup = ConnectionSetup()
    #expect(!setup.nextHandshakeIsOfProxy(kind))
    setup.handshakeBegan()
    #expect(!setup.lastHandshakeIsOfProxy(kind))
  }

  @Test("Another socket starts with the proxy again") func otherSocket() {
    var setup = ConnectionSetup()
    setup.socketOpened(3)
    setup.handshakeBegan()
    setup.socketOpened(4)
    #expect(setup.nextHandshakeIsOfProxy(.https))
    #expect(setup.sockets == [3, 4])
    setup.proxySession = OpaquePointer(bitPattern: 8)
    setup.restart()
    #expect(setup.sockets.isEmpty)
    #expect(setup.proxySession == nil)
  }
}

@Suite struct LoginExchangeTests {
  private static func responseBegins(_ exchange: inout LoginExchange, at line: String) -> Bool {
    Array(line.utf8).withUnsafeBytes { exchange.responseBegins(at: $0) }
  }

  @Test("Only responses that libcurl answers are intermediate") func intermediateResponses() {
    func isIntermediate(_ status: Int, login: Bool = false, proxy: Bool = false, expect: Bool = false) -> Bool
    {
      LoginExchange.isIntermediate(
        status, hasLogin: login, negotiatesWithProxy: proxy, expectsContinue: expect)
    }
    #expect(isIntermediate(401, login: true) && !isIntermediate(401, proxy: true, expect: true))
    #expect(isIntermediate(407, proxy: true) && !isIntermediate(407, login: true, expect: true))
    #expect(isIntermediate(417, expect: true) && !isIntermediate(417, login: true, proxy: true))
    #expect(!isIntermediate(200, login: true, proxy: true, expect: true))
  }

  @Test("The head of the last step is released once") func lastStep() {
    var exchange = LoginExchange()
    #expect(!exchange.isHolding)
    exchange.hold(ResponseHead(status: 401))
    #expect(exchange.isHolding && exchange.awaitsNextRequest)
    #expect(exchange.release()?.status == 401)
    #expect(!exchange.isHolding)
    #expect(exchange.release() == nil)
  }

  @Test("libcurl may send one request for each held head") func heldHeads() {
    var exchange = LoginExchange()
    #expect(exchange.requestBegins() == false)
    exchange.hold(ResponseHead(status: 401))
    #expect(exchange.requestBegins() == true)
    #expect(exchange.isHolding, "the next request has no response yet")
    #expect(exchange.requestBegins() == false)
  }

  @Test("A status line replaces the held head") func statusLine() {
    var exchange = LoginExchange()
    #expect(Self.responseBegins(&exchange, at: "HTTP/1.1 200 OK\r\n") == false)
    exchange.hold(ResponseHead(status: 401))
    #expect(Self.responseBegins(&exchange, at: "Trailer: 1\r\n") == false)
    #expect(Self.responseBegins(&exchange, at: "HTTP/1.1 200 OK\r\n") == true)
    #expect(!exchange.isHolding)
  }

  @Test("An endless exchange exceeds the limit") func endlessExchange() {
    var exchange = LoginExchange()
    var steps = 0
    while !exchange.isTooLong, steps < 100 {
      exchange.hold(ResponseHead(status: 401))
      steps += 1
    }
    #expect(steps == 7)
  }
}

@Suite struct BodyDestinationTests {
  @Test("A body without a sink is stored in memory", arguments: [HeadDisposition.proceed, .hold])
  func noSink(disposition: HeadDisposition) {
    guard case .memory = BodyDestination(sink: nil, disposition) else {
      Issue.record("the body is not kept in memory")
      return
    }
  }

  @Test("A sink receives the body unless it is discarded") func sink() {
    let sink = CountingSink(room: 1)
    for disposition in [HeadDisposition.proceed, .hold] {
      guard case .sink(let chosen) = BodyDestination(sink: sink, disposition) else {
        Issue.record("the sink does not get the body")
        continue
      }
      #expect(chosen === sink)
    }
    #expect(BodyDestination(sink: sink, .discard).isDiscarded)
    #expect(BodyDestination(sink: nil, .discard).isDiscarded)
  }
}
