import HTTPWire
import Synchronization

/// The control of a fake transfer.
final class FakeTransferControl: TransferControl {
  private struct State {
    var isClosed = false
    var isCancelled = false
    var resumptions = 0
    var latch = Latch()
    var task: Task<Void, Never>?
    var priority: Float?
  }

  private let state = Mutex(State())

  var resumptions: Int { state.withLock { $0.resumptions } }
  var isClosed: Bool { state.withLock { $0.isClosed } }

  func suspend() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      state.latch = Latch()
    }
  }

  /// Suspends at a held head. The decision may have been made before the observer returned.
  func suspend(unlessResumedSince resumptions: Int) {
    state.withLock { state in
      guard !state.isClosed, state.resumptions == resumptions else { return }
      state.isClosed = true
      state.latch = Latch()
    }
  }

  /// Cancels the task of the fake transfer, because a request without a task cannot.
  func cancel() {
    state.withLock { state in
      state.isCancelled = true
      return state.task
    }?.cancel()
  }

  /// Sets the task of the transfer.
  func carry(by task: Task<Void, Never>) {
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// The priority that was set; `nil` if none was.
  var priority: Float? { state.withLock { $0.priority } }

  func setPriority(_ priority: Float) { state.withLock { $0.priority = priority } }

  func resume() {
    state.withLock { state in
      state.isClosed = false
      state.resumptions += 1
      return state.latch
    }.open()
  }

  /// Waits until bytes may be transferred, or the task is cancelled.
  func pass() async {
    while !Task.isCancelled {
      let latch = state.withLock { $0.isClosed ? $0.latch : nil }
      guard let latch else { return }
      await latch.wait()
    }
  }
}
