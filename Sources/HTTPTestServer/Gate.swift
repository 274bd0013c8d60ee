import Synchronization

/// Holds a reply until a test lets it go, so that tests do not need to sleep.
///
/// ```swift
/// let gate = Gate()
/// server.enqueue(.text("late").held(by: gate))
/// let response = Task { try await client.get(server.url("/")) }
/// await gate.waitUntilReached()  // the request is at the server, the reply is ready
/// gate.open()
/// ```
///
/// A gate may hold any number of replies, of several servers; opening it lets all of them go, and it
/// stays open. A server that is stopped, or a client that closes its connection, ends the waiting too.
public final class Gate: Sendable {
  private struct State {
    var isOpen = false
    var reachedCount = 0
    /// Wakes all replies that wait; made for the first one.
    var waker: Waker?
    var nextWaiter = 0
    var waiters: [Int: (target: Int, continuation: CheckedContinuation<Void, Never>)] = [:]
  }

  /// The replies that wait, for the server and tests.
  private let state = Mutex(State())

  /// The state of a gate when a reply reaches it.
  enum Passage {
    case open
    /// ``open()`` wakes the waker. Without a free descriptor there is none, and ``isOpen`` has to be asked again.
    case closed(Waker?)
  }

  /// Makes a closed gate.
  public init() {}

  /// Lets everything go that waits here now or comes later. Does nothing the second time; from any
  /// thread.
  public func open() {
    let waker = state.withLock { state in
      state.isOpen = true
      return state.waker.take()
    }
    waker?.wake()
  }

  /// Whether ``open()`` was called.
  public var isOpen: Bool { state.withLock { $0.isOpen } }

  /// The number of replies that have reached this gate, open or not.
  public var reachedCount: Int { state.withLock { $0.reachedCount } }

  /// Waits until at least `count` replies have reached this gate (1 by default). Returns at once if they have, and
  /// when the surrounding task is cancelled.
  public func waitUntilReached(count: Int = 1) async {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if Task.isCancelled || state.reachedCount >= count { return true }
          state.waiters[id] = (count, continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
      waiter?.continuation.resume()
    }
  }

  /// Records that a reply has reached the gate, and returns whether it must wait.
  func reached() -> Passage {
    let (passage, ready) = state.withLock { state in
      state.reachedCount += 1
      if !state.isOpen, state.waker == nil { state.waker = try? Waker() }
      let ready = state.waiters.filter { $0.value.target <= state.reachedCount }
      for id in ready.keys { state.waiters[id] = nil }
      return (state.isOpen ? Passage.open : .closed(state.waker), ready.values.map(\.continuation))
    }
    for continuation in ready { continuation.resume() }
    return passage
  }
}
