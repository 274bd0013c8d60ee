package import Dispatch
import Glibc
import HTTPWire
import Synchronization

/// The tasks and the handlers that receive the responses of one turn of an event loop, together.
///
/// On a busy core, every thread that is woken takes the core from the loop. Therefore they are collected until the turn
/// is over. Then one task outside the loop is resumed, and resumes all of them: one wake-up a turn. A single task
/// is resumed directly. Handlers are called on their queues by a ``HandlerBatch``.
///
/// Unchecked: everything belongs to the loop's thread, except the state under the lock.
package final class DeliveryBatch: @unchecked Sendable {
  package typealias Waiter = UnsafeContinuation<Void, Never>

  private struct State {
    var ready: [Waiter] = []
    /// The continuation of the resuming task, while it waits for work.
    var idleTask: Waiter?
    var hasTask = false
    var isOver = false
  }

  /// The continuations of one turn of the loop, and the task that resumes them.
  private let state = TrackedMutex(State())
  /// The tasks of this turn. Only the loop's thread uses them.
  @exclusivity(unchecked) private var turn: [Waiter] = []
  /// The handlers of this turn. Only the loop's thread uses them.
  @exclusivity(unchecked) private var handlers = HandlerBatch()

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
    guard let batch = pthread_getspecific(key) else { return waiter.resume() }
    Unmanaged<DeliveryBatch>.fromOpaque(batch)._withUnsafeGuaranteedRef { $0.turn.append(waiter) }
  }

  /// Calls a handler on its queue, asynchronously: after the end of the turn when the current thread has a batch.
  package static func call(on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void) {
    guard let batch = pthread_getspecific(key) else { return queue.async(execute: handler) }
    Unmanaged<DeliveryBatch>.fromOpaque(batch)._withUnsafeGuaranteedRef {
      $0.handlers.add(handler, on: queue)
    }
  }

  /// Resumes the tasks of the turn and calls its handlers, because it is over.
  package func deliverAll() {
    handlers.callAll()
    resumeAll()
  }

  private func resumeAll() {
    guard turn.count > 1 else {
      turn.popLast()?.resume()
      return
    }
    let (idleTask, needsTask) = state.withLock { state in
      state.ready += turn
      let idleTask = state.idleTask
      let needsTask = !state.hasTask
      state.idleTask = nil
      state.hasTask = true
      return (idleTask, needsTask)
    }
    turn.removeAll(keepingCapacity: true)
    idleTask?.resume()
    if needsTask { Task.detached { await self.run() } }
  }

  /// Ends the resuming task after its last work, because the thread ends. Another thread may serve afterwards.
  package func retire() {
    deliverAll()
    pthread_setspecific(Self.key, nil)
    let idleTask = state.withLock { state in
      state.isOver = state.hasTask
      defer { state.idleTask = nil }
      return state.idleTask
    }
    idleTask?.resume()
  }

  private func run() async {
    var waiters: [Waiter] = []
    while take(&waiters) {
      for waiter in waiters { waiter.resume() }
      waiters.removeAll(keepingCapacity: true)
      await waitForWork()
    }
  }

  /// Takes the tasks to resume. Returns false if the resuming task has to end.
  private func take(_ waiters: inout [Waiter]) -> Bool {
    state.withLock { state in
      swap(&waiters, &state.ready)
      guard waiters.isEmpty, state.isOver else { return true }
      state.isOver = false
      state.hasTask = false
      return false
    }
  }

  private func waitForWork() async {
    await withUnsafeContinuation { continuation in
      let waits = state.withLock { state in
        guard state.ready.isEmpty, !state.isOver else { return false }
        state.idleTask = continuation
        return true
      }
      if !waits { continuation.resume() }
    }
  }
}
