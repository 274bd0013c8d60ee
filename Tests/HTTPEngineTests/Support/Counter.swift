import Synchronization

/// Counts what is going on at a time, on any threads.
final class Counter: Sendable {
  private let state = Mutex((now: 0, most: 0))

  /// How many are going on.
  var now: Int { state.withLock { $0.now } }
  /// The most that ever were.
  var most: Int { state.withLock { $0.most } }

  func enter() {
    state.withLock { state in
      state.now += 1
      state.most = max(state.most, state.now)
    }
  }

  func leave() {
    state.withLock { $0.now -= 1 }
  }
}
