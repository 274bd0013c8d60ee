import Glibc
import Synchronization

/// The threads of a server's connections. The thread that accepts starts each one, and joins it when it has ended.
///
/// A thread that has ended keeps its stack until it is joined, and is a leak when the process exits before.
final class ConnectionThreads: Sendable {
  private struct State {
    var lastID = 0
    var threads: [Int: pthread_t] = [:]
    var ended: [Int] = []
  }

  /// Readable while ``joinEnded()`` has a thread to join.
  var descriptor: Int32 { signal.descriptor }

  /// The number of threads that have not been joined.
  var count: Int { state.withLock { $0.threads.count } }

  private let signal: Waker
  private let state = Mutex(State())

  init() throws(ServerError) { signal = try Waker() }

  /// Starts a thread that runs `body`. Called by the thread that accepts.
  func start(_ body: @escaping @Sendable () -> Void) throws(ServerError) {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let thread = try ServerThread.start {
      body()
      self.state.withLock { $0.ended.append(id) }
      self.signal.wake()
    }
    state.withLock { $0.threads[id] = thread }
  }

  /// Joins the threads that have ended. Called by the thread that accepts, after ``start(_:)`` has returned.
  func joinEnded() {
    signal.reset()
    let threads = state.withLock { state in
      defer { state.ended.removeAll() }
      return state.ended.compactMap { state.threads.removeValue(forKey: $0) }
    }
    for thread in threads { pthread_join(thread, nil) }
  }

  /// Waits for the end of all threads, and joins them. Called by the thread that accepts, as its last step.
  func joinAll() {
    let threads = state.withLock { state in
      defer { state.threads.removeAll() }
      return Array(state.threads.values)
    }
    for thread in threads { pthread_join(thread, nil) }
  }
}
