import HTTPWire
import Synchronization
import Testing

@testable import HTTPEngine

/// Ages on a machine that sleeps: its monotonic clock stands still, and other machines go on.
@Suite("The sleep of the machine", .timeLimit(.minutes(1))) struct SleepTests {
  private static let second: UInt64 = 1_000_000_000

  /// Begins a turn of a loop after the machine has slept.
  private static func wake(_ state: LoopState, after seconds: UInt64) {
    state.sinceBoot = { Clock.sinceBoot() + seconds * Self.second }
    state.begin(at: state.now + SleepMeter.shortestSleep)
  }

  @Test("The meter counts by how much the monotonic clock falls behind, and never falls") func meter() {
    let second = Self.second
    var meter = SleepMeter(now: 5 * second, sinceBoot: 100 * second)
    for (now, sinceBoot, slept) in [
      (6, 101, 0), (8, 163, 60), (9, 164, 60), (9, 50, 60), (.max, 0, 60), (10, 265, 160),
    ] as [(UInt64, UInt64, UInt64)] {
      meter.note(now: now &* second, sinceBoot: sinceBoot * second)
      #expect(meter.time == slept * second, "\(now)")
    }
    meter.note(now: 10 * second, sinceBoot: 266 * second - 1)
    #expect(meter.time == 160 * second, "less than a second may have passed between two readings")
  }

  @Test("A busy loop reads one clock, and an idle one reads both") func busyLoop() {
    let state = LoopState()
    let sinceBoot = Clock.sinceBoot() + 60 * Self.second
    var readings = 0
    state.sinceBoot = {
      readings += 1
      return sinceBoot
    }
    for _ in 0..<1_000 { state.begin(at: state.now + SleepMeter.shortestSleep - 1) }
    #expect(readings == 0 && state.elapsed == state.now)
    state.begin(at: state.now + SleepMeter.shortestSleep)
    #expect(readings == 1 && state.elapsed - state.now >= 30 * Self.second)
    #expect(state.monotonic(state.elapsed) == state.now && state.monotonic(.max) == .max)
    #expect(state.monotonic(1) == 0)
  }

  @Test(
    "A connection is not used after the machine has slept longer than its server keeps it",
    arguments: [UInt64(2), 60])
  func idleConnection(seconds: UInt64) async throws {
    try await ConnectionFixture.run { fixture in
      let (first, ending) = try fixture.exchange()
      fixture.pool.serve(first)
      let pipe = MemoryPipe()
      let connection = try fixture.open(pipe)
      pipe.incoming = Array(
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 0\r\n\r\n".utf8
      )
      connection.pipeIsReady()
      connection.settle()
      #expect(ending.status == 200 && fixture.pool.idle.count == 1)
      Self.wake(fixture.core.state, after: seconds)
      let isTooOld = seconds > 5
      #expect(
        (fixture.core.exchanges.idleExpiry <= fixture.core.now) == isTooOld, "the loop wakes to close it")
      let (next, _) = try fixture.exchange(ticket: 2)
      fixture.pool.serve(next)
      #expect(pipe.isClosed == isTooOld && fixture.pool.pending.count == (isTooOld ? 1 : 0))
    }
  }

  @Test("A time limit does not run while the machine sleeps") func timeLimits() async throws {
    try await ConnectionFixture.run({ $0.connectTimeout = .seconds(60) }) { fixture in
      fixture.pool.serve(try fixture.exchange().0)
      Self.wake(fixture.core.state, after: 3_600)
      #expect(try #require(fixture.pool.pending.first).expiry > fixture.core.now)
    }
  }

  @Test("The addresses of a name expire while the machine sleeps") func addresses() async throws {
    try await ConnectionFixture.run { fixture in
      let core = fixture.core
      let address = try #require(IPAddress.loopback4)
      core.resolver.finished("kept.invalid", .success([address]), core.elapsed)
      Self.wake(core.state, after: 30)
      #expect(core.resolver.knownAddresses(of: "kept.invalid", core.elapsed) == [address])
      Self.wake(core.state, after: 62)
      #expect(core.resolver.knownAddresses(of: "kept.invalid", core.elapsed) == nil)
    }
  }

  @Test("The answer of a name service expires while the machine sleeps") func answers() async throws {
    let time = Mutex<UInt64>(5 * Self.second)
    let cache = NameCache { time.withLock { $0 } }
    let client = Client { $0.nameServiceURL = "https://dns.test/" }
    let service = try #require(NameServiceRoute(client.profile))
    let question = NameCache.Question(
      key: .init(service: service, partition: 0, name: "a.test", addressFamily: .any),
      profile: ObjectIdentifier(client.profile), idleTimeout: nil)
    let count = Mutex(0)
    for (passed, expected) in [(UInt64(0), 1), (299, 1), (1, 2)] {
      time.withLock { $0 += passed * Self.second }
      _ = await cache.addresses(question, until: nil, on: client.transport.loop) {
        count.withLock { $0 += 1 }
        return .success(NameCache.Found(addresses: [], seconds: 300))
      }
      #expect(count.withLock { $0 } == expected, "\(passed) seconds later")
    }
  }
}
