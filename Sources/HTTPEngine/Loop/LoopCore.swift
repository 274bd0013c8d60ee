import CLinux
import Glibc
package import HTTPWire

/// The state of the thread of an ``EventLoop``: the requests, the streams of bytes and the jobs. The state is a class
/// because a job that starts a request changes it while the loop, which runs the job, uses it.
final class LoopCore {
  /// The time without work after which the thread ends, in nanoseconds.
  private let lingering: UInt64
  /// The longest wait, in milliseconds.
  private static let longestPoll: UInt64 = 60_000

  /// Unowned, because the owner outlives what it owns.
  unowned(unsafe) var owner: EventLoop!
  let poller = Poller()
  /// The number of times at which the inbox was read.
  @exclusivity(unchecked) private(set) var turn: UInt64 = 0
  @exclusivity(unchecked) var jobs: [LoopJob] = []
  @exclusivity(unchecked) private var runningJobs: [LoopJob] = []
  @exclusivity(unchecked) private var commands: [LoopCommand] = []
  let state = LoopState()
  let hostQueues: HostQueues
  let resolver = Resolver()
  let tokens = PendingTokens()
  /// The counts of the nonces with which proxies have asked for logins by Digest.
  @exclusivity(unchecked) var proxyNonces = NonceCounts()
  let contexts = TLSContexts()
  let streams: LoopStreams
  let exchanges: LoopExchanges
  @exclusivity(unchecked) var throttle = SessionThrottle()
  private let deliveries = DeliveryBatch()

  init(lingering: UInt64) {
    streams = LoopStreams(contexts, state)
    hostQueues = HostQueues()
    exchanges = LoopExchanges(state, hostQueues)
    // Sums with times of the clock must not overflow.
    self.lingering = min(lingering, 1 << 62)
    exchanges.core = self
  }

  deinit { exchanges.close() }

  /// The time of this turn of the loop.
  var now: UInt64 { state.now }
  /// The time of this turn for ages: ``LoopState/elapsed``.
  var elapsed: UInt64 { state.elapsed }
  var isShutDown: Bool { state.isShutDown }

  // MARK: The loop

  /// Runs the loop on the current thread, until it has been idle for a time or another thread takes over.
  ///
  /// - Parameter isBorrowed: Whether the thread belongs to a caller.
  func run(isBorrowed: Bool) {
    deliveries.serve()
    let lingering = isBorrowed ? 0 : lingering
    var nextHandOver = Clock.now() + Self.handOverInterval
    var idleSince = Clock.now()
    // Connections may have ended while the loop had no thread.
    lookAtSockets()
    while true {
      owner.takeInbox(jobs: &jobs, commands: &commands)
      // Read the clock after the inbox, so that requests cannot begin before they were created.
      state.begin(at: Clock.now())
      turn &+= 1
      if hasWork { idleSince = now }
      work()
      if isBorrowed, now >= nextHandOver {
        deliveries.retire()
        if owner.handOver() { return }
        deliveries.serve()
        nextHandOver = now + Self.handOverInterval
      }
      let isOver = streams.isEmpty && exchanges.isEmpty && (isShutDown || now - idleSince >= lingering)
      if streams.isBusy || exchanges.isBusy || !jobs.isEmpty || isOver && exchanges.isSettling {
        // A busy loop does not wait, so it has to poll here to learn which sockets are ready.
        lookAtSockets()
        continue
      }
      if isOver {
        exchanges.cancelPending()
        deliveries.retire()
        let (hasConnections, sweepTime) = (poller.isWatching, exchanges.idleExpiry)
        if owner.retire(hasConnections: hasConnections, sweepTime: sweepTime) { return }
        deliveries.serve()
        lookAtSockets()
        continue
      }
      yieldAfterAnswers()
      wait(until: idleSince &+ lingering, atMost: isBorrowed ? Self.handOverInterval : nil)
    }
  }

