import HTTPSystem
import HTTPWire

/// The exchanges of one loop, and the connections that carry them. Belongs to the loop's thread.
final class LoopExchanges {
  /// The largest number of bytes that are read or written at once.
  static let chunk = 524_288
  private static let pooledExchanges = 256
  /// The number of pools beyond which those without connections are forgotten.
  private static let leastKeptPools = 256

  /// Unowned, because this is a part of the loop, which closes it.
  unowned(unsafe) var core: LoopCore!
  let state: LoopState
  private let hostQueues: HostQueues
  let sessions = TLSSessions()
  @exclusivity(unchecked) private(set) var exchanges: [UInt64: Exchange] = [:]
  @exclusivity(unchecked) private var recycled: [Exchange] = []
  @exclusivity(unchecked) private var pools: [ConnectionKey: Pool] = [:]
  @exclusivity(unchecked) private var groups: [HostGroup.Key: HostGroup] = [:]
  /// The pool of the last request, because the next request mostly has the same one.
  @exclusivity(unchecked) private var last: LastTarget<Pool>?
  @exclusivity(unchecked) private var keptPools = leastKeptPools
  @exclusivity(unchecked) private var pending: [PendingConnection] = []
  /// The connections that have completed a response since the sockets were last polled. They are reused once it is
  /// known that no other bytes have arrived on them.
  @exclusivity(unchecked) private var settling: [HTTP1Connection] = []
  /// The settling connections that the running poll covers.
  @exclusivity(unchecked) private var settled: [HTTP1Connection] = []
  /// Whether the events of sockets are being delivered. Until then, a connection may have ended unnoticed.
  @exclusivity(unchecked) private var isDelivering = false
  /// The exchanges that start after the delivery.
  @exclusivity(unchecked) private var delayed: [UInt64] = []
  /// The exchanges whose next login round gets its connection after the delivery.
  @exclusivity(unchecked) private var delayedRounds: [UInt64] = []
  /// The connections that have more to do, although their sockets have nothing to report.
  @exclusivity(unchecked) private var continued: [any Connection] = []
  /// The ready connections that are being processed now.
  @exclusivity(unchecked) private var running: [any Connection] = []
  /// The pools that have room for a waiting exchange since a connection was closed.
  @exclusivity(unchecked) private var changedPools: [Pool] = []
  /// The time of the next search for what has expired.
  @exclusivity(unchecked) private var nextSweep: UInt64 = .max
  /// The time of the next search for connections that have been idle too long, by ``elapsed``.
  @exclusivity(unchecked) private var nextIdleSweep: UInt64 = .max
  /// The number of connections without an exchange.
  @exclusivity(unchecked) var idleCount = 0
  /// The buffer for reads, unless a connection is using it, and the buffer for writes. All connections share them: an
  /// idle connection has no buffer.
  @exclusivity(unchecked) private var rooms:
    (read: UnsafeMutableRawBufferPointer?, write: UnsafeMutableRawBufferPointer?)

  init(_ state: LoopState, _ hostQueues: HostQueues) {
    self.state = state
    self.hostQueues = hostQueues
  }

  deinit {
    rooms.read?.deallocate()
    rooms.write?.deallocate()
  }

  @inline(__always) var now: UInt64 { state.now }
  @inline(__always) var elapsed: UInt64 { state.elapsed }
  var isEmpty: Bool { exchanges.isEmpty }
  /// The time until which the loop may sleep.
  var expiry: UInt64 { min(nextSweep, idleExpiry) }
  /// The time at which the first connection without an exchange is to be closed.
  var idleExpiry: UInt64 { state.monotonic(nextIdleSweep) }
  /// Whether something is to be done before the loop waits. A connection that settles needs a poll of the sockets. The
  /// loop has to stay awake for that only if an exchange waits for the connection.
  var isBusy: Bool {
    !continued.isEmpty || !changedPools.isEmpty || settling.contains { $0.pool.isAwaited }
  }

  /// Whether a connection settles. The time at which it is to be closed is noted afterwards.
  var isSettling: Bool { !settling.isEmpty }

