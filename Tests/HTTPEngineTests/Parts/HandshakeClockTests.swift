import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("Time of handshakes of streams") struct HandshakeClockTests {
  private static func clock(
    idle: Duration? = nil, limit: Duration? = nil, timeToConnect: Duration? = nil,
    idleLimit: Duration? = nil
  ) throws -> HandshakeClock {
    let client = Client {
      $0.timeLimits.tlsHandshake = limit
      $0.timeLimits.idle = idleLimit
    }
    return HandshakeClock(
      try client.request("https://a.test/", idleTimeout: idle),
      timeToConnect: timeToConnect.map(Clock.nanoseconds))
  }

  @Test("The shortest limit counts, and its failure names it") func limits() throws {
    let cases: [(idle: Duration?, limit: Duration?, connect: Duration?, expiry: UInt64, text: String)] = [
      (.seconds(1), .seconds(2), .seconds(3), 1_000_000_000, "timeoutIntervalForRequest"),
      (.seconds(3), .seconds(2), .seconds(3), 2_000_000_000, "timeLimits.tlsHandshake"),
      (.seconds(3), .seconds(2), .seconds(1), 1_000_000_000, "raise the connect timeout"),
      (nil, nil, .seconds(1), 1_000_000_000, "raise the connect timeout"),
      (nil, .zero, nil, 0, "timeLimits.tlsHandshake"), (nil, nil, .zero, 0, "raise the connect timeout"),
    ]
    for (idle, limit, connect, expiry, text) in cases {
      var clock = try Self.clock(idle: idle, limit: limit, timeToConnect: connect)
      #expect(clock.expiry == .max)
      clock.start(7)
      #expect(clock.expiry == expiry + 7)
      let failure = clock.failure(of: "a.test")
      #expect(failure.kind == .timedOut && failure.phase == .tlsHandshake)
      #expect(failure.message.contains(text) && failure.helps(host: "a.test"), "\(failure.message)")
    }
  }

  @Test("The failure names the option that has set the idle timeout") func idleLimit() throws {
    let clock = try Self.clock(idle: .seconds(1), idleLimit: .seconds(1))
    let message = clock.failure(of: "a.test").message
    #expect(message.contains("(timeLimits.idle)"), "\(message)")
  }

  @Test("Without a limit a handshake has no end") func unlimited() throws {
    var clock = try Self.clock()
    clock.start(7)
    #expect(clock.expiry == .max)
    clock.pause(8)
    clock.resume(9)
    #expect(clock.expiry == .max)
  }

  @Test("The time of a decision does not count, and the rest continues after it") func decision() throws {
    var clock = try Self.clock(limit: .nanoseconds(10))
    clock.resume(1)
    clock.restart(1)
    #expect(clock.expiry == .max, "it has not started")
    clock.start(0)
    clock.pause(4)
    clock.pause(9)
    clock.restart(50)
    #expect(clock.expiry == .max)
    clock.resume(100)
    #expect(clock.expiry == 106)
    clock.restart(200)
    #expect(clock.expiry == 210)
    clock.pause(300)
    clock.resume(400)
    #expect(clock.expiry == 400, "no time is left")
    clock.start(.max - 1)
    #expect(clock.expiry == .max)
  }
}
