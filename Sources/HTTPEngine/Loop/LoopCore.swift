import CCurl
import Glibc
import HTTPWire

/// The state of the thread of an ``EventLoop``: libcurl's multi handle, the transfers and the jobs. The state is a
/// class because a job that starts a transfer changes it while the loop, which runs the job, uses it.
final class LoopCore {
  /// The time without work after which the thread ends, in nanoseconds.
  private let lingering: UInt64
  /// In milliseconds. libcurl shortens it to its own next timeout.
  private static let longestPoll: UInt64 = 60_000
  static let pooledTransfers = 256

  unowned(unsafe) var owner: EventLoop!
  let multi: OpaquePointer?
  let poller = Poller()
  /// The number of times at which the inbox was read.
  @exclusivity(unchecked) private(set) var turn: UInt64 = 0
  @exclusivity(unchecked) var jobs: [LoopJob] = []
  @exclusivity(unchecked) private var runningJobs: [LoopJob] = []
  @exclusivity(unchecked) private var commands: [LoopCommand] = []
  @exclusivity(unchecked) var pool: [Transfer] = []
  @exclusivity(unchecked) var retiredHandles = RetiredHandles()
  let sessions = SessionShare()
  @exclusivity(unchecked) var transfers: [UInt64: Transfer] = [:]
  let hostQueues = HostQueues()
  /// libcurl's limit of connections to a host.
  @exclusivity(unchecked) var connectionLimit = 0
  let resolver = Resolver()
  let tokens = PendingTokens()
  let contexts = TLSContexts()
  let streams: LoopStreams
  private let engine: RequestEngine
  let exchanges = LoopExchanges()
  @exclusivity(unchecked) var throttle = SessionThrottle()
  @exclusivity(unchecked) var sockets = RetainedSockets()
  @exclusivity(unchecked) var presentedChains = PresentedChains()
  /// The time of this turn of the loop.
  @exclusivity(unchecked) var now: UInt64 = Clock.now()
  /// The time of the next search for expired transfers.
  @exclusivity(unchecked) var nextSweep: UInt64 = .max
  @exclusivity(unchecked) var hasStarted = false
  /// Whether bytes have moved in this turn.
  @exclusivity(unchecked) var hasMoved = false
  /// Whether a connection was made in this turn that other transfers may wait for.
  @exclusivity(unchecked) var hasNewConnection = false
  /// Whether libcurl may have missed the end of a stream of HTTP/2.
  @exclusivity(unchecked) var hasBrokenStreams = false
  /// The connections of HTTP/2 whose servers announced a limit of streams in this turn.
  @exclusivity(unchecked) var limitedConnections: [(HostQueues.Key, ConnectionRecord)] = []
  /// Whether a transfer has ended since the loop last yielded.
  @exclusivity(unchecked) var hasAnswered = false
  @exclusivity(unchecked) var isShutDown = false
  @exclusivity(unchecked) var spin = SpinGuard()
  @exclusivity(unchecked) var stalledPoll = StalledTransferPoll()
  private let continuationBatch = ContinuationBatch()

  init(lingering: UInt64, engine: RequestEngine) {
    self.engine = engine
    streams = LoopStreams(contexts)
    // Sums with times of the clock must not overflow.
    self.lingering = min(lingering, 1 << 62)
    multi = CurlLibrary.shared.isUsable ? WakeUpSockets.makeMulti().map { OpaquePointer($0) } : nil
    exchanges.core = self
  }

  // Connections are closed first because they can touch handles. TLS sessions are freed last because handles use them.
  // The thread may be any of the program, and the servers may have closed the connections meanwhile.
  deinit {
    EngineThread.withoutBrokenPipes {
      exchanges.close()
      if let multi { curl_multi_cleanup(UnsafeMutableRawPointer(multi)) }
      pool.removeAll()
      retiredHandles.removeAll()
    }
  }

  var rawMulti: UnsafeMutableRawPointer? { multi.map { UnsafeMutableRawPointer($0) } }

  // MARK: The loop