  /// Lends a buffer for reads until ``giveBack(_:)``. Bytes that were read can let another connection begin an
  /// exchange, and read its own bytes, before all of them were processed. That connection gets a buffer of its own.
  func lendRoom() -> UnsafeMutableRawBufferPointer { rooms.read.take() ?? Self.newRoom() }

  func giveBack(_ room: UnsafeMutableRawBufferPointer) {
    if rooms.read == nil { rooms.read = room } else { room.deallocate() }
  }

  /// The buffer for bytes that are consumed before the next write.
  var writeRoom: UnsafeMutableRawBufferPointer {
    if let room = rooms.write { return room }
    let room = Self.newRoom()
    rooms.write = room
    return room
  }

  private static func newRoom() -> UnsafeMutableRawBufferPointer {
    .allocate(byteCount: chunk, alignment: 4096)
  }

  // MARK: The way in

  func submit(
    _ request: WireRequest, ticket: UInt64, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    let exchange = recycled.popLast() ?? Exchange(self)
    exchange.begin(request, ticket: ticket, observer: observer, completion: completion)
    exchanges[ticket] = exchange
    noteExpiry(of: exchange)
    switch observer.transferBegan(LoopTransferControl(loop: core.owner, ticket: ticket)) {
    case .go: if admits(exchange) { start(exchange) }
    // The exchange enters its queue when it is resumed, so that it does not delay other requests.
    case .hold: exchange.flow.suspend()
    case .refuse: end(exchange, .failure(Self.cancelled))
    }
  }

  private func admits(_ exchange: Exchange) -> Bool {
    exchange.phase = .queued
    guard exchange.request?.isQuestion == false else { return true }
    return hostQueues.enqueue(exchange, now)
  }

  static var cancelled: TransportFailure { TransportFailure(.cancelled, "The request was cancelled.") }

  /// Lets an admitted exchange wait for a connection. One that was suspended while it waited leaves the queue, and
  /// enters it again when it is resumed.
  func start(_ exchange: Exchange) {
    guard let request = exchange.request, !state.isShutDown else { return }
    guard !isDelivering else {
      exchange.phase = .queued
      return delayed.append(exchange.ticket)
    }
    guard !exchange.flow.isSuspended else { return withhold(exchange) }
    if exchange.timing.started == 0 { exchange.timing.started = now }
    exchange.phaseTimer?.begin()
    do throws(TransportFailure) {
      let pool = try pool(of: exchange, request)
      if let failure = exchange.startSource() { throw failure }
      if pool.idle.isEmpty, pool.multiplexed.isEmpty, pool.settling == 0 {
        if pool.mayMultiplex(exchange) {
          try HTTP2Connection.check(request)
        } else {
          try HTTP1Connection.check(request)
        }
      }
      exchange.phase = .connecting
      exchange.pool = pool
      if let step = exchange.beginLogin(in: pool) { return perform(step, of: exchange) }
      // The time in the queue does not count as silence of the host.
      exchange.noteActivity()
      pool.serve(exchange)
    } catch {
      end(exchange, .failure(error))
    }
  }

  /// Lets a suspended exchange give up its place in the limits of its host. It enters the queue when it is resumed.
  private func withhold(_ exchange: Exchange) {
    exchange.phase = .withheld
    // Its start shows whether its token was refilled since. The time from now on belongs to the queue.
    let next = hostQueues.remove(exchange, multiplexes: nil, now, isUnsent: true)
    exchange.timing.started = 0
    core.startAdmitted(next)
  }

  private func pool(of exchange: Exchange, _ request: WireRequest) throws(TransportFailure) -> Pool {
    let alternative = request.alternative
    let needsHTTP1 = request.hasPriorKnowledge && !exchange.mayMultiplex
    let isUsual = alternative == nil && !needsHTTP1
    if isUsual, let last, last.receives(request) { return last.value }
    let profile = request.profile
    let proxy = try proxy(of: request)
    if alternative != nil, proxy != nil { throw .alternativeUnfit(request) }
    let route = try Route(
      to: request.origin, profile.options, alternative: alternative, proxy: proxy, mayForward: true)
    let key = ConnectionKey(
      request.origin, route, profile, isAlternative: alternative != nil, needsHTTP1: needsHTTP1)
    let pool = pools[key] ?? makePool(key, profile)
    // If a proxy forwards the request, the pool has another origin.
    if isUsual { last = LastTarget(request, pool) }
    return pool
  }

