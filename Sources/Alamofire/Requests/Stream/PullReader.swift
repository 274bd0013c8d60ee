import HTTPWire
import Synchronization

/// The reader of a stream request for a loop: it wakes the waiting tasks.
final class PullReader: StreamSink {
  private struct State {
    var isWoken = false
    /// Whether the stream is over, so that no task waits any more.
    var isOver = false
    var waiter: CheckedContinuation<Void, Never>?
    /// Continuations of further tasks; mostly empty, because a stream is made for one loop.
    var others: [CheckedContinuation<Void, Never>] = []
  }

  let id: Int
  let flow: StreamFlow
  let runEnd = RunEnd()
  private let state = Mutex(State())

  init(_ flow: StreamFlow, id: Int) {
    self.flow = flow
    self.id = id
  }

  func wake() {
    let (waiter, others) = take { state in
      if state.waiter == nil { state.isWoken = true }
    }
    waiter?.resume()
    for other in others { other.resume() }
  }

  /// Wakes all waiting tasks; later waits return at once.
  func end() {
    let (waiter, others) = take { $0.isOver = true }
    waiter?.resume()
    for other in others { other.resume() }
  }

  private func take(
    _ change: (inout sending State) -> Void
  ) -> (CheckedContinuation<Void, Never>?, [CheckedContinuation<Void, Never>]) {
    state.withLock { state in
      change(&state)
      defer {
        state.waiter = nil
        state.others = []
      }
      return (state.waiter, state.others)
    }
  }

  /// Returns when there may be something to read.
  nonisolated(nonsending) func wait() async {
    await withCheckedContinuation { continuation in
      let mayGoOn = state.withLock { state in
        guard !state.isWoken, !state.isOver else {
          state.isWoken = false
          return true
        }
        if state.waiter == nil {
          state.waiter = continuation
        } else {
          state.others.append(continuation)
        }
        return false
      }
      if mayGoOn { continuation.resume() }
    }
  }
}