  /// Does the work of one turn.
  private func work() {
    // A response that has arrived lets another request begin, so the new order counts before it is read. Other
    // commands may begin a request themselves, and wait until it is known which connections have ended.
    if !commands.isEmpty { applyPriorities() }
    exchanges.lookAtSockets { poller.deliver() }
    runCommands()
    runJobs()
    if now >= throttle.releaseTime { continueThrottled() }
    if now >= hostQueues.releaseTime { startAdmitted(hostQueues.release(now)) }
    if !streams.isEmpty { streams.turn(now) }
    exchanges.turn()
    runJobs()
    deliveries.deliverAll()
  }

  /// Asks which sockets are ready, without waiting. Each turn begins after such a question, so that a connection is not
  /// used again before its end, or unexpected bytes on it, are known.
  private func lookAtSockets() {
    if poller.isWatching { poller.wait(milliseconds: 0) }
  }

  private var hasWork: Bool {
    !jobs.isEmpty || !commands.isEmpty || !streams.isEmpty || !exchanges.isEmpty
  }

  /// The interval at which a borrowed thread tries to start another one, in nanoseconds.
  private static let handOverInterval: UInt64 = 100_000_000

  /// Lets other threads run. A task that has just got a response often sends the next request at once. On a busy core,
  /// that saves both threads a sleep and a wake-up.
  private func yieldAfterAnswers() {
    guard state.hasAnswered else { return }
    state.hasAnswered = false
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

  /// Waits for sockets, timers or new work.
  ///
  /// - Parameters:
  ///   - end: The time at which a loop without work gives its thread back.
  ///   - limit: The longest wait with work, in nanoseconds.
  private func wait(until end: UInt64, atMost limit: UInt64?) {
    poller.open()
    var next = min(end, exchanges.expiry)
    if !streams.isEmpty || !exchanges.isEmpty {
      next = min(streams.expiry, exchanges.expiry)
      if !exchanges.isEmpty { next = min(next, hostQueues.releaseTime, throttle.releaseTime) }
    }
    let rest = next > now ? next - now : 0
    let milliseconds = min(limit.map { $0 / 1_000_000 } ?? Self.longestPoll, rest / 1_000_000 + 1)
    let hasWaited = owner.waitUnlessPosted { poller.wait(milliseconds: Int32(milliseconds)) }
    if !hasWaited { lookAtSockets() }
  }

  // MARK: Requests

  func submit(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    guard !isShutDown else { return completion.transferEnded(.failure(Self.shutDown)) }
    exchanges.submit(request, ticket: ticket, observer: observer, completion: completion)
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
      exchanges.startAdmitted(admitted[position])
      position += 1
    }
    admitted.removeAll(keepingCapacity: true)
    isStartingAdmitted = false
  }

  // MARK: Commands

  private func applyPriorities() {
    for case .setPriority(let ticket, let priority) in commands { exchanges.prioritize(ticket, priority) }
  }

  private func runCommands() {
    guard !commands.isEmpty else { return }
    let batch = commands
    commands.removeAll(keepingCapacity: true)
    // The last suspension of a turn counts.
    var suspensions: [UInt64: Bool] = [:]
    for command in batch {
      switch command {
      case .cancel(let ticket): exchanges.cancel(ticket)
      case .setSuspended(let ticket, let isSuspended): suspensions[ticket] = isSuspended
      case .setPriority: break
      case .proceed(let ticket): exchanges.proceed(ticket)
      case .shutDown:
        state.isShutDown = true
        exchanges.failAll(Self.shutDown)
        streams.end(Self.shutDown)
      case .run(let body): body(self)
      }
    }
    for (ticket, isSuspended) in suspensions {
      guard let exchange = exchanges.exchanges[ticket] else { continue }
      if isSuspended { exchanges.suspend(exchange) } else { exchanges.resume(exchange) }
    }
  }

  static let shutDown = TransportFailure(
    .shutDown, "The session of the request was released or invalidated.")
}

