import CLinux
import Glibc
import HTTPSystem
import HTTPWire

/// The addresses of names, as one loop knows them. Belongs to the loop's thread.
///
/// A name is looked up once for all that wait for it. Its addresses are cached for a minute, or until a connection to
/// them has failed. So a host that moves is found at its new address. A failed look-up is not cached. The minute goes
/// on while the machine sleeps, which may wake up in another network: the callers pass ``LoopState/elapsed``.
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

  /// A look-up that has not ended, with those that wait for it.
  private struct Lookup {
    /// The number of the work.
    var number: UInt64 = 0
    var waiters: [any Waiter]
  }

  private static let lifetime: UInt64 = 60_000_000_000
  private static let capacity = 1024

  /// Unowned, because this is a part of the loop.
  unowned(unsafe) var owner: EventLoop!
  @exclusivity(unchecked) private var known: [String: Entry] = [:]
  @exclusivity(unchecked) private var waiting: [String: Lookup] = [:]
  /// The threads and the function that look up names. Tests replace them.
  @exclusivity(unchecked) var threads = LookupThreads.shared
  @exclusivity(unchecked) var find: @Sendable (String) -> Answer = { HostLookup.lookUp($0) }

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
      waiting[host]?.waiters.append(waiter)
      return
    }
    waiting[host] = Lookup(waiters: [waiter])
    waiting[host]?.number = threads.run { [weak owner, find] in
      let answer = find(host)
      owner?.post(.run { $0.resolver.finished(host, answer, $0.elapsed) })
    }
  }

  /// Forgets an attempt that waits for a name. A look-up that has begun continues, because the system cannot end it,
  /// and serves later waiters. One that has not begun is dropped with its last waiter.
  func withdraw(_ waiter: any Waiter, from host: String) {
    waiting[host]?.waiters.removeAll { $0 === waiter }
    if let lookup = waiting[host], lookup.waiters.isEmpty, threads.withdraw(lookup.number) {
      waiting[host] = nil
    }
  }

  /// Forgets the addresses of a host, because connecting to them has failed.
  func forget(_ host: String) { known[host] = nil }

  /// Takes the answer of a look-up.
  func finished(_ host: String, _ answer: Answer, _ now: UInt64) {
    let waiters = waiting.removeValue(forKey: host)?.waiters ?? []
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
    var waiting = WaitingWork()
    var threadCount = 0
    /// The threads that wait at the semaphore and were not called.
    var idleCount = 0
  }

  /// Work in the order in which it came.
  private struct WaitingWork {
    private var work: [UInt64: Work] = [:]
    /// The numbers of the work. Those before `head` were taken, and those without work were withdrawn.
    private var order: [UInt64] = []
    private var head = 0
    private var last: UInt64 = 0

    /// Adds work. Returns its number.
    mutating func append(_ new: @escaping Work) -> UInt64 {
      last += 1
      work[last] = new
      order.append(last)
      return last
    }

    /// Removes and returns the first work; `nil` if there is none.
    mutating func takeFirst() -> Work? {
      while head < order.count {
        let first = work.removeValue(forKey: order[head])
        head += 1
        if let first {
          compact()
          return first
        }
      }
      order.removeAll(keepingCapacity: true)
      head = 0
      return nil
    }

    /// Removes work. Returns false if it is not there.
    mutating func remove(_ number: UInt64) -> Bool {
      guard work.removeValue(forKey: number) != nil else { return false }
      compact()
      return true
    }

    /// Removes the numbers that are not needed any more when they are more than half of all, so that each costs little.
    private mutating func compact() {
      guard order.count > 2 * work.count + 64 else { return }
      order = order[head...].filter { work[$0] != nil }
      head = 0
    }
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
  /// slow, but nothing waits for ever. Returns the number of the work.
  @discardableResult
  func run(_ work: @escaping Work) -> UInt64 {
    let (number, need) = state.withLock { state in
      let number = state.waiting.append(work)
      if state.idleCount > 0 {
        state.idleCount -= 1
        return (number, Need.call)
      }
      guard state.threadCount < mostThreads else { return (number, .none) }
      state.threadCount += 1
      return (number, .thread)
    }
    switch need {
    case .none: break
    case .call: sem_post(semaphore)
    case .thread: startThread()
    }
    return number
  }

  /// Removes work that no thread has begun. Returns false if one has.
  func withdraw(_ number: UInt64) -> Bool { state.withLock { $0.waiting.remove(number) } }

  private func startThread() {
    guard !mayStartThread() || !EngineThread.start("http-lookup", { [self] in serve() }) else { return }
    let isAlone = state.withLock { state in
      state.threadCount -= 1
      return state.threadCount == 0
    }
    while isAlone, let work = take() { work() }
  }

  private func take() -> Work? {
    state.withLock { $0.waiting.takeFirst() }
  }

  private func serve() {
    while true {
      let work = state.withLock { state -> Work? in
        if let work = state.waiting.takeFirst() { return work }
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
