import CLinux
import Dispatch
import Glibc
import HTTPSystem
package import HTTPWire
import Synchronization

/// The event loop of a session: one thread, the sockets that it watches, and the jobs of requests.
///
/// As a `TaskExecutor` it runs the tasks of attempts on the thread that reads and writes the sockets. Therefore a
/// request changes threads twice: when it enters the loop and when its response leaves. The first job starts the
/// thread. The thread ends after five seconds without work, and the connections stay open for the next one. If their
/// time is over before, a thread is started only to close them.
///
/// `enqueue` never refuses a job, because a dropped job would leak its task and its caller would wait forever.
package final class EventLoop: TaskExecutor, Sendable {
  /// The jobs and commands from other threads. The one lock of this class guards them.
  struct Inbox {
    var jobs: [LoopJob] = []
    var commands: [LoopCommand] = []
    /// Whether a thread runs or is about to run.
    var hasThread = false
    /// Whether the last thread has left open connections behind.
    var hasConnections = false
    /// The time at which a timer starts a thread to close them, on the monotonic clock.
    var sweepTime = UInt64.max

    var isEmpty: Bool { jobs.isEmpty && commands.isEmpty }
  }

  /// The jobs and commands that wait for the loop, and whether it has a thread, for any thread.
  private let inbox = TrackedMutex(Inbox())
  /// Set by the loop before it waits. The thread that resets it wakes the loop.
  private let isWaiting = Atomic<Bool>(false)
  /// The `pthread_t` of the running thread, 0 without one.
  private let thread = Atomic<UInt>(0)
  /// The number of the last ticket.
  private let tickets = Atomic<UInt64>(0)
  /// The number of times at which another thread used the inbox. Tests and benchmarks count these thread hops.
  private let threadHops = Atomic<UInt64>(0)
  /// The state of the loop's thread. One thread at a time owns it: the one for which `hasThread` was set. If
  /// `hasThread` is false and the last reference to the loop is gone, no thread does.
  nonisolated(unsafe) private let core: LoopCore

  /// Whether the system may be asked for a thread. Tests return false.
  private let mayStartThread: @Sendable () -> Bool

  /// Makes a loop that keeps its thread for `lingering` while it has no work.
  package init(
    lingering: Duration = .seconds(5),
    mayStartThread: @escaping @Sendable () -> Bool = { true }
  ) {
    self.mayStartThread = mayStartThread
    core = LoopCore(lingering: Clock.nanoseconds(lingering))
    core.owner = self
    core.resolver.owner = self
    core.tokens.owner = self
  }

  /// The number of times at which another thread has left a job or command.
  package var threadHopCount: UInt64 { threadHops.load(ordering: .relaxed) }

  /// Whether the caller is on the loop's thread.
  package var isCurrent: Bool {
    thread.load(ordering: .relaxed) == UInt(pthread_self())
  }

  /// The number of the loop's turn on its own thread; `nil` on other threads. If another thread leaves a job,
  /// everything that it did before is done before the turn in which the loop takes that job.
  package var turn: UInt64? { isCurrent ? core.turn : nil }

  package func enqueue(_ job: consuming ExecutorJob) {
    take(.task(UnownedJob(job)))
  }

  /// Runs work on the loop's thread, once and in the order of the calls. Callable from any thread.
  package func enqueue(_ work: any LoopWork) { take(.work(work)) }

  /// Runs work on the loop's thread as ``enqueue(_:)`` does, but not before the handlers of the current turn are
  /// called, even if the caller is on that thread.
  package func enqueueForNextTurn(_ work: any LoopWork) { post { $0.jobs.append(.work(work)) } }

  private func take(_ job: LoopJob) {
    if isCurrent {
      core.jobs.append(job)
    } else {
      post { $0.jobs.append(job) }
    }
  }

  func nextTicket() -> UInt64 {
    tickets.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Begins an exchange. Only on the loop's thread.
  func submit(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    precondition(isCurrent, "a request is handed to the engine on its thread alone")
    core.submit(request, ticket: ticket, observer: observer, completion: completion)
  }

  /// Leaves a command for the loop. Callable from any thread.
  func post(_ command: LoopCommand) {
    post { $0.commands.append(command) }
  }

  /// Notifies the loop that its session has ended. Without a thread there are no transfers to end, so one is started
  /// only to close connections.
  func postShutDown() {
    let isOver = inbox.withLock { inbox in
      guard !inbox.hasThread, !inbox.hasConnections else { return false }
      inbox.commands.append(.shutDown)
      return true
    }
    if !isOver { post(.shutDown) }
  }

  private func wake() {
    if isWaiting.exchange(false, ordering: .sequentiallyConsistent) { core.poller.wake() }
  }

  private func post(_ change: (inout Inbox) -> Void) {
    threadHops.wrappingAdd(1, ordering: .relaxed)
    let needsThread = inbox.withLock { inbox in
      change(&inbox)
      defer { inbox.hasThread = true }
      return !inbox.hasThread
    }
    if needsThread {
      startThread()
    } else {
      wake()
    }
  }

  /// Takes the jobs and commands that were left since the last call.
  func takeInbox(jobs: inout [LoopJob], commands: inout [LoopCommand]) {
    inbox.withLock { inbox in
      if jobs.isEmpty {
        swap(&jobs, &inbox.jobs)
      } else {
        jobs.append(contentsOf: inbox.jobs)
        inbox.jobs.removeAll(keepingCapacity: true)
      }
      if !inbox.commands.isEmpty { swap(&commands, &inbox.commands) }
    }
  }

  /// Waits by calling `body`, unless the inbox holds jobs or commands. Returns whether it has waited.
  func waitUnlessPosted(_ body: () -> Void) -> Bool {
    isWaiting.store(true, ordering: .sequentiallyConsistent)
    let waits = inbox.withLock { $0.isEmpty }
    if waits { body() }
    isWaiting.store(false, ordering: .sequentiallyConsistent)
    return waits
  }

  /// Gives the thread back, unless the inbox holds jobs or commands. After `true`, the thread must not touch the loop
  /// any more.
  ///
  /// - Parameters:
  ///   - hasConnections: Whether the thread leaves open connections behind.
  ///   - sweepTime: The time at which the first of them is to be closed, on the monotonic clock.
  func retire(hasConnections: Bool, sweepTime: UInt64) -> Bool {
    let (isDone, needsTimer) = inbox.withLock { inbox in
      guard inbox.isEmpty else { return (false, false) }
      inbox.hasConnections = hasConnections
      thread.store(0, ordering: .relaxed)
      inbox.hasThread = false
      guard hasConnections, sweepTime < inbox.sweepTime else { return (true, false) }
      inbox.sweepTime = sweepTime
      return (true, true)
    }
    if needsTimer { sweepLater(sweepTime) }
    return isDone
  }

  /// Starts a thread at a time to close connections, unless the loop is gone by then.
  private func sweepLater(_ time: UInt64) {
    let now = Clock.now()
    let rest = time > now ? time - now : 0
    // A moment later, so that the time is over by every clock.
    let wait = DispatchTimeInterval.milliseconds(Int(clamping: rest / 1_000_000) + 2)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + wait) { [weak self] in
      self?.sweep(time)
    }
  }

  private func sweep(_ time: UInt64) {
    let isCurrent = inbox.withLock { inbox in
      guard inbox.sweepTime == time else { return false }
      inbox.sweepTime = .max
      return !inbox.hasThread && inbox.hasConnections
    }
    if isCurrent { post(.run { _ in }) }
  }

  private func startThread() {
    guard !handOver() else { return }
    // The system has no thread left. The caller runs the loop until the work is done or a thread can be started. The
    // loop is slow on the thread of a caller, but no request is lost.
    EngineThread.withoutBrokenPipes { runUntilIdle(isBorrowed: true) }
  }

  /// Runs the loop.
  ///
  /// - Parameter isBorrowed: Whether the thread belongs to a caller, which returns as soon as there is nothing to do.
  func runUntilIdle(isBorrowed: Bool = false) {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    core.run(isBorrowed: isBorrowed)
  }

  /// Starts a thread for the loop, perhaps to replace the calling one. After `true`, the caller must not touch the loop
  /// any more.
  func handOver() -> Bool {
    // The caller is not the loop's thread any more, and the new one says so itself when it begins.
    let caller = thread.exchange(0, ordering: .relaxed)
    if mayStartThread(), EngineThread.start("http-engine", { [self] in runUntilIdle() }) { return true }
    thread.store(caller, ordering: .relaxed)
    return false
  }
}

