import CLinux
import Glibc

/// The threads of the engine: for event loops, and for look-ups of names.
enum EngineThread {
  private static let stackSize = 1 << 20

  private final class Body: Sendable {
    let name: StaticString
    let run: @Sendable () -> Void

    init(_ name: StaticString, _ run: @escaping @Sendable () -> Void) {
      self.name = name
      self.run = run
    }
  }

  /// Runs `body` on a detached thread of its own. Returns false if the system has no thread left.
  ///
  /// - Parameter name: At most 15 bytes, as the system shows them.
  static func start(_ name: StaticString, _ body: @escaping @Sendable () -> Void) -> Bool {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { return false }
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stackSize)
    let context = Unmanaged.passRetained(Body(name, body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, &attributes,
      { context in
        guard let context else { return nil }
        EngineThread.blockSignals()
        let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
        body.name.withUTF8Buffer { linux_name_thread($0.baseAddress) }
        body.run()
        return nil
      }, context.toOpaque())
    if result != 0 { context.release() }
    return result == 0
  }

  /// Runs `body` on a thread of the program, without the SIGPIPE that would end the process when a peer is gone:
  /// OpenSSL writes to sockets without MSG_NOSIGNAL. The mask of the thread is restored afterwards.
  static func withoutBrokenPipes(_ body: () -> Void) {
    var brokenPipe = sigset_t()
    var mask = sigset_t()
    var pending = sigset_t()
    sigemptyset(&brokenPipe)
    sigaddset(&brokenPipe, SIGPIPE)
    sigpending(&pending)
    pthread_sigmask(SIG_BLOCK, &brokenPipe, &mask)
    body()
    // The signal of a write waits for the thread that has written. One that came before is for the program.
    if sigismember(&pending, SIGPIPE) == 0 {
      var atOnce = timespec()
      while sigtimedwait(&brokenPipe, nil, &atOnce) < 0, errno == EINTR {}
    }
    pthread_sigmask(SIG_SETMASK, &mask, nil)
  }

  /// Blocks signals, because the program's handlers must not run on this thread. SIGPIPE would end the process when a
  /// peer is gone, because OpenSSL writes to sockets without MSG_NOSIGNAL.
  private static func blockSignals() {
    var signals = sigset_t()
    sigfillset(&signals)
    for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF] { sigdelset(&signals, fault) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