  private func proxy(of request: WireRequest) throws(TransportFailure) -> ProxyServer? {
    if request.profile.isDirect == true { return nil }
    switch ProxyEnvironment.shared.choice(for: request.origin, in: request.profile.proxies) {
    case .direct, .environment: return nil
    case .server(let proxy):
      try proxy.check(request.origin.host)
      return proxy
    case .unreadable(let name):
      throw RouteFailure.unusableProxy(of: name)
    }
  }

  private func makePool(_ key: ConnectionKey, _ profile: ConnectionProfile) -> Pool {
    if pools.count >= keptPools {
      // An exchange whose login waits for a token is in no queue of its pool, but will ask it for a connection.
      let asked = Set(exchanges.values.compactMap { $0.pool.map { ObjectIdentifier($0) } })
      pools = pools.filter { !$0.value.isForgettable || asked.contains(ObjectIdentifier($0.value)) }
      let used = Set(pools.values.map { ObjectIdentifier($0.group) })
      groups = groups.filter { used.contains(ObjectIdentifier($0.value)) }
      last = nil
      keptPools = max(Self.leastKeptPools, pools.count * 2)
    }
    let groupKey = HostGroup.Key(origin: key.origin, limit: profile.connectionsPerHost)
    let group = groups[groupKey] ?? HostGroup(limit: profile.connectionsPerHost)
    groups[groupKey] = group
    let pool = Pool(key, group, self)
    pools[key] = pool
    return pool
  }

  // MARK: The end

  /// Ends an exchange, starts those that waited for it, and calls its completion. The completion is last because it can
  /// start another exchange.
  func end(_ exchange: Exchange, _ outcome: consuming Exchange.Outcome) {
    exchanges[exchange.ticket] = nil
    let successors = hostQueues.remove(
      exchange, multiplexes: exchange.multiplexes, now, isUnsent: exchange.isUndecided(outcome))
    let completion = exchange.finish(&outcome)
    if recycled.count < Self.pooledExchanges { recycled.append(exchange) }
    state.hasAnswered = true
    if !successors.isEmpty { core.startAdmitted(successors) }
    completion.transferEnded(outcome)
  }

  /// Ends an exchange before its response is complete. Its connection is given up.
  func abandon(_ exchange: Exchange, _ failure: TransportFailure) {
    let failure = failure.with(metrics: exchange.metrics())
    leaveConnection(exchange)
    end(exchange, .failure(failure))
  }

  private func leaveConnection(_ exchange: Exchange) {
    switch exchange.phase {
    case .connecting: exchange.pool?.withdraw(exchange)
    case .running: exchange.connection?.abandon(exchange)
    case .idle, .withheld, .queued: break
    }
  }

  /// Sends the request again if its connection has ended without a response, and if that is safe.
  ///
  /// - Parameters:
  ///   - failure: The failure if the request is not sent again.
  ///   - evidence: What is known of the fate of the request.
  ///   - isBusy: Whether the server has refused the request because it is busy.
  ///   - takesNone: Whether the server has refused all requests on the connection.
  func lost(
    _ exchange: Exchange, _ failure: @autoclosure () -> TransportFailure,
    _ evidence: RepeatDecision.Evidence, isBusy: Bool = false, takesNone: Bool = false
  ) {
    guard exchange.mayRepeat(after: evidence, isBusy: isBusy, takesNone: takesNone) else {
      return end(exchange, .failure(exchange.unrepeated(failure(), evidence)))
    }
    sendAgain(exchange)
  }

  func sendAgain(_ exchange: Exchange) {
    exchange.restart()
    exchange.needsNewConnection = exchange.connection?.multiplexes != true
    exchange.connection = nil
    exchange.login = nil
    exchange.isReused = false
    guard exchange.decision.pause > 0 else { return start(exchange) }
    // No pool knows the exchange until then.
    exchange.phase = .connecting
    exchange.pool = nil
    exchange.repeatTime = Clock.now().addingReportingOverflow(exchange.decision.pause).partialValue
    exchange.noteActivity()
  }

