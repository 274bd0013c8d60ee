import FoundationEssentials
import HTTPWire
import Synchronization

/// A source that performs one step of a script a read. `.wait` lasts until the test calls ``wake()``.
final class ScriptedSource: BodySource {
  enum Step: Sendable {
    case bytes([UInt8])
    case wait
    case failure(TransportFailure)
  }

  private struct State {
    var steps: [Step]
    var position = 0
    var wake: (@Sendable () -> Void)?
    var starts = 0
    var isStopped = false
  }

  let length: Int64
  let isRepeatable: Bool
  let hasWaited = Moment()
  private let state: Mutex<State>

  init(_ steps: Step..., length: Int64 = -1, isRepeatable: Bool = true) {
    state = Mutex(State(steps: steps))
    self.length = length
    self.isRepeatable = isRepeatable
  }

  var starts: Int { state.withLock { $0.starts } }
  var isStopped: Bool { state.withLock { $0.isStopped } }

  func wake() { state.withLock { $0.wake }?() }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    state.withLock { state in
      state.starts += 1
      state.position = 0
      state.wake = wake
      return nil
    }
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let step = state.withLock { state -> Step? in
      guard state.position < state.steps.count else { return nil }
      defer { state.position += 1 }
      return state.steps[state.position]
    }
    switch step {
    case .bytes(let bytes):
      room.copyBytes(from: bytes)
      return .bytes(bytes.count)
    case .wait:
      hasWaited.come()
      return .wait
    case .failure(let failure): return .failure(failure)
    case nil: return .end
    }
  }

  func stop() { state.withLock { $0.isStopped = true } }
}

/// A sink with room for a number of bytes. The test makes more room.
final class ScriptedSink: BodySink {
  private struct State {
    var room: Int
    var bytes: [UInt8] = []
    var heads: [Int] = []
    var wake: (@Sendable () -> Void)?
    var finishes = 0
  }

  let isFull = Moment()
  private let refusal: TransportFailure?
  private let lastFailure: TransportFailure?
  private let state: Mutex<State>

  init(room: Int = .max, refusal: TransportFailure? = nil, lastFailure: TransportFailure? = nil) {
    state = Mutex(State(room: room))
    self.refusal = refusal
    self.lastFailure = lastFailure
  }

  var bytes: [UInt8] { state.withLock { $0.bytes } }
  var heads: [Int] { state.withLock { $0.heads } }
  var finishes: Int { state.withLock { $0.finishes } }

  func makeRoom(_ count: Int) {
    let wake = state.withLock { state in
      state.room = count
      return state.wake
    }
    wake?()
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    state.withLock { state in
      state.heads.append(head.status)
      state.wake = wake
    }
    return refusal
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    let hasRoom = state.withLock { state in
      state.room -= min(bytes.count, state.room)
      state.bytes += Array(bytes)
      return state.room > 0
    }
    if !hasRoom { isFull.come() }
    return hasRoom ? .more : .pause
  }

  func finish() -> TransportFailure? {
    state.withLock { $0.finishes += 1 }
    return lastFailure
  }
}
