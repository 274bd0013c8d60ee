import CCurl
import Glibc
import HTTPWire

/// What belongs to the thread of an ``EventLoop``: libcurl's multi handle, the transfers, the jobs.
/// A class, reached through one reference: as a struct, a job that starts a transfer would collide
/// with the loop that runs the job.
final class LoopCore {
  /// A loop without work gives its thread back after this long.
  private let lingering: UInt64
  /// In milliseconds; libcurl shortens it to its own next timeout.
  private static let longestPoll: UInt64 = 60_000
  private static let pooledTransfers = 256

  unowned(unsafe) var owner: EventLoop!
  let multi: OpaquePointer?
  let sleep = LoopSleep()
  /// How often the inbox has been looked into.
  @exclusivity(unchecked) private(set) var turn: UInt64 = 0
  @exclusivity(unchecked) var jobs: [LoopJob] = []
  @exclusivity(unchecked) private var runningJobs: [LoopJob] = []
  @exclusivity(unchecked) private var commands: [LoopCommand] = []
  @exclusivity(unchecked) private var pool: [Transfer] = []
  @exclusivity(unchecked) var retiredHandles = RetiredHandles()
  let sessions = SessionShare()
  @exclusivity(unchecked) var transfers: [UInt64: Transfer] = [:]
  let hostQueues = HostQueues()
  let streams = LoopStreams()
  @exclusivity(unchecked) var sockets = RetainedSockets()
  @exclusivity(unchecked) var presentedChains = PresentedChains()
  /// The time of this turn of the loop.
  @exclusivity(unchecked) var now: UInt64 = Clock.now()
  /// When the expiries of the transfers have to be looked at again.
  @exclusivity(unchecked) var nextSweep: UInt64 = .max
  @exclusivity(unchecked) var hasStarted = false
  /// Whether a callback has seen bytes in this turn.
  @exclusivity(unchecked) var hasMoved = false
  /// Whether a connection was made in this turn for which other transfers may wait.
  @exclusivity(unchecked) var hasNewConnection = false
  /// Whether streams of HTTP/2 may be over that libcurl has not ended.
  @exclusivity(unchecked) var hasBrokenStreams = false
  /// Connections of HTTP/2 whose servers said in this turn how many streams they take.
  @exclusivity(unchecked) var limitedConnections: [(HostQueues.Key, ConnectionRecord)] = []
  /// Whether a transfer has ended since the loop last yielded.
  @exclusivity(unchecked) private var hasAnswered = false
  @exclusivity(unchecked) private var isShutDown = false
  @exclusivity(unchecked) private var spin = SpinGuard()
  @exclusivity(unchecked) private var stalledPoll = StalledTransferPoll()
  private let continuationBatch = ContinuationBatch()

  init(lingering: UInt64) {
    // Far enough from the end of the clock that sums of both are times.
    self.lingering = min(lingering, 1 << 62)
    multi = CurlLibrary.shared.isUsable ? WakeUpSockets.makeMulti().map { OpaquePointer($0) } : nil
  }

  // Connections are closed first: they can touch handles. Sessions are freed last: handles use them.
  deinit {
    if let multi { curl_multi_cleanup(UnsafeMutableRawPointer(multi)) }
    pool.removeAll()
    retiredHandles.removeAll()
  }

  var rawMulti: UnsafeMutableRawPointer? { multi.map { UnsafeMutableRawPointer($0) } }

  func wake() {
    if let rawMulti { curl_multi_wakeup(rawMulti) }
  }

  // MARK: The loop

