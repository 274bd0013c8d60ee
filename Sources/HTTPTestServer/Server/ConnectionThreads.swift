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
  /// The threads to join, for the server and tests.
  private let state = Mutex(State())

  init() throws(ServerError) { signal = try Waker() }

  /// Starts a thread that runs `body`. Called by the thread that accepts.
  func start(_ body: @escaping @Sendable () -> Void) throws(ServerError) {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let thread = try ServerThread.start {
      self.state.withLock { $0.threads[id] = pthread_self() }
      body()
      self.state.withLock { $0.ended.append(id) }
      self.signal.wake()
    }
    state.withLock { $0.threads[id] = thread }
  }

  /// Whether the caller is one of the threads.
  var includesCurrent: Bool {
    let current = pthread_self()
    return state.withLock { $0.threads.values.contains { pthread_equal($0, current) != 0 } }
  }

  /// Ends the wait for the thread that accepts. One of the threads must not wait, because it is joined before.
  func release(acceptor: pthread_t) {
    if includesCurrent {
      pthread_detach(acceptor)
    } else {
      pthread_join(acceptor, nil)
    }
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

  /// Waits for the end of all threads, and joins them. Called by the thread that accepts, as its last step. Each thread
  /// is known until it has ended, because it may stop the server.
  func joinAll() {
    for (id, thread) in state.withLock({ $0.threads }) {
      pthread_join(thread, nil)
      state.withLock { $0.threads[id] = nil }
    }
  }
}

/// A thread of the C library; Swift's own tasks must not be blocked by sockets.
enum ServerThread {
  /// Starts a thread that runs `body`; it must be joined once.
  ///
  /// SIGPIPE is blocked on it, since OpenSSL writes to sockets without `MSG_NOSIGNAL`.
  static func start(_ body: @escaping @Sendable () -> Void) throws(ServerError) -> pthread_t {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, 1 << 20)
    let box = Unmanaged.passRetained(Body(body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    guard code == 0 else {
      box.release()
      throw .system(call: "pthread_create", code: code)
    }
    return thread
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
}

/// The socket of an accepted connection, which its thread uses and ``HTTPTestServer/closeIdleConnections()`` may close.
final class AcceptedConnection: Sendable {
  private struct Use {
    var isOpen = true
    var isIdle = false
  }

  let descriptor: Int32
  /// The use of the socket, for the thread of the connection and tests.
  private let use = Mutex(Use())

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Notes whether the connection waits for its next request.
  func setIdle(_ isIdle: Bool) {
    use.withLock { $0.isIdle = isIdle }
  }

  /// Performs an attempt to write the end of a response. If it succeeds, the connection is idle before anyone else can
  /// ask: the client may have the response already.
  ///
  /// - Parameter attempt: Writes without waiting, and returns whether the last byte was written.
  func finish(_ attempt: () -> Bool) {
    use.withLock { use in
      if attempt() { use.isIdle = true }
    }
  }

  /// Sends FIN if the connection waits for its next request.
  func closeIfIdle() {
    use.withLock { use in
      if use.isOpen, use.isIdle { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Closes the socket. Called once, by the thread of the connection as its last step.
  func end() {
    use.withLock { $0.isOpen = false }
    close(descriptor)
  }
}
