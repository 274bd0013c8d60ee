import CLinux
import Glibc
import HTTPWire

/// The threads of the process on which names are looked up, because `getaddrinfo` blocks its caller.
///
/// A thread is started when all others are busy, up to a limit, and ends after some seconds without work. With a
/// resolver that does not answer, work waits for a thread. The attempts that wait for it have time limits of their own.
final class LookupThreads: Sendable {
  typealias Work = @Sendable () -> Void

  static let shared = LookupThreads()

  private static let mostThreads = 16
  /// The time for which a thread waits for work, in seconds.
  private static let lingering: Int32 = 5

  private struct State {
    var waiting: [Work] = []
    var threadCount = 0
    /// The threads that wait at the semaphore and were not called.
    var idleCount = 0
  }

  private enum Need { case none, call, thread }

  private let state = TrackedMutex(State())
  // `nonisolated(unsafe)` because it is a pointer, which never changes. Any thread may use a POSIX semaphore.
  private nonisolated(unsafe) let semaphore: UnsafeMutablePointer<sem_t>

  /// Whether the system may be asked for a thread. Tests return false.
  private let mayStartThread: @Sendable () -> Bool

  init(mayStartThread: @escaping @Sendable () -> Bool = { true }) {
    self.mayStartThread = mayStartThread
    semaphore = .allocate(capacity: 1)
    // This cannot fail for a semaphore of one process that starts at zero.
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Runs work on one of the threads. If there is none and the system has none left, the caller does the work: that is
  /// slow, but nothing waits for ever.
  func run(_ work: @escaping Work) {
    let need = state.withLock { state in
      state.waiting.append(work)
      if state.idleCount > 0 {
        state.idleCount -= 1
        return Need.call
      }
      guard state.threadCount < Self.mostThreads else { return .none }
      state.threadCount += 1
      return .thread
    }
    switch need {
    case .none: break
    case .call: sem_post(semaphore)
    case .thread: startThread()
    }
  }

  private func startThread() {
    guard !mayStartThread() || !EngineThread.start("http-lookup", { [self] in serve() }) else { return }
    let isAlone = state.withLock { state in
      state.threadCount -= 1
      return state.threadCount == 0
    }
    while isAlone, let work = take() { work() }
  }

  private func take() -> Work? {
    state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
  }

  private func serve() {
    while true {
      let work = state.withLock { state -> Work? in
        guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
        state.idleCount += 1
        return nil
      }
      if let work {
        work()
      } else if !waitForWork() {
        return
      }
    }
  }

  /// Waits for a call. Returns false if none came, and the thread is to end.
  private func waitForWork() -> Bool {
    while true {
      if linux_semaphore_wait(semaphore, Self.lingering) == 0 { return true }
      guard errno == ETIMEDOUT else { continue }
      let isOver = state.withLock { state in
        // If no thread is idle, this one was called, and the call is about to come.
        guard state.idleCount > 0 else { return false }
        state.idleCount -= 1
        state.threadCount -= 1
        return true
      }
      if isOver { return false }
    }
  }
}
