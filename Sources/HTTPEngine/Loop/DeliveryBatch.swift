package import Dispatch
import Glibc
import HTTPWire
import Synchronization

/// The tasks and the handlers that receive the responses of one turn of an event loop, together.
///
/// On a busy core, every thread that is woken takes the core from the loop. Therefore they are collected until the turn
/// is over. Then one task outside the loop is resumed, and resumes all of them: one wake-up a turn. A single task
/// is resumed directly. The handlers of a queue are called by one block of it.
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

/// The response handlers that one turn of an event loop has to call.
///
/// Handlers with the same queue in a row are called by one block of that queue, because each block may wake a thread.
private struct HandlerBatch {
  typealias Handler = @Sendable () -> Void

  private var queue: DispatchQueue?
  private var handlers: [Handler] = []

  mutating func add(_ handler: @escaping Handler, on queue: DispatchQueue) {
    if self.queue !== queue {
      callAll()
      self.queue = queue
    }
    handlers.append(handler)
  }

  /// Calls the handlers on their queue, asynchronously, in their order.
  mutating func callAll() {
    guard let queue = queue.take() else { return }
    if handlers.count == 1, let handler = handlers.popLast() { return queue.async(execute: handler) }
    let row = HandlerRow(handlers, queue)
    // Before the queue calls the first one, which is released before the next one is called.
    handlers.removeAll(keepingCapacity: true)
    row.schedule()
  }
}

/// Handlers that their queue calls one after the other; a concurrent queue calls several at a time.
///
/// Nothing tells whether a queue is concurrent. Therefore each block that has taken a handler while others wait
/// schedules one more block. A serial queue runs the second block when nothing is left; on a concurrent queue it takes
/// the next handler at once, so that no handler waits for the end of another one.
private final class HandlerRow: Sendable {
  private let queue: DispatchQueue
  /// The handlers that have not been called, in reverse order. Blocks of the queue take them, on several threads if
  /// it is concurrent.
  private let rest: TrackedMutex<[HandlerBatch.Handler]>

  init(_ handlers: [HandlerBatch.Handler], _ queue: DispatchQueue) {
    self.queue = queue
    rest = TrackedMutex(handlers.reversed())
  }

  func schedule() { queue.async { self.callRest() } }

  private func callRest() {
    var isScheduled = false
    while let (handler, isLast) = takeNext() {
      if !isLast, !isScheduled {
        schedule()
        isScheduled = true
      }
      handler()
    }
  }

  private func takeNext() -> (handler: HandlerBatch.Handler, isLast: Bool)? {
    rest.withLock { rest in rest.popLast().map { ($0, rest.isEmpty) } }
  }
}
