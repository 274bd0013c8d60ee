import Glibc
import Synchronization

/// The running part of a server, which its threads retain. The threads never retain ``HTTPTestServer`` itself, so
/// that its release can stop them.
///
/// Threads: one accepts and joins the others, and each connection has one. All wait in `poll`, and every
/// such wait also ends by the stop signal.
final class ServerCore: Sendable {
  let state = Mutex(ServerState())
  let stopSignal: Waker
  let threads: ConnectionThreads
  let routes: Routes
  let tls: TLSContext?
  let port: Int
  let scheme: String

  init(_ security: HTTPTestServer.Security, port: Int, routes: Routes) throws(ServerError) {
    switch security {
    case .none:
      tls = nil
      scheme = "http"
    case .tls(let identity, let options):
      tls = try TLSContext(identity, options)
      scheme = "https"
    }
    self.routes = routes
    stopSignal = try Waker()
    threads = try ConnectionThreads()
    let listener = try Listener(backlog: 1024, port: port)
    self.port = listener.port
    let thread = try ServerThread.start { self.acceptConnections(from: listener) }
    state.withLock { $0.acceptor = thread }
  }

  // MARK: Stopping

  /// Ends all threads and waits for them, unless it is called from one of them.
  func stop() {
    guard let deliveries = state.withLock({ $0.stop() }) else { return }
    stopSignal.wake()
    for (waiter, result) in deliveries { waiter.resume(returning: result) }
    guard let thread = state.withLock({ $0.acceptor.take() }) else { return }
    if isOnOwnThread {
      pthread_detach(thread)
    } else {
      pthread_join(thread, nil)
    }
  }

  private var isOnOwnThread: Bool {
    let current = pthread_self()
    return state.withLock { state in
      state.connections.values.contains { $0.thread.map { pthread_equal($0, current) != 0 } ?? false }
    }
  }

  // MARK: The accepting thread

  private func acceptConnections(from listener: Listener) {
    while waitForClient(of: listener) {
      threads.joinEnded()
      switch listener.accept() {
      case .connection(let descriptor):
        let (id, effect) = state.withLock { $0.accepted(descriptor) }
        do throws(ServerError) {
          try threads.start { self.serve(id, descriptor, effect) }
        } catch {
          state.withLock { $0.closing(id) }
          close(descriptor)
        }
      case .nobody: break
      case .exhausted: waitABit()
      }
    }
    threads.joinAll()
  }

  /// Waits for a client, or for a thread that can be joined. Returns `false` when the server is to stop.
  private func waitForClient(of listener: Listener) -> Bool {
    var entries = [
      pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: threads.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&entries, 3, -1) < 0, errno == EINTR {}
    return entries[0].revents == 0
  }

  private func waitABit() {
    var entry = pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0)
    _ = poll(&entry, 1, 10)
  }

  // MARK: The thread of a connection

  private func serve(_ id: Int, _ descriptor: Int32, _ effect: ConnectionEffect) {
    state.withLock { $0.connections[id]?.thread = pthread_self() }
    let channel = Channel(descriptor: descriptor, stopSignal: stopSignal)
    Conversation(id: id, channel: channel, core: self).run(effect)
    state.withLock { $0.closing(id) }
    close(descriptor)
  }
}
