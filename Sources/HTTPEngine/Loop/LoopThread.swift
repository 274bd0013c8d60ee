import CCurl
import Glibc

/// The thread of a loop.
enum LoopThread {
  private static let stackSize = 1 << 20

  /// Runs the loop on a detached thread of its own. Returns false if the system has no thread left.
  static func start(_ loop: Unmanaged<EventLoop>) -> Bool {
    var attributes = pthread_attr_t()
    guard pthread_attr_init(&attributes) == 0 else { return false }
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stackSize)
    var thread = pthread_t()
    let result = pthread_create(
      &thread, &attributes,
      { context in
        guard let context else { return nil }
        ccurl_name_thread("http-engine")
        LoopThread.blockSignals()
        let loop = Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue()
        loop.runUntilIdle()
        return nil
      }, loop.toOpaque())
    return result == 0
  }

  /// Blocks signals, because the program's handlers must not run on this thread. SIGPIPE would end the process when a
  /// peer is gone: older versions of libcurl write to TLS sockets without MSG_NOSIGNAL.
  private static func blockSignals() {
    var signals = sigset_t()
    sigfillset(&signals)
    for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF] { sigdelset(&signals, fault) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}

/// The sleep of a loop without transfers, by a semaphore. It costs one system call a side. libcurl's own wake-up, which
/// a loop with transfers needs, costs two and a socket.
final class LoopSleep: Sendable {
  // `nonisolated(unsafe)` because it is a pointer, which never changes. Any thread may use a POSIX semaphore.
  private nonisolated(unsafe) let semaphore: UnsafeMutablePointer<sem_t>

  init() {
    semaphore = .allocate(capacity: 1)
    // This cannot fail for a semaphore of one process that starts at zero.
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Ends the sleep. Without a sleeping loop, it ends the next sleep. Callable from any thread.
  func wake() {
    sem_post(semaphore)
  }

  /// Sleeps until it is woken or the time is over. It may return earlier.
  func sleep(nanoseconds: UInt64) {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    let total = UInt64(time.tv_nsec) + nanoseconds % 1_000_000_000
    time.tv_sec += Int(nanoseconds / 1_000_000_000 + total / 1_000_000_000)
    time.tv_nsec = Int(total % 1_000_000_000)
    sem_timedwait(semaphore, &time)
  }
}