  /// - Parameter isBorrowed: Whether the thread is that of a caller.
  func run(isBorrowed: Bool) {
    continuationBatch.serve()
    let lingering = isBorrowed ? 0 : lingering
    var nextHandOver = Clock.now() + Self.handOverInterval
    var idleSince = Clock.now()
    while true {
      owner.takeInbox(jobs: &jobs, commands: &commands)
      // Behind the inbox: the time of no request begins before the request was made.
      now = Clock.now()
      turn &+= 1
      let hadWork = !jobs.isEmpty || !commands.isEmpty || !transfers.isEmpty || !streams.isEmpty
      if hadWork { idleSince = now }
      runCommands()
      runJobs()
      // A transfer that was started and cancelled at once must not keep an empty loop turning.
      if transfers.isEmpty { hasStarted = false } else { drive() }
      if !streams.isEmpty { streams.turn(now) }
      runJobs()
      continuationBatch.announce()
      // What has been started since libcurl was last driven is sent before the loop waits.
      if hasStarted || !jobs.isEmpty || streams.isBusy { continue }
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

  /// How often a thread that was borrowed looks for another one to take its place.
  private static let handOverInterval: UInt64 = 100_000_000

  /// Whoever has just got a response often asks for the next thing at once. On a busy core the loop lets
  /// them do so before it goes to sleep, which spares both sides a sleep and a waking.
  private func yieldAfterAnswers() {
    guard hasAnswered else { return }
    hasAnswered = false
    sched_yield()
  }

  private func runJobs() {
    while !jobs.isEmpty {
      swap(&jobs, &runningJobs)
      // To take the last one copies nothing.
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
        TransportFailure(.unknown, "libcurl could not work: \(String(cString: curl_multi_strerror(code)))"))
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

  /// - Parameters:
  ///   - end: When a loop without work has to give its thread back.
  ///   - limit: The longest wait for transfers, in nanoseconds.
  private func wait(until end: UInt64, atMost limit: UInt64?) {
    guard let rawMulti, !transfers.isEmpty || !streams.isEmpty else {
      if end > now { owner.waitUnlessPosted(.sleep) { sleep.sleep(nanoseconds: end - now) } }
      return
    }
    let next = min(transfers.isEmpty ? .max : nextSweep, streams.expiry)
    let rest = next > now ? next - now : 0
    var milliseconds = min(limit.map { $0 / 1_000_000 } ?? Self.longestPoll, rest / 1_000_000 + 1)
    milliseconds = min(milliseconds, stalledPoll.pause())
    var readyCount: Int32 = 0
    owner.waitUnlessPosted(.poll) {
      streams.withSockets { sockets, count in
        _ = curl_multi_poll(rawMulti, sockets, count, Int32(milliseconds), &readyCount)
      }
    }
    // What was read may have been another's.
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
    // One that sends nothing holds up nobody's request, and waits for none.
    case .go: if request.connectsOnly || hostQueues.enqueue(transfer) { start(transfer) }
    // It enters its queue when it is resumed, and takes no other request's turn until then.
    case .hold: _ = transfer.flow.suspend()
    case .refuse: end(transfer, .failure(TransportFailure(.cancelled, "The request was cancelled.")))
    }
  }

  /// Hands a transfer that its queue has admitted to libcurl. One that was suspended while it waited
  /// gives its turn away, and asks for another when it is resumed.
  private func start(_ transfer: Transfer) {
    guard let request = transfer.request, !isShutDown else { return }
    guard !transfer.flow.isSuspended else {
      transfer.phase = .withheld
      startAdmitted(hostQueues.remove(transfer, multiplexes: nil))
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
    stalledPoll.transferStarted(sharesConnection: transfer.phase.sharesConnection)
    // Its time in the queue was not the host's silence.
    noteActivity(of: transfer)
    hasStarted = true
  }

  @exclusivity(unchecked) private var connectionLimit = 0

  /// The queues keep to the limit; libcurl's own is the net beneath them, for hosts that take fewer
  /// streams a connection than is usual. It costs nothing as long as nobody waits for it.
  private func limitConnections(_ limit: Int) {
    guard limit != connectionLimit else { return }
    connectionLimit = limit
    if !CurlLibrary.shared.losesHostConnections {
      ccurl_multi_set_long(rawMulti, CURLMOPT_MAX_HOST_CONNECTIONS, limit)
    }
    ccurl_multi_set_long(rawMulti, CURLMOPT_MAXCONNECTS, max(64, limit + 8))
  }

  /// libcurl looks at its waiting transfers whenever a handle is removed.
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
      } else {
        end(transfer, transfer.outcome(result))
      }
    }
    return any
  }

  func sendAgain(_ transfer: Transfer) {
    takeBack(transfer)
    transfer.prepareRepeat()
    start(transfer)
  }

