import CCurl
import Glibc
package import HTTPWire
import Synchronization

/// One thread, one multi handle of libcurl, and the pipeline's jobs: the engine room of a session.
///
/// As a `TaskExecutor` it runs the tasks of the pipeline on the very thread that drives libcurl, so
/// that a request changes threads twice: on its way in and on its way out. The thread is started by
/// the first job and given back after five seconds without work; the connections stay for the next
/// one.
///
/// `enqueue` never refuses: a dropped job would leak its task and hang whoever waits for it.
package final class EventLoop: TaskExecutor, Sendable {
  /// What other threads leave for the loop. Guarded by the one lock of this class.
  struct Inbox {
    var jobs: [LoopJob] = []
    var commands: [LoopCommand] = []
    /// Whether a thread is running or about to run.
    var hasThread = false

    var isEmpty: Bool { jobs.isEmpty && commands.isEmpty }
  }

  /// What the loop waits for, and so what wakes it.
  enum Wait: UInt8 {
    case none
    /// Work alone.
    case sleep
    /// Work, or bytes of a transfer.
    case poll
  }

  private let inbox = Mutex(Inbox())
  /// Set by the loop before it waits; whoever takes it back wakes the loop.
  private let wait = Atomic<UInt8>(Wait.none.rawValue)
  /// The `pthread_t` of the running thread, 0 without one.
  private let thread = Atomic<UInt>(0)
  private let tickets = Atomic<UInt64>(0)
  /// Entries into the inbox by other threads: the crossings that tests and benchmarks count.
  private let crossings = Atomic<UInt64>(0)
  /// Everything that only the loop's thread touches. One thread at a time owns it: the one that set
  /// `hasThread`, and nobody else once that is false and the last reference to the loop is gone.
  nonisolated(unsafe) private let core: LoopCore

  /// Whether the system may be asked for a thread; tests say no.
  private let mayStartThread: @Sendable () -> Bool

  /// `lingering` is how long a loop without work keeps its thread.
  package init(
    lingering: Duration = .seconds(5), mayStartThread: @escaping @Sendable () -> Bool = { true }
  ) {
    self.mayStartThread = mayStartThread
    core = LoopCore(lingering: Clock.nanoseconds(lingering))
    core.owner = self
  }

  /// How often another thread has handed something to the loop.
  package var crossingCount: UInt64 { crossings.load(ordering: .relaxed) }

  /// Whether the caller is on the loop's thread.
  package var isCurrent: Bool {
    thread.load(ordering: .relaxed) == UInt(pthread_self())
  }

  /// The number of the loop's turn, on its own thread; `nil` elsewhere. What other threads have done before they asked for
  /// anything is done before the turn in which the loop finds that.
  package var turn: UInt64? { isCurrent ? core.turn : nil }

  package func enqueue(_ job: consuming ExecutorJob) {
    take(.task(UnownedJob(job)))
  }

  /// Has work run on the thread of the loop, soon, once, in the order in which it comes. From any thread.
  package func enqueue(_ work: any LoopWork) { take(.work(work)) }

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

  /// Hands a request to libcurl. Only on the loop's thread.
  func submit(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: Transfer.Completion
  ) {
    precondition(isCurrent, "a request is handed to the engine on its thread alone")
    core.submit(request, ticket: ticket, observer: observer, completion: completion)
  }

  /// Leaves a command for the loop, from any thread.
  func post(_ command: LoopCommand) {
    post { $0.commands.append(command) }
  }

  /// Leaves the end of the session for the loop. Without a thread there is nothing to end, so none is
  /// started.
  func postShutDown() {
    let hasThread = inbox.withLock { inbox in
      inbox.commands.append(.shutDown)
      return inbox.hasThread
    }
    if hasThread { wake() }
  }

  private func wake() {
    switch Wait(rawValue: wait.exchange(Wait.none.rawValue, ordering: .sequentiallyConsistent)) {
    case .sleep: core.sleep.wake()
    case .poll: core.wake()
    case .some(.none), nil: break
    }
  }

  private func post(_ leave: (inout Inbox) -> Void) {
    crossings.wrappingAdd(1, ordering: .relaxed)
    let needsThread = inbox.withLock { inbox in
      leave(&inbox)
      defer { inbox.hasThread = true }
      return !inbox.hasThread
    }
    if needsThread {
      startThread()
    } else {
      wake()
    }
  }

  /// What has been left since the last call.
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

  /// Waits by `body` unless something has been left in the inbox.
  func waitUnlessPosted(_ kind: Wait, _ body: () -> Void) {
    wait.store(kind.rawValue, ordering: .sequentiallyConsistent)
    if inbox.withLock({ $0.isEmpty }) { body() }
    wait.store(Wait.none.rawValue, ordering: .sequentiallyConsistent)
  }

  /// Gives the thread back unless something has just been left. From then on it must touch nothing.
  func retire() -> Bool {
    inbox.withLock { inbox in
      guard inbox.isEmpty else { return false }
      thread.store(0, ordering: .relaxed)
      inbox.hasThread = false
      return true
    }
  }

  private func startThread() {
    let context = Unmanaged.passRetained(self)
    guard !mayStartThread() || !LoopThread.start(context) else { return }
    // No thread is to be had. The caller becomes the loop until the work is done, or a thread can be had: slow, but
    // nothing is lost and no request hangs.
    context.release()
    runUntilIdle(isBorrowed: true)
  }

  /// Runs the loop.
  ///
  /// - Parameter isBorrowed: Whether the thread is that of a caller, which returns as soon as there is nothing to do.
  func runUntilIdle(isBorrowed: Bool = false) {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    core.run(isBorrowed: isBorrowed)
  }

  /// Starts a thread that takes the place of the calling one. If it returns `true`, the caller touches nothing of the loop
  /// any more.
  func handOver() -> Bool {
    let context = Unmanaged.passRetained(self)
    if mayStartThread(), LoopThread.start(context) { return true }
    context.release()
    return false
  }
}

/// What the loop runs on its thread for the pipelines of its session.
enum LoopJob {
  /// A step of a task.
  case task(UnownedJob)
  /// Work that needs no task.
  case work(any LoopWork)
}

/// What another thread may ask of the loop.
enum LoopCommand: Sendable {
  case cancel(ticket: UInt64)
  case setSuspended(ticket: UInt64, Bool)
  /// What a transfer has waited for is there: more to send, or room for what comes.
  case proceed(ticket: UInt64)
  /// Every transfer ends with `.shutDown`, and so does every later one.
  case shutDown
  /// Something of a stream of bytes.
  case run(@Sendable (LoopCore) -> Void)
}

/// Stops and starts a transfer of a loop.
struct LoopTransferControl: TransferControl {
  let loop: EventLoop
  let ticket: UInt64

  func suspend() { loop.post(.setSuspended(ticket: ticket, true)) }
  func resume() { loop.post(.setSuspended(ticket: ticket, false)) }
  func cancel() { loop.post(.cancel(ticket: ticket)) }
}
