import Synchronization

/// Counts expected calls, such as the calls of a handler.
final class CallCounter: Sendable {
  private struct State {
    var names: [String] = []
    var counts: [Int] = []
    var missing = 0
    var waiter: Latch?
  }

  private let state = Mutex(State())

  /// Returns a function that must be called once.
  func promise(_ name: String) -> @Sendable () -> Void {
    let id = state.withLock { state in
      state.names.append(name)
      state.counts.append(0)
      state.missing += 1
      return state.names.count - 1
    }
    return { [self] in keep(id) }
  }

  private func keep(_ id: Int) {
    let waiter = state.withLock { state in
      state.counts[id] += 1
      if state.counts[id] == 1 { state.missing -= 1 }
      return state.missing == 0 ? state.waiter : nil
    }
    waiter?.open()
  }

  /// Waits until all functions are called, or the task is cancelled.
  func isSettled() async {
    let latch = Latch()
    let isReady = state.withLock { state in
      state.waiter = latch
      return state.missing == 0
    }
    if !isReady { await latch.wait() }
  }

  /// The functions that were not called exactly once, with their counts.
  var broken: [String] {
    state.withLock { state in
      zip(state.names, state.counts).filter { $0.1 != 1 }.map { "\($0.0): \($0.1) times" }
    }
  }

  var count: Int { state.withLock { $0.names.count } }
}