/// The facts about a loop that its exchanges and connections ask for all the time. They hold it themselves, because a
/// question by way of the loop would count references. Belongs to the loop's thread.
final class LoopState {
  /// The time of this turn of the loop.
  @exclusivity(unchecked) var now: UInt64
  @exclusivity(unchecked) private var sleep: SleepMeter
  /// Returns the time that includes the sleep of the machine. Tests replace it.
  @exclusivity(unchecked) var sinceBoot: () -> UInt64 = { Clock.sinceBoot() }
  @exclusivity(unchecked) var isShutDown = false
  /// Whether an exchange has ended, or a stream has delivered bytes, since the loop last yielded.
  @exclusivity(unchecked) var hasAnswered = false

  init() {
    let start = Clock.now()
    now = start
    sleep = SleepMeter(now: start, sinceBoot: Clock.sinceBoot())
  }

  /// The time of this turn by a clock that goes on while the machine sleeps. Servers do not sleep with it, so the ages
  /// of connections and names are differences of this time.
  @inline(__always) var elapsed: UInt64 { now &+ sleep.time }

  /// Begins a turn of the loop at a monotonic time.
  @inline(__always)
  func begin(at time: UInt64) {
    if time &- now >= SleepMeter.shortestSleep { noteSleep() }
    now = time
  }

  /// Reads the monotonic clock last: if the thread has to wait for its processor in between, that is no sleep.
  private func noteSleep() {
    let sinceBoot = sinceBoot()
    sleep.note(now: Clock.now(), sinceBoot: sinceBoot)
  }

  /// Returns the monotonic time of a time for ages, if the machine does not sleep until then.
  func monotonic(_ time: UInt64) -> UInt64 { time == .max ? .max : time - min(time, sleep.time) }
}

/// Measures the time that the machine sleeps, which the monotonic clock does not count. Pure: the owner reads the
/// clocks, in nanoseconds.
struct SleepMeter {
  /// Falling asleep and waking up take longer than this. A loop that began its last turn a shorter time ago has not
  /// slept, and need not read a second clock.
  static let shortestSleep: UInt64 = 1_000_000
  /// A smaller change of the difference may come from the time between the readings of both clocks.
  private static let tolerance: UInt64 = 1_000_000_000

  /// The time asleep since the meter was made, to about a second. It never falls.
  private(set) var time: UInt64 = 0
  /// The difference of the clocks when the meter was made.
  private let lead: UInt64

  init(now: UInt64, sinceBoot: UInt64) { lead = sinceBoot &- now }

  mutating func note(now: UInt64, sinceBoot: UInt64) {
    let slept = Int64(bitPattern: sinceBoot &- now &- lead)
    if slept > 0, UInt64(slept) >= time + Self.tolerance { time = UInt64(slept) }
  }
}

/// The bandwidth of a session, and the exchanges that wait for bandwidth. Belongs to the loop's thread.
struct SessionThrottle {
  private var limits = TransportOptions.Bandwidth()
  var meter: BandwidthMeter?
  private var waiting: [UInt64: [BandwidthMeter.Direction: Wait]] = [:]
  private var lastPosition: UInt64 = 0
  /// The time at which a waiting exchange may continue.
  private(set) var releaseTime: UInt64 = .max

  /// The wait of an exchange for bandwidth in one direction.
  private struct Wait {
    let time: UInt64
    let position: UInt64
  }

  mutating func limit(_ limits: TransportOptions.Bandwidth) {
    guard self.limits != limits else { return }
    self.limits = limits
    meter = limits.isLimited ? BandwidthMeter(limits) : nil
  }

  /// Lets an exchange wait in one direction. Returns its position among the waiting ones.
  ///
  /// - Parameter position: The position that the exchange has had since it last moved bytes in this direction; `nil`
  ///   for the last position. Keeping it prevents others that wait until the same time from always coming first.
  mutating func wait(
    _ ticket: UInt64, _ direction: BandwidthMeter.Direction, until time: UInt64, at position: UInt64?
  ) -> UInt64 {
    if position == nil { lastPosition += 1 }
    let position = position ?? lastPosition
    waiting[ticket, default: [:]][direction] = Wait(time: time, position: position)
    releaseTime = min(releaseTime, time)
    return position
  }

