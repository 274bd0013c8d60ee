import HTTPEngine
import HTTPWire
import Synchronization

/// A sink that counts bytes and drops them, as far as the test has granted room.
final class CountingSink: BodySink {
  private struct State {
    var granted: Int
    var count = 0
    var largestPiece = 0
    var wake: (@Sendable () -> Void)?
    var isFull = Moment()
  }

  private let state: Mutex<State>
  /// Whether it reports its room before it receives bytes.
  private let tellsRoom: Bool

  init(room: Int, tellsRoom: Bool = false) {
    state = Mutex(State(granted: room))
    self.tellsRoom = tellsRoom
  }

  var count: Int { state.withLock { $0.count } }
  /// All room that was ever granted.
  var granted: Int { state.withLock { $0.granted } }
  var largestPiece: Int { state.withLock { $0.largestPiece } }
  /// Waits until the sink is full.
  var isFull: Moment { state.withLock { $0.isFull } }

  func grant(_ room: Int) {
    let wake = state.withLock { state in
      state.granted += room
      state.isFull = Moment()
      return state.wake
    }
    wake?()
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    state.withLock { $0.wake = wake }
    return nil
  }

  func room() -> Int { tellsRoom ? state.withLock { max(0, $0.granted - $0.count) } : BodyPiece.size }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    let full = state.withLock { state -> Moment? in
      state.largestPiece = max(state.largestPiece, bytes.count)
      state.count += bytes.count
      return state.count < state.granted ? nil : state.isFull
    }
    full?.come()
    return full == nil ? .more : .pause
  }

  func finish() -> TransportFailure? { nil }
}