  /// Runs the loop on the current thread, until there is no work for a time or another thread takes over.
  ///
  /// - Parameter isBorrowed: Whether the thread belongs to a caller.
  func run(isBorrowed: Bool) {
    continuationBatch.serve()
    let lingering = isBorrowed ? 0 : lingering
    var nextHandOver = Clock.now() + Self.handOverInterval
    var idleSince = Clock.now()
    // Connections may have ended while the loop had no thread.
    lookAtSockets()
    while true {
      owner.takeInbox(jobs: &jobs, commands: &commands)
      // The clock is read after the inbox, so that no request begins before it was made.
      now = Clock.now()
      turn &+= 1
      if hasWork { idleSince = now }
      work()
      // Requests that were started after `drive()` are sent before the loop waits.
      if streams.isBusy || exchanges.isBusy || hasStarted || !jobs.isEmpty {
        // A busy loop does not wait, so that nothing else says which sockets are ready.
        lookAtSockets()
        continue
      }
      if transfers.isEmpty, streams.isEmpty, exchanges.isEmpty, isShutDown || now - idleSince >= lingering {
        continuationBatch.retire()
        if owner.retire() { return }
        continuationBatch.serve()
        lookAtSockets()
        continue
      }
      if isBorrowed, now >= nextHandOver {
        continuationBatch.retire()
        if owner.handOver() { return }
        continuationBatch.serve()
        nextHandOver = now + Self.handOverInterval
      }
      yieldAfterAnswers()
      wait(until: idleSince &+ lingering, atMost: isBorrowed ? Self.handOverInterval : nil)
    }
  }

  /// Does the work of one turn.
  private func work() {
    exchanges.lookAtSockets { poller.deliver() }
    runCommands()
    runJobs()
    if now >= throttle.releaseTime { continueThrottled() }
    if now >= hostQueues.releaseTime { startAdmitted(hostQueues.release(now)) }
    // A transfer that was started and cancelled in one turn must not keep an empty loop running.
    if transfers.isEmpty { hasStarted = false } else { drive() }
    if !streams.isEmpty { streams.turn(now) }
    exchanges.turn()
    runJobs()
    continuationBatch.resumeAll()
  }

  /// Asks which sockets are ready, without waiting. Each turn begins after such a question, so that a connection is not
  /// used again before its end, or unexpected bytes on it, are known.
  private func lookAtSockets() {
    if poller.isWatching { poller.wait(milliseconds: 0) }
  }

  private var hasWork: Bool {
    !jobs.isEmpty || !commands.isEmpty || !transfers.isEmpty || !streams.isEmpty || !exchanges.isEmpty
  }

  /// The interval at which a borrowed thread tries to start another one, in nanoseconds.
  private static let handOverInterval: UInt64 = 100_000_000

  /// Lets other threads run. A task that has just got a response often sends the next request at once. On a busy core,
  /// that saves both threads a sleep and a wake-up.
  private func yieldAfterAnswers() {
    guard hasAnswered else { return }
    hasAnswered = false
    sched_yield()
  }

  private func runJobs() {
    while !jobs.isEmpty {
      swap(&jobs, &runningJobs)
      // Taking the last element moves no others.
      runningJobs.reverse()
      while let job = runningJobs.popLast() {
        switch consume job {
        case .task(let step): step.runSynchronously(on: owner.asUnownedTaskExecutor())
        case .work(let work): work.runOnLoop()
        }
      }
    }
  }

  private func drive() {
    var running: Int32 = 0
    if hasStarted { stalledPoll.somethingHappened() }
    hasStarted = false
    let code = curl_multi_perform(rawMulti, &running)
    if code != CURLM_OK {
      failAll(
        TransportFailure(.unknown, "libcurl failed: \(String(cString: curl_multi_strerror(code)))"))
    }
    if hasNewConnection { wakeWaiting() }
    if !limitedConnections.isEmpty { startWithinLimits() }
    let ended = finishEnded()
    if hasBrokenStreams { endBroken() }
    if ended { hasAnswered = true }
    if now >= nextSweep { sweep() }
    let progressed = ended || hasStarted || hasMoved
    if progressed { stalledPoll.somethingHappened() }
    spin.turned(progressed: progressed, now: now)
    hasMoved = false
    if spin.isSpinning(now: now) { breakSpin() }
  }

