import HTTPWire
import Randomness
import Testing

@Suite("Choosing a connection for a request") struct PoolStateTests {
  typealias Step = PoolState.PoolStep

  private static func state(_ change: (inout PoolState) -> Void) -> PoolState {
    var state = PoolState(limit: 6)
    change(&state)
    return state
  }

  static let states: [(String, PoolState, Step, Step)] = [
    ("no connection", state { _ in }, .connect, .connect),
    ("an idle one", state { ($0.idle, $0.open) = (1, 1) }, .useIdle, .useIdle),
    ("an idle one at the limit", state { ($0.idle, $0.open) = (1, 6) }, .useIdle, .useIdle),
    ("a stream", state { ($0.hasStream, $0.open, $0.multiplexes) = (true, 1, true) }, .useStream, .connect),
    (
      "a stream and an idle one", state { ($0.hasStream, $0.idle, $0.open) = (true, 1, 2) }, .useStream,
      .useIdle
    ),
    ("no stream left", state { ($0.multiplexes, $0.open) = (true, 1) }, .connect, .connect),
    ("no stream left at the limit", state { ($0.multiplexes, $0.open) = (true, 6) }, .wait, .wait),
    ("the first is being established", state { ($0.connecting, $0.open) = (1, 1) }, .wait, .wait),
    (
      "the first is being established for another",
      state { ($0.connecting, $0.open, $0.waiting) = (1, 1, 1) },
      .wait, .connect
    ),
    (
      "one of HTTP/2 is being established for another",
      state { ($0.connecting, $0.open, $0.waiting, $0.multiplexes) = (1, 1, 1, true) }, .wait, .connect
    ),
    (
      "one of HTTP/1.1 is being established for another",
      state { ($0.connecting, $0.open, $0.waiting, $0.multiplexes) = (1, 1, 1, false) }, .connect, .connect
    ),
    (
      "two of HTTP/1.1 are being established for another",
      state { ($0.connecting, $0.open, $0.waiting, $0.multiplexes) = (2, 2, 1, false) }, .wait, .wait
    ),
    ("the limit", state { ($0.open, $0.multiplexes) = (6, false) }, .wait, .wait),
    ("one less than the limit", state { ($0.open, $0.multiplexes) = (5, false) }, .connect, .connect),
    (
      "the limit with an idle one of another key", state { ($0.open, $0.idleElsewhere) = (6, 1) },
      .closeOtherAndConnect, .closeOtherAndConnect
    ),
    (
      "below the limit with an idle one of another key", state { ($0.open, $0.idleElsewhere) = (5, 1) },
      .connect, .connect
    ),
    ("more than a lowered limit", state { ($0.open, $0.limit) = (6, 2) }, .wait, .wait),
  ]

  @Test("The counts decide", arguments: states)
  func step(name: String, state: PoolState, multiplexed: Step, alone: Step) {
    #expect(state.step(mayMultiplex: true) == multiplexed, "\(name)")
    #expect(state.step(mayMultiplex: false) == alone, "\(name)")
  }

  /// A pool of one key, with a server that speaks HTTP/1.1 or HTTP/2.
  private struct Pool {
    let speaksHTTP2: Bool
    let limit: Int
    var multiplexes: Bool?
    var waiting = 0, connecting = 0, idle = 0, busy = 0, multiplexed = 0, streams = 0, idleElsewhere = 0
    var mostConnecting = 0
    let streamLimit = 3

    var open: Int { connecting + idle + busy + multiplexed + idleElsewhere }

    /// Gives connections to the waiting requests, as long as there are any.
    mutating func assign(_ name: Comment) {
      assignment: while waiting > 0 {
        var state = PoolState(limit: limit)
        (state.idle, state.connecting, state.waiting) = (idle, connecting, waiting - 1)
        (state.hasStream, state.multiplexes) = (multiplexed * streamLimit > streams, multiplexes)
        (state.open, state.idleElsewhere) = (open, idleElsewhere)
        switch state.step(mayMultiplex: true) {
        case .useIdle: (idle, busy, waiting) = (idle - 1, busy + 1, waiting - 1)
        case .useStream: (streams, waiting) = (streams + 1, waiting - 1)
        case .connect: connecting += 1
        case .closeOtherAndConnect: (idleElsewhere, connecting) = (idleElsewhere - 1, connecting + 1)
        case .wait: break assignment
        }
        #expect(
          idle >= 0 && idleElsewhere >= 0 && streams <= multiplexed * streamLimit && open <= limit, name)
      }
      if multiplexes == nil { #expect(connecting <= 1, "a burst waits for the first connection") }
      #expect(waiting == 0 || connecting > 0 || open == limit && idle == 0 || multiplexed > 0, name)
    }

    mutating func connected() {
      connecting -= 1
      multiplexes = speaksHTTP2
      if speaksHTTP2 { multiplexed += 1 } else { idle += 1 }
    }
  }

  @Test("Random walks keep the limit, and no request waits for nothing") func walks() {
    for seed in UInt64(0)..<2_000 {
      var random = SeededGenerator(seed: seed)
      let name = Comment(rawValue: "seed \(seed)")
      let limit = Int.random(in: 1...6, using: &random)
      var pool = Pool(speaksHTTP2: Bool.random(using: &random), limit: limit)
      pool.idleElsewhere = Int.random(in: 0...limit, using: &random)
      for _ in 0..<60 {
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1: pool.waiting += Int.random(in: 1...4, using: &random)
        case 2 where pool.connecting > 0: pool.connected()
        case 3 where pool.busy > 0:
          pool.busy -= 1
          if Bool.random(using: &random) { pool.idle += 1 }
        case 4 where pool.streams > 0: pool.streams -= 1
        default: continue
        }
        pool.assign(name)
      }
      // When all responses have arrived, no request is left.
      for _ in 0..<1_000 where pool.waiting + pool.connecting + pool.busy + pool.streams > 0 {
        if pool.connecting > 0 { pool.connected() }
        if pool.busy > 0 { (pool.busy, pool.idle) = (pool.busy - 1, pool.idle + 1) }
        if pool.streams > 0 { pool.streams -= 1 }
        pool.assign(name)
      }
      #expect(pool.waiting == 0, name)
    }
  }
}
