import Alamofire
import Foundation
import HTTPTestServer
import HTTPWire
import Randomness
import Synchronization
import Testing

/// Random concurrent operations on requests. Every handler is called once, everything awaited returns, and every object
/// is released.
@Suite("Random concurrent operations on requests", .timeLimit(.minutes(5)), .serialized)
struct RandomRequestOperationTests {

  /// The number of seeds. For a search, `ALAMOFIRE_TEST_WALKS=500` sets more than usual.
  private static let walks =
    ProcessInfo.processInfo.environment["ALAMOFIRE_TEST_WALKS"].flatMap { UInt64($0) } ?? 20

  @Test("Invariants hold with a fake transport", arguments: 0..<Self.walks)
  func fake(seed: UInt64) async {
    let replies = RandomReplies(seed: seed)
    await check(
      seed, RandomRequestOperations.Size(), url: { "http://a.test/\($0.next() % 3)" },
      beforeTheEnd: replies.openGates
    ) { random, interceptor, monitors in
      Session(
        fake: FakeTransport(isDirect: random.next() % 3 > 0, sometimesBeginsLater: true) {
          _, index in replies.reply(index)
        },
        startRequestsImmediately: random.next() % 4 > 0,
        requestSetup: random.next() % 3 == 0 ? .eager : .lazy,
        serializationQueue: random.next() % 3 == 0 ? DispatchQueue(label: "serialization") : nil,
        interceptor: random.next() % 3 > 0 ? interceptor : nil,
        observers: SessionObservers(eventMonitors: monitors))
    }
  }

  private static let paths = [
    "/bytes/70000", "/stream-bytes/5000", "/status/500", "/redirect/2", "/anything/a", "/stream/20",
    "/delay/0",
    "/post",
  ]

  @Test("Invariants hold with the engine", arguments: 0..<max(4, Self.walks / 5))
  func engine(seed: UInt64) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.reset, .resetAfterBody(bytes: 100))
    let size = RandomRequestOperations.Size(requests: 8, threads: 4, steps: 12)
    await check(seed, size, url: { server.url(Self.paths.randomElement(using: &$0) ?? "/get") }) {
      random, interceptor, monitors in
      Session(
        startRequestsImmediately: random.next() % 4 > 0,
        requestSetup: random.next() % 3 == 0 ? .eager : .lazy,
        interceptor: random.next() % 3 > 0 ? interceptor : nil, eventMonitors: monitors)
    }
  }

  private func check(
    _ seed: UInt64, _ size: RandomRequestOperations.Size, url: (inout SeededGenerator) -> String,
    beforeTheEnd: () -> Void = {},
    make: (inout SeededGenerator, any RequestInterceptor, [any EventMonitor]) -> Session
  ) async {
    let walk = RandomRequestOperations(seed: seed, size: size, url: url, make: make)
    await walk.run(seed: seed, size: size)
    beforeTheEnd()
    await walk.counter.isSettled()
    #expect(walk.counter.broken == [])
    let traces = walk.traces
    walk.release()
    #expect(await eventually { traces.allSatisfy(\.isGone) }, "left: \(traces.compactMap(\.left))")
    #expect(walk.counter.broken == [], "something was called again")
    if !walk.wasReleased { #expect(walk.spy.endsBeforeBeginnings == 0) }
  }
}

/// Replies that follow from a seed. Some of them wait at a gate.
private final class RandomReplies: Sendable {
  private struct Gates {
    var areOpen = false
    var closed: [Latch] = []
  }

  private let seed: UInt64
  private let gates = Mutex(Gates())

  init(seed: UInt64) {
    self.seed = seed
  }

  func reply(_ index: Int) -> FakeReply {
    var random = SeededGenerator(seed: seed &* 31 &+ UInt64(index))
    let reply: FakeReply =
      switch random.next() % 8 {
      case 0: .json("[1, 2]")
      case 1: .status(500, "no")
      case 2: .failure(.timedOut)
      case 3: .redirect(302, to: "/elsewhere")
      case 4: .chunks(["one", "two", "three"], failure: .connectionLost)
      case 5: .chunks((0..<20).map { "\($0)," })
      default: .text("a text")
      }
    return random.next() % 3 == 0 ? held(reply) : reply
  }

  private func held(_ reply: FakeReply) -> FakeReply {
    let gate = Latch()
    let (areOpen, other) = gates.withLock { gates in
      if !gates.areOpen { gates.closed.append(gate) }
      // If more than three gates are closed, the oldest one is opened.
      return (gates.areOpen, gates.closed.count > 3 ? gates.closed.removeFirst() : nil)
    }
    other?.open()
    return areOpen ? reply : reply.held(by: gate)
  }

  func openGates() {
    let closed = gates.withLock { gates in
      gates.areOpen = true
      defer { gates.closed = [] }
      return gates.closed
    }
    for gate in closed { gate.open() }
  }
}
