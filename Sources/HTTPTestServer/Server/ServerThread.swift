import Glibc

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
