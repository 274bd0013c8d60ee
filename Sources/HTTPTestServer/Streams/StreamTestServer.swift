import Glibc
import Synchronization

/// A server for any protocol over TCP, inside the process of a test: each connection runs a script.
///
/// ```swift
/// let server = try StreamTestServer { connection in
///   try connection.write("220 ready\r\n")
///   guard try connection.line() == "STARTTLS" else { return }
///   try connection.write("220 go on\r\n")
///   try connection.startTLS(.localhost)
///   try connection.echo()
/// }
/// ```
///
/// It listens on 127.0.0.1. Each script runs on a thread of its own, until it returns or throws. Stopping the server
/// ends all scripts, because their reads and writes then throw.
public final class StreamTestServer: Sendable {
  /// The code that serves a connection. An error that it throws ends the connection.
  public typealias Script = @Sendable (StreamTestConnection) throws -> Void

  let core: Core

  /// Starts a server; it listens when this returns. Throws as ``HTTPTestServer/init(_:port:routes:)``.
  ///
  /// - Parameters:
  ///   - security: Whether connections begin with TLS.
  ///   - script: Default: sends received bytes back.
  public init(
    _ security: HTTPTestServer.Security = .none, script: @escaping Script = { try $0.echo() }
  ) throws(ServerError) {
    var tls: TLSContext?
    if case .tls(let identity, let options) = security { tls = try TLSContext(identity, options) }
    core = try Core(tls: tls, script: script)
  }

  deinit { core.stop() }

  /// The port on 127.0.0.1.
  public var port: Int { core.port }

  /// The number of connections accepted since the start.
  public var connectionCount: Int { core.state.withLock { $0.accepted } }

  /// The number of open connections.
  public var openConnectionCount: Int { core.state.withLock { $0.open } }

  /// The number of bytes that scripts have read since the start, without those of TLS handshakes.
  public var receivedByteCount: Int { core.state.withLock { $0.received } }

  /// Closes everything and waits for the end of all threads.
  public func stop() { core.stop() }

  final class Core: Sendable {
    struct State {
      var accepted = 0
      var open = 0
      var received = 0
      var acceptor: pthread_t?
    }

    let state = Mutex(State())
    let port: Int
    private let tls: TLSContext?
    private let script: Script
    private let stopSignal: Waker
    let threads: ConnectionThreads

    init(tls: TLSContext?, script: @escaping Script) throws(ServerError) {
      self.tls = tls
      self.script = script
      stopSignal = try Waker()
      threads = try ConnectionThreads()
      let listener = try Listener(backlog: 1024)
      port = listener.port
      let thread = try ServerThread.start { self.accept(from: listener) }
      state.withLock { $0.acceptor = thread }
    }

    func stop() {
      stopSignal.wake()
      guard let thread = state.withLock({ $0.acceptor.take() }) else { return }
      pthread_join(thread, nil)
    }

    private func accept(from listener: Listener) {
      var entries = [
        pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: listener.descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: threads.descriptor, events: Int16(POLLIN), revents: 0),
      ]
      while entries[0].revents == 0 {
        if poll(&entries, 3, -1) < 0 { continue }
        threads.joinEnded()
        guard entries[1].revents != 0, case .connection(let descriptor) = listener.accept() else { continue }
        state.withLock { state in
          state.accepted += 1
          state.open += 1
        }
        do throws(ServerError) {
          try threads.start { self.serve(descriptor) }
        } catch {
          close(descriptor)
          state.withLock { $0.open -= 1 }
        }
      }
      threads.joinAll()
    }

    private func serve(_ descriptor: Int32) {
      let channel = Channel(descriptor: descriptor, stopSignal: stopSignal)
      let connection = StreamTestConnection(channel, self, stopSignal)
      do {
        if let tls { try connection.startTLS(tls) }
        try script(connection)
        channel.end(connection.isReset ? .reset : .close, hasUnread: false)
      } catch {
        // The error only ends the connection; a script reports its failures itself.
      }
      channel.tls = nil
      close(descriptor)
      state.withLock { $0.open -= 1 }
    }
  }
}
