import HTTPWire
import Randomness
import Scenarios
import Testing

@Suite("Phase timers") struct PhaseTimerTests {
  private typealias Progress = PhaseTimer.Progress
  private static let unsent = Progress(isSent: false, hasResponse: false)
  private static let sent = Progress(isSent: true, hasResponse: false)
  private static let answered = Progress(isSent: true, hasResponse: true)

  /// Makes a timer with limits of 10, 20, 30, 40 and 50 nanoseconds.
  private func timer() throws -> PhaseTimer {
    let limits = TransportOptions.TimeLimits(
      nameLookup: .nanoseconds(10), connect: .nanoseconds(20), tlsHandshake: .nanoseconds(30),
      requestSend: .nanoseconds(40), firstByte: .nanoseconds(50))
    return PhaseTimer(try #require(PhaseLimits(limits)))
  }

  @Test("Options without limits of phases do not need a timer") func noLimits() {
    #expect(PhaseLimits(.init()) == nil)
    #expect(PhaseLimits(.init(idle: .seconds(1), total: .seconds(2))) == nil)
    #expect(PhaseLimits(.init(connect: .seconds(1)))?.connect == 1_000_000_000)
    #expect(PhaseLimits(.init(connect: .seconds(-1)))?.connect == 0)
    #expect(PhaseLimits(.init(connect: .seconds(Int64.max))) == nil)
  }

  @Test("Each phase has its own limit, from its own start") func phases() throws {
    var timer = try timer()
    timer.begin()
    #expect(timer.expiry == .max)
    timer.lookupBegan(100)
    #expect(timer.expiry == 110)
    var late = timer
    #expect(late.exceeded(109, Self.unsent) == nil)
    #expect(late.exceeded(110, Self.unsent) == .nameLookup)
    timer.connectionBegan(105)
    #expect(timer.expiry == 125)
    // Another address of the host.
    timer.connectionBegan(115)
    #expect(timer.expiry == 125)
    late = timer
    #expect(late.exceeded(125, Self.unsent) == .connect)
    timer.handshakeBegan(120)
    #expect(timer.expiry == 150)
    late = timer
    #expect(late.exceeded(150, Self.unsent) == .tlsHandshake)
    timer.requestBegan(130, hasBody: false)
    #expect(timer.expiry == 170)
    #expect(timer.exceeded(170, Self.sent) == nil)
    #expect(timer.expiry == 180)
    #expect(timer.exceeded(180, Self.sent) == .firstByte)
  }

  @Test(
    "The wait for a response begins when the last byte of the request has left", arguments: [false, true])
  func lateSending(isPaused: Bool) throws {
    var timer = try timer()
    timer.requestBegan(100, hasBody: false)
    if isPaused { timer.pause(115) }
    timer.requestSent(120)
    if isPaused { timer.resume(130) }
    // The limit of the wait is 50, and the pause does not count.
    #expect(timer.exceeded(160, Self.sent) == nil)
    #expect(timer.expiry == (isPaused ? 180 : 170))
    timer.requestSent(165)
    #expect(timer.expiry == (isPaused ? 180 : 170), "the wait has begun")
    #expect(timer.exceeded(timer.expiry, Self.sent) == .firstByte)
  }

  @Test("A request that is not sent in time is named, even if the library has all of it") func sending()
    throws
  {
    var timer = try timer()
    timer.requestBegan(100, hasBody: true)
    #expect(timer.expiry == 140)
    timer.bodyEnded(130)
    #expect(timer.expiry == 140)
    var late = timer
    #expect(late.exceeded(140, Self.unsent) == .requestSend)
    #expect(timer.exceeded(140, Self.sent) == nil)
    #expect(timer.expiry == 180)
    #expect(timer.exceeded(180, Self.sent) == .firstByte)
  }

  @Test("Without a limit of sending, the wait for the response begins with the last byte") func buffered()
    throws
  {
    var timer = PhaseTimer(try #require(PhaseLimits(.init(firstByte: .nanoseconds(50)))))
    timer.requestBegan(100, hasBody: true)
    #expect(timer.expiry == .max)
    timer.bodyEnded(200)
    #expect(timer.expiry == 250)
    // Some of the body is still in the buffer of the library.
    #expect(timer.exceeded(260, Self.unsent) == nil)
    #expect(timer.expiry == 310)
    #expect(timer.exceeded(310, Self.sent) == .firstByte)
  }

  @Test("After the first byte no phase has a limit") func response() throws {
    for hasBody in [false, true] {
      var timer = try timer()
      timer.requestBegan(100, hasBody: hasBody)
      #expect(timer.exceeded(140, Self.answered) == nil)
      #expect(timer.expiry == .max)
    }
  }

  @Test("Paused time does not count") func pause() throws {
    var timer = try timer()
    timer.connectionBegan(100)
    timer.pause(110)
    timer.pause(115)
    #expect(timer.expiry == .max)
    #expect(timer.exceeded(1000, Self.unsent) == nil)
    timer.resume(1010)
    timer.resume(1015)
    #expect(timer.expiry == 1020)
    timer.pause(1012)
    // The phase ends.
    timer.requestBegan(1050, hasBody: false)
    #expect(timer.expiry == .max)
    timer.resume(1100)
    #expect(timer.expiry == 1140)
  }

  @Test("A connection without a request is not followed by a phase") func connectionAlone() throws {
    var timer = PhaseTimer(try #require(PhaseLimits(.init(requestSend: .zero, firstByte: .zero))))
    timer.handshakeBegan(100)
    timer.connectionEnded(200)
    #expect(timer.expiry == .max && timer.overdue == nil)
  }

  @Test("A transfer that is repeated begins again") func repeated() throws {
    var timer = try timer()
    timer.requestBegan(100, hasBody: false)
    timer.begin()
    #expect(timer.expiry == .max)
    timer.connectionBegan(200)
    #expect(timer.expiry == 220)
  }

  @Test("A phase that has lasted too long exceeds its limit, also if it has ended meanwhile") func overdue()
    throws
  {
    let events: [(TransportOptions.TimeLimits.Phase, UInt64, (inout PhaseTimer, UInt64) -> Void)] = [
      (.nameLookup, 10, { $0.lookupBegan($1) }), (.connect, 20, { $0.connectionBegan($1) }),
      (.tlsHandshake, 30, { $0.handshakeBegan($1) }),
    ]
    for (phase, limit, begin) in events {
      for time in [limit - 1, limit, limit + 1000] {
        var timer = try timer()
        timer.begin()
        begin(&timer, 100)
        timer.requestBegan(100 + time, hasBody: false)
        #expect(timer.overdue == (time < limit ? nil : phase))
        #expect(timer.exceeded(100 + time, Self.answered) == timer.overdue)
        timer.begin()
        #expect(timer.overdue == nil && timer.expiry == .max)
      }
    }
  }

  @Test(
    "A limit of zero is exceeded when its phase begins",
    arguments: [Duration.zero, .seconds(-1)])
  func zero(limit: Duration) throws {
    try expect(.nameLookup, .init(nameLookup: limit))
    try expect(.connect, .init(connect: limit))
    try expect(.tlsHandshake, .init(tlsHandshake: limit))
    try expect(.requestSend, .init(requestSend: limit))
    try expect(.firstByte, .init(firstByte: limit))
  }

  /// Expects that a transfer exceeds a limit of zero even if its phases take no time.
  private func expect(
    _ phase: TransportOptions.TimeLimits.Phase, _ limits: TransportOptions.TimeLimits
  ) throws {
    let parts = try #require(PhaseLimits(limits))
    for hasBody in [false, true] {
      var timer = PhaseTimer(parts)
      timer.begin()
      #expect(timer.expiry == .max)
      timer.lookupBegan(100)
      timer.connectionBegan(100)
      timer.handshakeBegan(100)
      timer.requestBegan(100, hasBody: hasBody)
      timer.bodyEnded(100)
      #expect(timer.expiry == 0)
      #expect(timer.exceeded(100, Self.answered) == phase)
      // A reused connection has no other phases.
      timer.begin()
      timer.requestBegan(200, hasBody: hasBody)
      timer.bodyEnded(200)
      #expect(timer.overdue == (phase == .requestSend || phase == .firstByte ? phase : nil))
    }
  }

  @Test("In random sequences no limit is exceeded early, and a look postpones the next one", .steps)
  func walk()
    throws
  {
    var random = SeededGenerator(seed: 7)
    for number in 0..<2000 {
      step("walk \(number)")
      var timer = try timer()
      var now: UInt64 = 1000
      var entered = now
      var isConnecting = false
      var isOverdue = false
      for _ in 0..<20 {
        now += UInt64.random(in: 0..<30, using: &random)
        let event = Int.random(in: 0..<9, using: &random)
        if [0, 2, 3, 7].contains(event) || (event == 1 && !isConnecting) {
          isOverdue = event != 7 && (isOverdue || now >= entered + 10)
          entered = now
        }
        if [0, 1, 2, 3, 7].contains(event) { isConnecting = event == 1 }
        switch event {
        case 0: timer.lookupBegan(now)
        case 1: timer.connectionBegan(now)
        case 2: timer.handshakeBegan(now)
        case 3: timer.requestBegan(now, hasBody: Bool.random(using: &random))
        case 4: timer.bodyEnded(now)
        case 5: timer.pause(now)
        case 6: timer.resume(now)
        case 7: timer.begin()
        default:
          let progress = Progress(
            isSent: Bool.random(using: &random), hasResponse: Bool.random(using: &random))
          if timer.exceeded(now, progress) != nil {
            #expect(isOverdue || now >= entered + 10)
            timer.begin()
            (entered, isConnecting, isOverdue) = (now, false, false)
          }
          #expect(timer.expiry > now)
        }
      }
    }
  }

  @Test("The message names phase, limit and host", arguments: TransportOptions.TimeLimits.Phase.allCases)
  func message(phase: TransportOptions.TimeLimits.Phase) {
    let message = phase.message(host: "a.example", limit: .milliseconds(1500))
    #expect(message.contains("a.example"))
    #expect(message.contains("1.5 seconds"))
    #expect(message.contains("timeLimits.\(phase)"))
    #expect(!message.contains("silent"))
  }
}