  func failAll(_ failure: TransportFailure) {
    for exchange in Array(exchanges.values) where exchanges[exchange.ticket] === exchange {
      abandon(exchange, failure)
    }
    closeAll()
  }

  private func closeAll() {
    for pool in pools.values { pool.closeAll() }
    for connection in settling { connection.close() }
    settling = []
  }

  /// Closes all connections, before the loop is freed. Pools and exchanges hold this table, so it releases them.
  func close() {
    closeAll()
    pools = [:]
    groups = [:]
    last = nil
    recycled = []
    exchanges = [:]
  }
}

// MARK: Commands

extension LoopExchanges {
  func cancel(_ ticket: UInt64) {
    guard let exchange = exchanges[ticket] else { return }
    abandon(exchange, Self.cancelled)
  }

  func suspend(_ exchange: Exchange) {
    guard !exchange.flow.isSuspended else { return }
    exchange.flow.suspend()
    exchange.noteActivity()
    exchange.alignPhaseTimer()
    guard exchange.phase == .connecting, let pool = exchange.pool else { return }
    // A login that has had a response keeps its place, because it goes on with its connection.
    guard exchange.login?.isUnderWay != true else { return pool.suspend(exchange) }
    exchange.login = nil
    exchange.pool = nil
    pool.release(exchange)
    withhold(exchange)
  }

  func resume(_ exchange: Exchange) {
    guard exchange.resume() else { return }
    exchange.noteActivity()
    exchange.alignPhaseTimer()
    switch exchange.phase {
    case .withheld: if admits(exchange) { start(exchange) }
    case .connecting: exchange.pool?.resume(exchange)
    case .running: exchange.connection?.goOn(with: exchange)
    case .idle, .queued: break
    }
  }

  /// Continues an exchange because its sink may have room or its source may have bytes.
  func proceed(_ ticket: UInt64) {
    guard let exchange = exchanges[ticket], !exchange.flow.isSuspended else { return }
    exchange.proceed()
    goOn(exchange)
  }

  /// Continues an exchange for which there is bandwidth again.
  func continueThrottled(_ ticket: UInt64) {
    guard let exchange = exchanges[ticket] else { return }
    exchange.flow.bandwidthReturned()
    goOn(exchange)
  }

  func startAdmitted(_ ticket: UInt64) {
    if let exchange = exchanges[ticket] { start(exchange) }
  }

  private func goOn(_ exchange: Exchange) {
    guard exchange.phase == .running else { return }
    exchange.noteActivity()
    exchange.alignPhaseTimer()
    exchange.connection?.goOn(with: exchange)
  }

  func prioritize(_ ticket: UInt64, _ priority: Float) {
    guard let exchange = exchanges[ticket] else { return }
    exchange.priority = priority
    hostQueues.prioritize(exchange, now)
  }
}

// MARK: Turns

extension LoopExchanges {
  /// Delivers what the sockets have reported. Afterwards the connections that were waiting for this look can be used.
  /// An exchange that begins during the delivery starts only then: the next event may say that its connection has
  /// ended.
  func lookAtSockets(_ deliver: () -> Void) {
    swap(&settling, &settled)
    isDelivering = true
    deliver()
    isDelivering = false
    while let connection = settled.popLast() { connection.settle() }
    for ticket in delayedRounds { exchanges[ticket].map(serveRound) }
    delayedRounds.removeAll(keepingCapacity: true)
    guard !delayed.isEmpty else { return }
    core.startAdmitted(delayed)
    delayed.removeAll(keepingCapacity: true)
  }

  /// Gives the next login round of an exchange a connection, as ``start(_:)`` gives one to an exchange that begins.
  func serveRound(_ exchange: Exchange) {
    if isDelivering { return delayedRounds.append(exchange.ticket) }
    if exchange.phase == .connecting { exchange.pool?.serve(exchange) }
  }

