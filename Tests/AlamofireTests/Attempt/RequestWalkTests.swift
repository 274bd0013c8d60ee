import Alamofire
import Foundation
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Everything that users can do to requests, at random and at the same time, against what must always hold:
/// every handler is called once, everything awaited returns, and nothing is left.
@Suite("Many threads and few requests, at random", .timeLimit(.minutes(5)), .serialized)
struct RequestWalkTests {
  typealias Dice = RequestWalk.Dice

  /// More seeds than usual, for a search: `ALAMOFIRE_TEST_WALKS=500`.
  private static let walks =
    ProcessInfo.processInfo.environment["ALAMOFIRE_TEST_WALKS"].flatMap { UInt64($0) } ?? 20

  @Test("Without a network", arguments: 0..<Self.walks)
  func fake(seed: UInt64) async {
    let replies = RandomReplies(seed: seed)
    await check(
      seed, RequestWalk.Size(), url: { "http://a.test/\($0.next() % 3)" }, beforeTheEnd: replies.openGates
    ) { dice, interceptor, monitors in
      Session(
        fake: FakeTransport(isDirect: dice.next() % 3 > 0, isMoody: true) {
          _, index in replies.reply(index)
        },
        startRequestsImmediately: dice.next() % 4 > 0,
        requestSetup: dice.next() % 3 == 0 ? .eager : .lazy,
        serializationQueue: dice.next() % 3 == 0 ? DispatchQueue(label: "serialization") : nil,
        interceptor: dice.next() % 3 > 0 ? interceptor : nil,
        watching: SessionWatching(eventMonitors: monitors))
    }
  }

  private static let paths = [
    "/bytes/70000", "/stream-bytes/5000", "/status/500", "/redirect/2", "/anything/a", "/stream/20",
    "/delay/0",
    "/post",
  ]

  @Test("By the real engine", arguments: 0..<max(4, Self.walks / 5))
  func engine(seed: UInt64) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.reset, .resetAfterBody(bytes: 100))
    let size = RequestWalk.Size(requests: 8, threads: 4, steps: 12)
    await check(seed, size, url: { server.url(Self.paths.randomElement(using: &$0) ?? "/get") }) {
      dice, interceptor, monitors in
      Session(
        startRequestsImmediately: dice.next() % 4 > 0, requestSetup: dice.next() % 3 == 0 ? .eager : .lazy,
        interceptor: dice.next() % 3 > 0 ? interceptor : nil, eventMonitors: monitors)
    }
  }

  private func check(
    _ seed: UInt64, _ size: RequestWalk.Size, url: (inout Dice) -> String,
    beforeTheEnd: () -> Void = {},
    make: (inout Dice, any RequestInterceptor, [any EventMonitor]) -> Session
  ) async {
    let walk = RequestWalk(seed: seed, size: size, url: url, make: make)
    await walk.run(seed: seed, size: size)
    beforeTheEnd()
    await walk.book.isSettled()
    #expect(walk.book.broken == [])
    let traces = walk.traces
    walk.release()
    #expect(await eventually { traces.allSatisfy(\.isGone) }, "left: \(traces.compactMap(\.left))")
    #expect(walk.book.broken == [], "something was called again")
    if !walk.wasReleased { #expect(walk.spy.endsBeforeBeginnings == 0) }
  }
}

/// Replies by a seed, some of which wait at a gate.
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
    var dice = RequestWalk.Dice(state: seed &* 31 &+ UInt64(index))
    let reply: FakeReply =
      switch dice.next() % 8 {
      case 0: .json("[1, 2]")
      case 1: .status(500, "no")
      case 2: .failure(.timedOut)
      case 3: .redirect(302, to: "/elsewhere")
      case 4: .chunks(["one", "two", "three"], failure: .connectionLost)
      case 5: .chunks((0..<20).map { "\($0)," })
      default: .text("a text")
      }
    return dice.next() % 3 == 0 ? held(reply) : reply
  }

  private func held(_ reply: FakeReply) -> FakeReply {
    let gate = Latch()
    let (areOpen, other) = gates.withLock { gates in
      if !gates.areOpen { gates.closed.append(gate) }
      // One comes, another one goes.
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
