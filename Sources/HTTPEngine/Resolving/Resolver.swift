import CLinux
import Glibc
import HTTPSystem
import HTTPWire

/// The addresses of names, as one loop knows them. Belongs to the loop's thread.
///
/// A name is looked up once for all that wait for it. Its addresses are cached for a minute, or until a connection to
/// them has failed. So a host that moves is found at its new address. A failed look-up is not cached.
final class Resolver {
  typealias Answer = Result<[IPAddress], HostLookup.Failure>

  /// An attempt that waits for the addresses of a name.
  protocol Waiter: AnyObject {
    func resolved(_ answer: Answer)
  }

  private struct Entry {
    let addresses: [IPAddress]
    let end: UInt64
  }

  private static let lifetime: UInt64 = 60_000_000_000
  private static let capacity = 1024

  /// Unowned, because this is a part of the loop.
  unowned(unsafe) var owner: EventLoop!
  @exclusivity(unchecked) private var known: [String: Entry] = [:]
  @exclusivity(unchecked) private var waiting: [String: [any Waiter]] = [:]

  /// Returns the addresses of a host if no look-up is needed for them.
  func knownAddresses(of host: String, _ now: UInt64) -> [IPAddress]? {
    if let addresses = IPAddress.loopback(of: host) { return addresses }
    if let entry = known[host] {
      if entry.end > now { return entry.addresses }
      known[host] = nil
    }
    let literals = HostLookup.addresses(of: host, literalsOnly: true)
    return literals.isEmpty ? nil : literals
  }

  /// Looks up a name, and answers in a later turn of the loop.
  func lookUp(_ host: String, for waiter: any Waiter) {
    guard waiting[host] == nil else {
      waiting[host]?.append(waiter)
      return
    }
    waiting[host] = [waiter]
    LookupThreads.shared.run { [weak owner] in
      let answer = HostLookup.lookUp(host)
      owner?.post(.run { $0.resolver.finished(host, answer, $0.now) })
    }
  }

  /// Forgets an attempt that waits for a name. The look-up itself continues, because the system cannot end it.
  func withdraw(_ waiter: any Waiter, from host: String) {
    waiting[host]?.removeAll { $0 === waiter }
  }

  /// Forgets the addresses of a host, because connecting to them has failed.
  func forget(_ host: String) { known[host] = nil }

  /// Takes the answer of a look-up.
  func finished(_ host: String, _ answer: Answer, _ now: UInt64) {
    let waiters = waiting.removeValue(forKey: host) ?? []
    if case .success(let addresses) = answer, !addresses.isEmpty { keep(addresses, of: host, now) }
    for waiter in waiters { waiter.resolved(answer) }
  }

  private func keep(_ addresses: [IPAddress], of host: String, _ now: UInt64) {
    if known.count >= Self.capacity {
      known = known.filter { $0.value.end > now }
      if known.count >= Self.capacity { known.removeAll() }
    }
    known[host] = Entry(addresses: addresses, end: now + Self.lifetime)
  }
}

/// The threads of the process on which names are looked up, because `getaddrinfo` blocks its caller.
///
/// A thread is started when all others are busy, up to a limit, and ends after some seconds without work. With a
/// resolver that does not answer, work waits for a thread. The attempts that wait for it have their own time limits.
final class LookupThreads: Sendable {
  typealias Work = @Sendable () -> Void

  static let shared = LookupThreads()

  /// The time for which a thread waits for work, in seconds.
  private static let lingering: Int32 = 5

  private struct State {
    var waiting: [Work] = []
    var threadCount = 0
    /// The threads that wait at the semaphore and were not called.
    var idleCount = 0
  }

  private enum Need { case none, call, thread }

  /// The look-ups that wait, and the number of threads, for loops and these threads.
  private let state = TrackedMutex(State())
  // `nonisolated(unsafe)` because it is a pointer, which never changes. Any thread may use a POSIX semaphore.
  private nonisolated(unsafe) let semaphore: UnsafeMutablePointer<sem_t>

  private let mostThreads: Int
  /// Whether the system may be asked for a thread. Tests return false.
  private let mayStartThread: @Sendable () -> Bool

  init(mostThreads: Int = 16, mayStartThread: @escaping @Sendable () -> Bool = { true }) {
    self.mostThreads = mostThreads
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
      guard state.threadCount < mostThreads else { return .none }
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