  /// Finishes deferred work, and ends what has exceeded a time limit.
  func turn() {
    if !continued.isEmpty {
      swap(&continued, &running)
      for connection in running { connection.continueTurn() }
      running.removeAll(keepingCapacity: true)
    }
    if !changedPools.isEmpty {
      let changed = changedPools
      changedPools.removeAll()
      for pool in changed { pool.assign() }
    }
    if now >= nextSweep { sweep() }
    if elapsed >= nextIdleSweep { sweepIdle() }
  }

  /// Lets the connection be used again after the next look at the sockets.
  func settleLater(_ connection: HTTP1Connection) { settling.append(connection) }

  func continueLater(_ connection: any Connection) { continued.append(connection) }

  func assignLater(_ pool: Pool) { changedPools.append(pool) }

  func watch(_ connection: PendingConnection) { pending.append(connection) }

  func unwatch(_ connection: PendingConnection) { pending.removeAll { $0 === connection } }

  /// Gives up the connections that are being established, because no exchange is left that needs one. Without a thread,
  /// the loop would not notice the ends of their limits.
  func cancelPending() {
    guard !pending.isEmpty else { return }
    for pool in pools.values { pool.cancelPending() }
  }

  func noteExpiry(of exchange: Exchange) { nextSweep = min(nextSweep, exchange.expiry) }
  func noteExpiry(of connection: PendingConnection) { nextSweep = min(nextSweep, connection.expiry) }

  /// Notes that exchanges may expire after a time from now, in nanoseconds.
  func noteExpiry(after limit: UInt64) {
    let time = now.addingReportingOverflow(limit)
    if !time.overflow { nextSweep = min(nextSweep, time.partialValue) }
  }

  private func sweep() {
    nextSweep = .max
    for connection in pending where connection.expiry <= now { connection.expire(now) }
    for exchange in Array(exchanges.values) where exchanges[exchange.ticket] === exchange {
      if exchange.expiry <= now { expire(exchange) }
    }
    // What has just begun was noted above.
    nextSweep = pending.reduce(nextSweep) { min($0, $1.expiry) }
    nextSweep = exchanges.values.reduce(nextSweep) { min($0, $1.expiry) }
  }

  private func isAnswered(_ exchange: Exchange) -> Bool {
    exchange.phase == .running && exchange.login?.next == nil
      && exchange.connection?.isAnswered(exchange) == true
  }

  /// Ends an exchange with the response so far, and gives its connection up.
  private func complete(_ exchange: Exchange) {
    let outcome = exchange.completed()
    leaveConnection(exchange)
    end(exchange, outcome)
  }

  private func expire(_ exchange: Exchange) {
    if let failure = exchange.timeout() {
      // The server does not take the rest of a request that it has answered.
      if failure.phase == .idle, isAnswered(exchange) { return complete(exchange) }
      if exchange.phase == .running { exchange.connection?.noteTimeout(of: exchange) }
      return abandon(exchange, failure)
    }
    // Stop waiting for the rest of a body that is discarded.
    if let dropped = exchange.dropped, dropped.deadline <= now, exchange.login?.next == nil {
      return complete(exchange)
    }
    if exchange.repeatTime <= now {
      exchange.repeatTime = .max
      return start(exchange)
    }
    guard exchange.continueTime <= now else { return }
    exchange.continueTime = .max
    exchange.connection?.continueExpired(exchange)
  }

  // MARK: Idle connections

  /// Keeps to the largest number of idle connections, and notes when the connection is too old.
  ///
  /// - Parameters:
  ///   - limit: The time at which it is too old, by ``elapsed``.
  ///   - connections: The largest number of connections to its host.
  func noteIdle(until limit: UInt64, connections: Int) {
    nextIdleSweep = min(nextIdleSweep, limit)
    let most = max(64, connections + 8)
    guard idleCount > most else { return }
    let idle = pools.values.flatMap(\.idleConnections).sorted { $0.idleSince < $1.idleSince }
    for connection in idle.prefix(idleCount - most) { connection.close() }
  }

  private func sweepIdle() {
    nextIdleSweep = pools.values.reduce(.max) { min($0, $1.sweep()) }
  }

  /// The origins and numbers of the open connections.
  var connectionCounts: [(origin: Origin, open: Int, idle: Int)] {
    groups.map { key, group in (key.origin, group.open, group.idleCount) }
  }
}
