import Dispatch
import HTTPWire

/// The response handlers that one turn of an event loop has to call.
///
/// Handlers with the same queue in a row are called by one block of that queue, because each block may wake a thread.
struct HandlerBatch {
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
    HandlerRow(handlers, queue).schedule()
    handlers.removeAll(keepingCapacity: true)
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
