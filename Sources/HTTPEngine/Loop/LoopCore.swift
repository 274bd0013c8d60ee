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
  private static let pooledTransfers = 256

  unowned(unsafe) var owner: EventLoop!
  let multi: OpaquePointer?
  let poller = Poller()
  /// The number of times at which the inbox was read.
  @exclusivity(unchecked) private(set) var turn: UInt64 = 0
  @exclusivity(unchecked) var jobs: [LoopJob] = []
  @exclusivity(unchecked) private var runningJobs: [LoopJob] = []
  @exclusivity(unchecked) private var commands: [LoopCommand] = []
  @exclusivity(unchecked) private var pool: [Transfer] = []
  @exclusivity(unchecked) var retiredHandles = RetiredHandles()
  let sessions = SessionShare()
  @exclusivity(unchecked) var transfers: [UInt64: Transfer] = [:]
  let hostQueues = HostQueues()
  let resolver = Resolver()
  let contexts = TLSContexts()
  let streams: LoopStreams
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
  @exclusivity(unchecked) private var hasAnswered = false
  @exclusivity(unchecked) private var isShutDown = false
  @exclusivity(unchecked) private var spin = SpinGuard()
  @exclusivity(unchecked) private var stalledPoll = StalledTransferPoll()
  private let continuationBatch = ContinuationBatch()

  init(lingering: UInt64) {
    streams = LoopStreams(contexts)
    // Sums with times of the clock must not overflow.
    self.lingering = min(lingering, 1 << 62)
    multi = CurlLibrary.shared.isUsable ? WakeUpSockets.makeMulti().map { OpaquePointer($0) } : nil
  }

  // Connections are closed first because they can touch handles. TLS sessions are freed last because handles use them.
  deinit {
    if let multi { curl_multi_cleanup(UnsafeMutableRawPointer(multi)) }
    pool.removeAll()
    retiredHandles.removeAll()
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
    while true {
      owner.takeInbox(jobs: &jobs, commands: &commands)
      // The clock is read after the inbox, so that no request begins before it was made.
      now = Clock.now()
      turn &+= 1
      let hadWork = !jobs.isEmpty || !commands.isEmpty || !transfers.isEmpty || !streams.isEmpty
      if hadWork { idleSince = now }
      runCommands()
      runJobs()
      if now >= throttle.releaseTime { continueThrottled() }
      if now >= hostQueues.releaseTime { startAdmitted(hostQueues.release(now)) }
      // A transfer that was started and cancelled in one turn must not keep an empty loop running.
      if transfers.isEmpty { hasStarted = false } else { drive() }
      poller.deliver()
      if !streams.isEmpty { streams.turn(now) }
      runJobs()
      continuationBatch.resumeAll()
      // Requests that were started after `drive()` are sent before the loop waits.
      if streams.isBusy || hasStarted || !jobs.isEmpty {
        // A busy loop does not wait, so that nothing else says which sockets are ready.
        if poller.isWatching { poller.wait(milliseconds: 0) }
        continue
      }
      if transfers.isEmpty, streams.isEmpty, isShutDown || now - idleSince >= lingering {
        continuationBatch.retire()
        if owner.retire() { return }
        continuationBatch.serve()
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
    var next = end
    if !transfers.isEmpty || !streams.isEmpty {
      let timers = min(nextSweep, hostQueues.releaseTime, throttle.releaseTime)
      next = min(transfers.isEmpty ? .max : timers, streams.expiry)
    }
    let rest = next > now ? next - now : 0
    var milliseconds = min(limit.map { $0 / 1_000_000 } ?? Self.longestPoll, rest / 1_000_000 + 1)
    guard let rawMulti, !transfers.isEmpty else {
      return owner.waitUnlessPosted { poller.wait(milliseconds: Int32(milliseconds)) }
    }
    milliseconds = min(milliseconds, stalledPoll.pause())
    var readyCount: Int32 = 0
    var own = curl_waitfd(fd: poller.descriptor, events: Int16(POLLIN), revents: 0)
    owner.waitUnlessPosted {
      _ = curl_multi_poll(rawMulti, &own, own.fd < 0 ? 0 : 1, Int32(milliseconds), &readyCount)
    }
    if own.revents != 0 {
      poller.wait(milliseconds: 0)
      readyCount -= 1
    }
    // The bytes that libcurl read may belong to another transfer of the connection.
    if readyCount > 0 { stalledPoll.somethingHappened() }
  }

  // MARK: Transfers

  func submit(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: Transfer.Completion
  ) {
    guard !isShutDown else {
      completion.call(with: .failure(Self.shutDown))
      return
    }
    guard rawMulti != nil, let transfer = pool.popLast() ?? Transfer(loop: self) else {
      completion.call(with: .failure(Self.noMemory))
      return
    }
    transfer.begin(request, ticket: ticket, observer: observer, completion: completion)
    transfers[ticket] = transfer
    nextSweep = min(nextSweep, transfer.expiry)
    switch observer.transferBegan(LoopTransferControl(loop: owner, ticket: ticket)) {
    // A transfer that only connects takes no place in the queue of its host.
    case .go: if request.connectsOnly || hostQueues.enqueue(transfer, now) { start(transfer) }
    // The transfer enters its queue when it is resumed, so that it does not delay other requests.
    case .hold: _ = transfer.flow.suspend()
    case .refuse: end(transfer, .failure(TransportFailure(.cancelled, "The request was cancelled.")))
    }
  }

  /// Adds an admitted transfer to libcurl's multi handle. A transfer that was suspended while it waited leaves the
  /// queue, and enters it again when it is resumed.
  private func start(_ transfer: Transfer) {
    guard let request = transfer.request, !isShutDown else { return }
    guard !transfer.flow.isSuspended else {
      transfer.phase = .withheld
      startAdmitted(hostQueues.remove(transfer, multiplexes: nil, now, isUnsent: true))
      return
    }
    if let failure = transfer.configure(request) {
      end(transfer, .failure(failure))
      return
    }
    guard transfer.prepareHandle() else {
      end(transfer, .failure(Self.noMemory))
      return
    }
    limitConnections(request.profile.connectionsPerHost)
    let code = curl_multi_add_handle(rawMulti, transfer.easy.raw)
    guard code == CURLM_OK else {
      end(transfer, .failure(TransportFailure(.unknown, String(cString: curl_multi_strerror(code)))))
      return
    }
    transfer.phase = .running(sharesConnection: transfer.mayShareConnection)
    transfer.phaseTimer?.begin()
    stalledPoll.transferStarted(sharesConnection: transfer.phase.sharesConnection)
    if transfer.timing.started == 0 { transfer.timing.started = now }
    // The time in the queue does not count as silence of the host.
    noteActivity(of: transfer)
    hasStarted = true
  }

  @exclusivity(unchecked) private var connectionLimit = 0

  /// Sets libcurl's limits of connections. The queues keep to the limit themselves. libcurl's own limit is for hosts
  /// that allow fewer streams a connection than usual, and costs nothing while no transfer waits for it.
  private func limitConnections(_ limit: Int) {
    guard limit != connectionLimit else { return }
    connectionLimit = limit
    if !CurlLibrary.shared.losesHostConnections {
      ccurl_multi_set_long(rawMulti, CURLMOPT_MAX_HOST_CONNECTIONS, limit)
    }
    ccurl_multi_set_long(rawMulti, CURLMOPT_MAXCONNECTS, max(64, limit + 8))
  }

  /// Wakes the waiting transfers: libcurl looks at them whenever a handle is removed.
  private func wakeWaiting() {
    hasNewConnection = false
    guard let handle = EasyHandle() else { return }
    handle.set(CURLOPT_URL, "http://localhost/")
    if curl_multi_add_handle(rawMulti, handle.raw) == CURLM_OK {
      curl_multi_remove_handle(rawMulti, handle.raw)
    }
  }

  private func finishEnded() -> Bool {
    var result = CURLE_OK
    var any = false
    while let easy = ccurl_next_ended(rawMulti, &result) {
      any = true
      let transfer = Transfer.of(ccurl_private(easy)).takeUnretainedValue()
      if transfer.mayRepeat(after: result) {
        sendAgain(transfer)
      } else if result == CURLE_OK, transfer.dropped == nil, let failure = transfer.missedTimeout() {
        end(transfer, .failure(failure))
      } else {
        end(transfer, transfer.outcome(result))
      }
    }
    return any
  }

  func sendAgain(_ transfer: Transfer) {
    removeHandle(of: transfer)
    transfer.prepareRepeat()
    start(transfer)
  }

  /// Removes a transfer from libcurl's multi handle.
  private func removeHandle(of transfer: Transfer) {
    guard transfer.phase.isAdded else { return }
    curl_multi_remove_handle(rawMulti, transfer.easy.raw)
    stalledPoll.transferEnded(sharesConnection: transfer.phase.sharesConnection)
    transfer.phase = .waiting
  }

  /// Removes a transfer from libcurl and its queue, starts the transfers that waited for it, and calls its completion.
  /// The completion is last because it can start another transfer.
  func end(_ transfer: Transfer, _ outcome: consuming Transfer.Outcome) {
    if !transfer.phase.isLent { removeHandle(of: transfer) }
    transfers[transfer.ticket] = nil
    let successors = hostQueues.remove(transfer, multiplexes: transfer.multiplexes, now)
    let completion = transfer.finish(&outcome)
    if !transfer.phase.isLent { recycle(transfer) }
    if !successors.isEmpty { startAdmitted(successors) }
    completion.call(with: outcome)
  }

  /// Takes back the handle and the connection of a transfer that were lent.
  func endLoan(of transfer: Transfer) {
    // If the outcome was not delivered yet, `end` removes the transfer.
    guard transfer.phase.endLoan(), transfers[transfer.ticket] !== transfer else { return }
    removeHandle(of: transfer)
    transfer.phase = .idle
    recycle(transfer)
  }

  private func recycle(_ transfer: Transfer) {
    if pool.count < Self.pooledTransfers { pool.append(transfer) } else { transfer.retireHandle() }
  }

  @exclusivity(unchecked) private var admitted: [UInt64] = []
  @exclusivity(unchecked) private var isStartingAdmitted = false

  /// Starts admitted transfers. A transfer that fails to start admits the next one. The loop is here so that a long
  /// queue does not become a deep recursion.
  func startAdmitted(_ tickets: [UInt64]) {
    admitted += tickets
    guard !isStartingAdmitted else { return }
    isStartingAdmitted = true
    var position = 0
    while position < admitted.count {
      if let next = transfers[admitted[position]] { start(next) }
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
        guard let transfer = transfers[ticket] else { continue }
        end(
          transfer,
          .failure(
            TransportFailure(.cancelled, "The request was cancelled.", metrics: transfer.metricsSoFar())))
      case .setSuspended(let ticket, let isSuspended): suspensions[ticket] = isSuspended
      case .setPriority(let ticket, let priority): prioritize(ticket, priority)
      case .proceed(let ticket):
        if let transfer = transfers[ticket], transfer.phase.isAdded, transfer.flow.proceed() {
          proceed(transfer)
        }
      case .shutDown:
        isShutDown = true
        failAll(Self.shutDown)
        streams.end(Self.shutDown)
      case .run(let body): body(self)
      }
    }
    for (ticket, isSuspended) in suspensions {
      guard let transfer = transfers[ticket] else { continue }
      if isSuspended { suspend(transfer) } else { resume(transfer) }
    }
  }

  private func prioritize(_ ticket: UInt64, _ priority: Float) {
    guard let transfer = transfers[ticket] else { return }
    transfer.priority = priority
    hostQueues.prioritize(transfer)
  }

  private static let noMemory = TransportFailure(
    .resourceUnavailable, "There is no memory for another transfer.")

  private static let shutDown = TransportFailure(
    .shutDown, "The session of the request was released or invalidated.")

  private func suspend(_ transfer: Transfer) {
    guard transfer.flow.suspend() else { return }
    noteActivity(of: transfer)
    // Callbacks hold a body back, because libcurl 7.88 may read once more after this call. The bytes of that read are
    // lost if the response ends with them. Before the head, no callback can pause. Without a connection, the call is
    // refused.
    guard transfer.phase.isAdded, transfer.response.assembly.head == nil else { return }
    let code = curl_easy_pause(transfer.easy.raw, CURLPAUSE_ALL)
    transfer.flow = code == CURLE_OK ? .stopped(.suspended) : .stopping
  }

  private func resume(_ transfer: Transfer) {
    guard transfer.flow.isSuspended else { return }
    let isStopped = transfer.flow.resume()
    if transfer.phase == .withheld {
      noteActivity(of: transfer)
      if hostQueues.enqueue(transfer, now) { start(transfer) }
    } else if transfer.phase.isAdded, isStopped {
      proceed(transfer)
    } else {
      noteActivity(of: transfer)
    }
  }

  /// Tells libcurl to continue.
  func proceed(_ transfer: Transfer) {
    noteActivity(of: transfer)
    hasStarted = true
    stalledPoll.transferContinued(sharesConnection: transfer.phase.sharesConnection)
    // libcurl delivers the bytes that it held back during this call, and the callbacks may refuse them.
    let code = curl_easy_pause(transfer.easy.raw, CURLPAUSE_CONT)
    // The connection can have been lost in the meantime. Then there is nothing to continue.
    if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { end(transfer, transfer.outcome(code)) }
  }

  private func noteActivity(of transfer: Transfer) {
    transfer.timing.lastActivity = now
    if transfer.phaseTimer != nil { transfer.alignPhaseTimer() }
    nextSweep = min(nextSweep, transfer.expiry)
  }

  private func failAll(_ failure: TransportFailure) {
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      end(transfer, .failure(failure))
    }
  }

  // MARK: Time

  /// Ends transfers that were silent or lasted too long, and computes the time of the next search.
  private func sweep() {
    nextSweep = .max
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      let expiry = transfer.expiry
      guard expiry <= now else {
        nextSweep = min(nextSweep, expiry)
        continue
      }
      // Nothing waits longer for the rest of a body that is not wanted.
      if let dropped = transfer.dropped, dropped.deadline <= now {
        end(transfer, transfer.outcome(CURLE_OK))
        continue
      }
      guard let failure = transfer.timeout() else {
        nextSweep = min(nextSweep, transfer.expiry)
        continue
      }
      end(transfer, .failure(failure))
    }
  }

  /// Ends the transfer that keeps the loop busy without moving a byte.
  private func breakSpin() {
    let suspects = transfers.values.filter(\.phase.isAdded)
    let answered = suspects.filter {
      $0.response.assembly.head != nil && $0.count.sent < $0.count.expectedToSend
    }
    let stuck = (answered.isEmpty ? suspects : answered).min {
      $0.timing.lastActivity < $1.timing.lastActivity
    }
    spin = SpinGuard()
    guard let stuck else { return }
    let message =
      "The transfer kept the processor busy without moving a byte and was ended; HTTP/1.1 (httpVersions) may help."
    end(stuck, .failure(TransportFailure(.connectionLost, message, metrics: stuck.metricsSoFar())))
  }
}
