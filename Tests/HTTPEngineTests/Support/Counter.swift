import Synchronization

/// Counts concurrent operations, on any threads.
final class Counter: Sendable {
  private let state = Mutex((now: 0, most: 0))

  /// The number of running operations.
  var now: Int { state.withLock { $0.now } }
  /// The largest number of operations at a time.
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
