import Glibc
import HTTPWire
import Synchronization

/// Resumes whoever waits for the responses of one turn of an event loop, all at once.
///
/// On a busy core every thread that is woken takes the core from the loop. So the tasks that a turn has served
/// are kept until the turn is over, and one task outside the loop is resumed to resume them all: one waking a
/// turn, however many have got their response. Alone, a task is resumed without that detour.
///
/// Unchecked: everything belongs to the thread of the loop, but for what the task takes under the lock.
package final class ContinuationBatch: @unchecked Sendable {
  package typealias Waiter = UnsafeContinuation<Void, Never>

  private struct State {
    var ready: [Waiter] = []
    /// The task itself, waiting to be sent.
    var resting: Waiter?
    var hasTask = false
    var isOver = false
  }

  private let state = Mutex(State())
  /// Touched by the thread of the loop alone.
  @exclusivity(unchecked) private var turn: [Waiter] = []

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let code = pthread_key_create(&key, nil)
    precondition(code == 0, "there are more kinds of thread-local values than the system allows")
    return key
  }()

  package init() {}

  /// Makes this the batch of the current thread, until ``retire()``.
  package func serve() {
    pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Resumes a task: at the end of the turn when the current thread has a batch, otherwise at once.
  package static func resume(_ waiter: Waiter) {
    guard let continuationBatch = pthread_getspecific(key) else { return waiter.resume() }
    Unmanaged<ContinuationBatch>.fromOpaque(continuationBatch)._withUnsafeGuaranteedRef {
      $0.turn.append(waiter)
    }
  }

  /// The turn is over: whoever it has served goes on.
  package func announce() {
    if turn.isEmpty { return }
    if turn.count == 1 { return turn.removeLast().resume() }
    let (resting, needsTask) = state.withLock { state in
      state.ready += turn
      let resting = state.resting
      let needsTask = !state.hasTask
      state.resting = nil
      state.hasTask = true
      return (resting, needsTask)
    }
    turn.removeAll(keepingCapacity: true)
    resting?.resume()
    if needsTask { Task.detached { await self.run() } }
  }

  /// The thread ends, and the task with it, once it has resumed everybody. Another may serve afterwards.
  package func retire() {
    announce()
    pthread_setspecific(Self.key, nil)
    let resting = state.withLock { state in
      state.isOver = state.hasTask
      defer { state.resting = nil }
      return state.resting
    }
    resting?.resume()
  }

  private func run() async {
    var waiters: [Waiter] = []
    while take(&waiters) {
      for waiter in waiters { waiter.resume() }
      waiters.removeAll(keepingCapacity: true)
      await rest()
    }
  }

  /// Returns false when the task has nothing left to do.
  private func take(_ waiters: inout [Waiter]) -> Bool {
    state.withLock { state in
      swap(&waiters, &state.ready)
      guard waiters.isEmpty, state.isOver else { return true }
      state.isOver = false
      state.hasTask = false
      return false
    }
  }

  private func rest() async {
    await withUnsafeContinuation { continuationBatch in
      let rests = state.withLock { state in
        guard state.ready.isEmpty, !state.isOver else { return false }
        state.resting = continuationBatch
        return true
      }
      if !rests { continuationBatch.resume() }
    }
  }
}