  /// Takes a transfer out of libcurl's hands.
  private func takeBack(_ transfer: Transfer) {
    guard transfer.phase.isAdded else { return }
    curl_multi_remove_handle(rawMulti, transfer.easy.raw)
    stalledPoll.transferEnded(sharesConnection: transfer.phase.sharesConnection)
    transfer.phase = .waiting
  }

  /// Takes a transfer from libcurl and its queue, starts what waited for it, and calls its completion: last, because that
  /// can start another transfer.
  func end(_ transfer: Transfer, _ outcome: consuming Transfer.Outcome) {
    if !transfer.phase.isLent { takeBack(transfer) }
    transfers[transfer.ticket] = nil
    let successors = hostQueues.remove(transfer, multiplexes: transfer.multiplexes)
    let completion = transfer.finish(&outcome)
    if !transfer.phase.isLent { keep(transfer) }
    if !successors.isEmpty { startAdmitted(successors) }
    completion.call(with: outcome)
  }

  /// The handle and the connection of an ended transfer are needed no more.
  func giveBack(_ transfer: Transfer) {
    // A transfer whose outcome is still to be told is taken back then.
    guard transfer.phase.endLoan(), transfers[transfer.ticket] !== transfer else { return }
    takeBack(transfer)
    transfer.phase = .idle
    keep(transfer)
  }

  private func keep(_ transfer: Transfer) {
    if pool.count < Self.pooledTransfers { pool.append(transfer) } else { transfer.retireHandle() }
  }

  @exclusivity(unchecked) private var admitted: [UInt64] = []
  @exclusivity(unchecked) private var isStartingAdmitted = false

  /// A transfer that cannot even start admits the next one; a long queue of them must not become a
  /// deep recursion.
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
    // The last command counts: if a transfer is resumed and suspended within one turn, libcurl remembers that it has to
    // read, and forgets what it reads.
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

  private static let noMemory = TransportFailure(
    .resourceUnavailable, "There is no memory for another transfer.")

  private static let shutDown = TransportFailure(
    .shutDown, "The session of the request was released or invalidated.")

  private func suspend(_ transfer: Transfer) {
    guard transfer.flow.suspend() else { return }
    noteActivity(of: transfer)
    // Callbacks hold a body back: libcurl 7.88 may read once more after this call, and forgets what it read then if the
    // response ends with it. Before the head, no callback can pause. Without a connection, the call is refused.
    guard transfer.phase.isAdded, transfer.response.assembly.head == nil else { return }
    let code = curl_easy_pause(transfer.easy.raw, CURLPAUSE_ALL)
    transfer.flow = code == CURLE_OK ? .stopped(.suspended) : .stopping
  }

  private func resume(_ transfer: Transfer) {
    guard transfer.flow.isSuspended else { return }
    let isStopped = transfer.flow.resume()
    if transfer.phase == .withheld {
      noteActivity(of: transfer)
      if hostQueues.enqueue(transfer) { start(transfer) }
    } else if transfer.phase.isAdded, isStopped {
      proceed(transfer)
    } else {
      noteActivity(of: transfer)
    }
  }

  /// Tells libcurl to continue.
  private func proceed(_ transfer: Transfer) {
    noteActivity(of: transfer)
    hasStarted = true
    // What was held back is handed over in this call, and may be refused.
    let code = curl_easy_pause(transfer.easy.raw, CURLPAUSE_CONT)
    // The connection can have been lost in the meantime. Then there is nothing to continue.
    if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { end(transfer, transfer.outcome(code)) }
  }

  private func noteActivity(of transfer: Transfer) {
    transfer.timing.lastActivity = now
    nextSweep = min(nextSweep, transfer.expiry)
  }

  private func failAll(_ failure: TransportFailure) {
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      end(transfer, .failure(failure))
    }
  }

  // MARK: Time

  /// Ends what has been silent or has lasted too long, and finds out when to look again.
  private func sweep() {
    nextSweep = .max
    for transfer in Array(transfers.values) where transfers[transfer.ticket] === transfer {
      let expiry = transfer.expiry
      guard expiry <= now else {
        nextSweep = min(nextSweep, expiry)
        continue
      }
      end(transfer, .failure(transfer.timeout()))
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