/// A job of a request, which the loop runs on its thread.
enum LoopJob {
  /// A step of a task.
  case task(UnownedJob)
  /// Work that does not need a task.
  case work(any LoopWork)
}

/// A command of another thread.
enum LoopCommand: Sendable {
  case cancel(ticket: UInt64)
  case setSuspended(ticket: UInt64, Bool)
  /// Changes the queue position of a waiting transfer.
  case setPriority(ticket: UInt64, Float)
  /// The source of a transfer has more bytes, or its sink has room.
  case proceed(ticket: UInt64)
  /// Ends every transfer with `.shutDown`, now and later.
  case shutDown
  /// An operation of a stream of bytes.
  case run(@Sendable (LoopCore) -> Void)
}

/// The control of one transfer of a loop.
struct LoopTransferControl: TransferControl {
  let loop: EventLoop
  let ticket: UInt64

  func suspend() { loop.post(.setSuspended(ticket: ticket, true)) }
  func resume() { loop.post(.setSuspended(ticket: ticket, false)) }
  func cancel() { loop.post(.cancel(ticket: ticket)) }
  func setPriority(_ priority: Float) { loop.post(.setPriority(ticket: ticket, priority)) }
}

/// The clocks of the engine: the monotonic clock for timeouts, one that goes on while the machine sleeps for ages, and
/// the calendar's.
package enum Clock {
  /// Returns the monotonic time in nanoseconds.
  @inline(__always)
  package static func now() -> UInt64 {
    MonotonicTime.now.nanoseconds
  }

  /// Returns the time after a duration, at most the end of the clock.
  package static func now(plus duration: Duration) -> UInt64 {
    (MonotonicTime.now + duration).nanoseconds
  }

  /// Returns the time since the system started, in nanoseconds. Unlike the monotonic time, it goes on while the machine
  /// sleeps.
  package static func sinceBoot() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// Returns the seconds since 1970.
  @inline(__always)
  package static func wall() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  /// Returns a duration in nanoseconds: 0 if it is negative, and the maximum if it is longer than 500 years.
  package static func nanoseconds(_ duration: Duration) -> UInt64 {
    duration.wholeNanoseconds
  }
}

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

  /// Runs `body` on a separate, detached thread. Returns false if the system has no thread left.
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

  /// Runs `body` on a thread of the program, without the SIGPIPE that would end the process when the reader of a file
  /// is gone, such as a file of the caller that is a pipe. The mask of the thread is restored afterwards.
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

  /// Blocks signals, because the program's handlers must not run on this thread. SIGPIPE would end the process when the
  /// reader of a file is gone, such as a pipe of the caller.
  private static func blockSignals() {
    var signals = sigset_t()
    sigfillset(&signals)
    for fault in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF] { sigdelset(&signals, fault) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