  /// Waits for sockets, timers or new work.
  ///
  /// - Parameters:
  ///   - end: The time at which a loop without work gives its thread back.
  ///   - limit: The longest wait with work, in nanoseconds.
  private func wait(until end: UInt64, atMost limit: UInt64?) {
    poller.open()
    var next = min(end, exchanges.expiry)
    if !transfers.isEmpty || !streams.isEmpty || !exchanges.isEmpty {
      let timers = min(nextSweep, hostQueues.releaseTime, throttle.releaseTime)
      let requests = transfers.isEmpty && exchanges.isEmpty ? .max : timers
      next = min(requests, streams.expiry, exchanges.expiry)
    }
    let rest = next > now ? next - now : 0
    var milliseconds = min(limit.map { $0 / 1_000_000 } ?? Self.longestPoll, rest / 1_000_000 + 1)
    guard let rawMulti, !transfers.isEmpty else {
      let hasWaited = owner.waitUnlessPosted { poller.wait(milliseconds: Int32(milliseconds)) }
      if !hasWaited { lookAtSockets() }
      return
    }
    milliseconds = min(milliseconds, stalledPoll.pause())
    var readyCount: Int32 = 0
    var own = curl_waitfd(fd: poller.descriptor, events: Int16(POLLIN), revents: 0)
    let hasWaited = owner.waitUnlessPosted {
      _ = curl_multi_poll(rawMulti, &own, own.fd < 0 ? 0 : 1, Int32(milliseconds), &readyCount)
    }
    if own.revents != 0 {
      // Also if only the waker has an event, which would end the next wait at once.
      poller.wait(milliseconds: 0)
      readyCount -= 1
    } else if !hasWaited {
      lookAtSockets()
    }
    // The bytes that libcurl read may belong to another transfer of the connection.
    if readyCount > 0 { stalledPoll.somethingHappened() }
  }

  // MARK: Requests

  func submit(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: Transfer.Completion
  ) {
    guard !isShutDown else { return completion.call(with: .failure(Self.shutDown)) }
    if engine == .own {
      exchanges.submit(request, ticket: ticket, observer: observer, completion: completion)
    } else {
      submitTransfer(request, ticket: ticket, observer: observer, completion: completion)
    }
  }

  @exclusivity(unchecked) private var admitted: [UInt64] = []
  @exclusivity(unchecked) private var isStartingAdmitted = false

  /// Starts admitted requests. One that fails to start admits the next one. The loop is here so that a long
  /// queue does not become a deep recursion.
  func startAdmitted(_ tickets: [UInt64]) {
    admitted += tickets
    guard !isStartingAdmitted else { return }
    isStartingAdmitted = true
    var position = 0
    while position < admitted.count {
      let ticket = admitted[position]
      if let transfer = transfers[ticket] { start(transfer) } else { exchanges.startAdmitted(ticket) }
      position += 1
    }
    admitted.removeAll(keepingCapacity: true)
    isStartingAdmitted = false
  }

  // MARK: Commands

  private func runCommands() {
    guard !commands.isEmpty else { return }
    let batch = commands
    commands.removeAll(keepingCapacity: true)
    // The last command counts. If a transfer is resumed and suspended within one turn, libcurl reads although it is
    // paused, and loses the bytes.
    var suspensions: [UInt64: Bool] = [:]
    for command in batch {
      switch command {
      case .cancel(let ticket):
        guard let transfer = transfers[ticket] else {
          exchanges.cancel(ticket)
          continue
        }
        end(transfer, .failure(LoopExchanges.cancelled.with(metrics: transfer.metricsSoFar())))
      case .setSuspended(let ticket, let isSuspended): suspensions[ticket] = isSuspended
      case .setPriority(let ticket, let priority): prioritize(ticket, priority)
      case .proceed(let ticket):
        if let transfer = transfers[ticket] {
          if transfer.phase.isAdded, transfer.flow.proceed() { proceed(transfer) }
        } else {
          exchanges.proceed(ticket)
        }
      case .shutDown:
        isShutDown = true
        failAll(Self.shutDown)
        exchanges.failAll(Self.shutDown)
        streams.end(Self.shutDown)
      case .run(let body): body(self)
      }
    }
    for (ticket, isSuspended) in suspensions {
      if let transfer = transfers[ticket] {
        if isSuspended { suspend(transfer) } else { resume(transfer) }
      } else if let exchange = exchanges.exchanges[ticket] {
        if isSuspended { exchanges.suspend(exchange) } else { exchanges.resume(exchange) }
      }
    }
  }

  private func prioritize(_ ticket: UInt64, _ priority: Float) {
    guard let transfer = transfers[ticket] else { return exchanges.prioritize(ticket, priority) }
    transfer.priority = priority
    hostQueues.prioritize(transfer)
  }

  static let noMemory = TransportFailure(
    .resourceUnavailable, "There is no memory for another transfer.")

  private static let shutDown = TransportFailure(
    .shutDown, "The session of the request was released or invalidated.")

  func failAll(_ failure: TransportFailure) {
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      end(transfer, .failure(failure))
    }
  }
}