  /// Returns the exchanges that may continue in a direction, those that have waited longest for it first. If one waits
  /// in the other direction, too, it asks again.
  mutating func release(_ now: UInt64) -> [UInt64] {
    let released = waiting.compactMap { ticket, waits in
      waits.values.filter { $0.time <= now }.map(\.position).min().map { (ticket: ticket, position: $0) }
    }.sorted { $0.position < $1.position }
    for (ticket, _) in released { waiting[ticket] = nil }
    releaseTime = waiting.values.flatMap(\.values).map(\.time).min() ?? .max
    return released.map(\.ticket)
  }
}

extension LoopCore {
  /// Continues the exchanges for which there is bandwidth again.
  func continueThrottled() {
    for ticket in throttle.release(now) { exchanges.continueThrottled(ticket) }
  }
}

extension LoopCore {
  /// Returns the requests and connections of this moment.
  func snapshot() -> TransportSnapshot {
    var scenes: [Origin: Scene] = [:]
    for exchange in exchanges.exchanges.values.sorted(by: { $0.ticket < $1.ticket }) {
      guard let request = exchange.request else { continue }
      scenes[request.origin, default: Scene()].exchanges.append(exchange)
    }
    for (origin, open, idle) in exchanges.connectionCounts where open > 0 {
      scenes[origin, default: Scene()].openConnections += open
      scenes[origin, default: Scene()].idleConnections += idle
    }
    let hosts = scenes.sorted { $0.key.description < $1.key.description }.map { origin, scene in
      TransportSnapshot.Host(
        origin: origin.description, waiting: waiting(scene.exchanges.filter { !$0.phase.isAdmitted }),
        running: scene.exchanges.filter(\.phase.isAdmitted).map(\.running),
        openConnections: scene.openConnections, idleConnections: scene.idleConnections)
    }
    return TransportSnapshot(hosts: hosts)
  }

  /// The requests and connections of one origin.
  private struct Scene {
    var exchanges: [Exchange] = []
    var openConnections = 0
    var idleConnections = 0
  }

  private func waiting(_ exchanges: [Exchange]) -> [TransportSnapshot.WaitingRequest] {
    let places = HostQueues.places(of: exchanges)
    let sorted = exchanges.sorted { left, right in
      (places[left.ticket] ?? .max, left.ticket) < (places[right.ticket] ?? .max, right.ticket)
    }
    return sorted.compactMap { exchange in
      guard let request = exchange.request else { return nil }
      let reason = exchange.isHeldBack ? .suspended : hostQueues.reason(exchange, now) ?? .connections
      return TransportSnapshot.WaitingRequest(
        method: request.method, url: request.url, priority: exchange.priority, reason: reason)
    }
  }
}

extension Exchange {
  fileprivate var isHeldBack: Bool { flow.isSuspended || phase == .withheld }

  fileprivate var running: TransportSnapshot.RunningRequest {
    TransportSnapshot.RunningRequest(
      method: request?.method ?? "", url: request?.url ?? "", bytesSent: count.sent,
      bytesReceived: count.received, isSuspended: isHeldBack, isThrottled: flow.isThrottled)
  }
}

extension EventLoop {
  /// Returns the requests and connections of this moment. Callable from any thread.
  package func snapshot() async -> TransportSnapshot {
    await withCheckedContinuation { continuation in
      post(.run { continuation.resume(returning: $0.snapshot()) })
    }
  }

  /// Returns the number of hosts with a queue. Callable from any thread.
  package func hostQueueCount() async -> Int {
    await withCheckedContinuation { continuation in
      post(.run { continuation.resume(returning: $0.hostQueues.hostQueues.count) })
    }
  }
}
