import HTTPWire

/// The connections with one key, and the exchanges that wait for one. Belongs to the loop's thread. ``PoolState``
/// decides how an exchange gets a connection.
final class Pool {
  let key: ConnectionKey
  /// The connections to the same host, whatever their keys.
  let group: HostGroup
  let table: LoopExchanges
  /// The connections without an exchange. The last one was used last.
  @exclusivity(unchecked) private(set) var idle: [HTTP1Connection] = []
  /// The connections of HTTP/2, including those that accept no more exchanges.
  @exclusivity(unchecked) private(set) var multiplexed: [HTTP2Connection] = []
  /// The connections that are being established.
  @exclusivity(unchecked) private(set) var pending: [PendingConnection] = []
  /// The number of them that cannot become connections of HTTP/2.
  @exclusivity(unchecked) private var pendingPlain = 0
  /// The time since which at least one connection is being established. Before it, the waiting exchanges have waited
  /// for one another, and not for the host.
  @exclusivity(unchecked) private(set) var pendingSince: UInt64 = 0
  /// The number of connections that have completed a response since the sockets were last polled.
  @exclusivity(unchecked) var settling = 0
  /// The exchanges that wait for a connection.
  @exclusivity(unchecked) private(set) var waiting = WaitingExchanges()
  /// The shortest silence of the host that one of them has allowed since one waits, in nanoseconds.
  @exclusivity(unchecked) private var shortestIdleLimit: UInt64 = .max
  /// The number of times at which a waiting exchange was considered. Tests count them.
  @exclusivity(unchecked) private(set) var assignmentSteps = 0
  /// Whether the connections carry many requests at a time; `nil` until one was established.
  @exclusivity(unchecked) var multiplexes: Bool?
  /// The number of streams that the server has last allowed on a connection of HTTP/2; `nil` if it is unknown or 0.
  @exclusivity(unchecked) var streamLimit: Int?
  /// The credentials that the proxy of forwarded requests has accepted.
  @exclusivity(unchecked) var proxyProof = SharedProof()
  /// Whether the last connection could not be established. Then exchanges do not wait for the connection of another
  /// one.
  @exclusivity(unchecked) private var hasFailed = false
  @exclusivity(unchecked) private var isAssigning = false

  init(_ key: ConnectionKey, _ group: HostGroup, _ table: LoopExchanges) {
    self.key = key
    forwards = key.route.forwards
    self.group = group
    self.table = table
    group.add(self)
  }

  var route: Route { key.route }
  /// Whether a proxy reads the requests and forwards them.
  let forwards: Bool
  /// The fields of the last request over HTTP/1.1. A proxy that forwards requests gets them for several origins.
  @exclusivity(unchecked) var headMemory = RequestHeadMemory()

  /// Whether an exchange waits for a connection that becomes idle, in this pool or in another one of the host.
  var isAwaited: Bool { group.isAwaited(by: self) }

  /// Whether the pool holds no state that has to be remembered.
  var isForgettable: Bool { open == 0 && waiting.isEmpty }

  /// The number of connections, including those that are being established.
  @exclusivity(unchecked) private var open = 0 {
    didSet {
      group.open += open - oldValue
      if open < oldValue { group.wakeOthers(than: self) }
    }
  }

  // MARK: Exchanges

  /// Gives the exchange a connection, at once or later.
  func serve(_ exchange: Exchange) {
    exchange.phase = .connecting
    exchange.pool = self
    if let connection = connectionAtOnce(for: exchange) { return connection.start(exchange) }
    // An exchange that is suspended would not send anything.
    guard !exchange.flow.isSuspended else { return waiting.suspend(exchange) }
    let need = need(of: exchange)
    if !waiting.hasActive, !isAssigning {
      isAssigning = true
      dropExpired()
      let isCarried = carry(exchange, need)
      isAssigning = false
      // What the exchange has done can have let others wait.
      if isCarried { return assign() }
    }
    if waiting.isEmpty { shortestIdleLimit = .max }
    shortestIdleLimit = min(shortestIdleLimit, exchange.timing.idleLimit)
    waiting.append(exchange, need)
    assign()
  }

  /// Returns the connection that was used last, if it is idle and no other rule applies.
  private func connectionAtOnce(for exchange: Exchange) -> HTTP1Connection? {
    guard !waiting.hasActive, multiplexed.isEmpty, !isAssigning, !exchange.needsNewConnection,
      !exchange.flow.isSuspended, let limit = idle.last?.idleLimit, limit > table.elapsed
    else { return nil }
    noteBusy()
    return idle.removeLast()
  }

  /// Lets an open connection carry the exchange. Returns false if none can.
  private func carry(_ exchange: Exchange, _ need: WaitingExchanges.Need) -> Bool {
    if need.mayMultiplex, let connection = multiplexed.first(where: { $0.freeStreams > 0 }) {
      return connection.start(exchange)
    }
    guard let connection = takeIdle(fresh: need.isNew) else { return false }
    connection.start(exchange)
    return true
  }

  /// Forgets an exchange that waits for a connection. A connection that is being established for it continues only if
  /// another exchange waits.
  func withdraw(_ exchange: Exchange) {
    guard waiting.remove(exchange.ticket) != nil else { return }
    while pending.count > waiting.count, let spare = sparePending(after: exchange) {
      removePending(spare)
      spare.cancel()
      open -= 1
    }
    assign()
  }

  /// Returns the connection attempt to give up when an exchange leaves: its own, or else one with an exchange that does
  /// not wait any more. The other exchanges keep their attempts, to which their time limits apply.
  private func sparePending(after exchange: Exchange) -> PendingConnection? {
    if let own = pending.last(where: { $0.ticket == exchange.ticket }) { return own }
    let mayMultiplex = mayMultiplex(exchange)
    let alike = pending.filter { $0.mayMultiplex == mayMultiplex }
    let unneeded = alike.last { $0.ticket.map { !waiting.isActive($0) } ?? true }
    return unneeded ?? alike.last ?? pending.last
  }

  /// Forgets a suspended exchange, which asks again later. It does not end with a connection that was begun for it.
  func release(_ exchange: Exchange) {
    withdraw(exchange)
    for connection in pending where connection.ticket == exchange.ticket { connection.ticket = nil }
  }

  /// Gives no connection to an exchange that waits for one, until it is resumed.
  func suspend(_ exchange: Exchange) {
    if waiting.remove(exchange.ticket) != nil { waiting.suspend(exchange) }
  }

  func resume(_ exchange: Exchange) { if waiting.resume(exchange) { serve(exchange) } }

  /// Gives connections to the waiting exchanges, and makes those that are missing.
  func assign() {
    guard !isAssigning, waiting.hasActive else { return }
    isAssigning = true
    dropExpired()
    // What a started exchange does can change everything.
    while let (need, step) = nextStep(), perform(step, need) {}
    isAssigning = false
  }

  /// Returns what can be done for the first exchange for which something can; `nil` if all have to wait.
  private func nextStep() -> (WaitingExchanges.Need, PoolState.PoolStep)? {
    for need in waiting.needs {
      assignmentSteps += 1
      let step = state(need).step(mayMultiplex: need.mayMultiplex)
      if step != .wait { return (need, step) }
    }
    return nil
  }

  /// Returns whether it has changed something.
  private func perform(_ step: PoolState.PoolStep, _ need: WaitingExchanges.Need) -> Bool {
    switch step {
    case .useIdle, .useStream:
      guard let exchange = waiting.takeFirst(need) else { return false }
      guard carry(exchange, need) else {
        waiting.prepend(exchange, need)
        return false
      }
      return true
    case .wait: return false
    case .connect: return connect(need)
    case .closeOtherAndConnect:
      // One that has been used makes room for a new one, and one of HTTP/2 for one of HTTP/1.1.
      group.closeOldestIdle(except: need.isNew || !need.mayMultiplex ? nil : self)
      return connect(need)
    }
  }

  private func state(_ need: WaitingExchanges.Need) -> PoolState {
    var state = PoolState(limit: group.limit)
    state.multiplexes = hasFailed ? false : multiplexes
    state.hasStream = multiplexed.contains { $0.freeStreams > 0 }
    state.idle = need.isNew ? idle.count(where: \.isFresh) : idle.count
    // Where HTTP/2 is spoken, a connection established for other exchanges would not carry a request of HTTP/1.1.
    let fit = need.mayMultiplex || state.multiplexes == false ? pending.count : pendingPlain
    state.connecting = fit + (need.isNew ? 0 : settling)
    state.waiting = max(0, waitingAlone(need, state.multiplexes) - 1)
    state.open = group.occupied
    state.idleElsewhere = group.idleCount - state.idle
    if !need.isNew, need.mayMultiplex {
      state.idleElsewhere -= multiplexed.count { $0.isIdle && $0.allowsStreams }
    }
    return state
  }

  /// Returns the number of waiting exchanges that need a connection each, of those that compete for the same ones.
  private func waitingAlone(_ need: WaitingExchanges.Need, _ multiplexes: Bool?) -> Int {
    var count = 0
    for other in WaitingExchanges.Need.allCases where other.isNew || !need.isNew {
      if !other.mayMultiplex || multiplexes == false { count += waiting.count(of: other) }
    }
    return count
  }

  /// Whether HTTP/2 may carry the exchange. A proxy that reads the requests speaks HTTP/1.1.
  func mayMultiplex(_ exchange: Exchange) -> Bool { exchange.mayMultiplex && !forwards }

  private func need(of exchange: Exchange) -> WaitingExchanges.Need {
    WaitingExchanges.Need(mayMultiplex: mayMultiplex(exchange), isNew: exchange.needsNewConnection)
  }

  // MARK: Connections

  /// Begins a connection for the next exchange that has none. Returns false if there is none.
  private func connect(_ need: WaitingExchanges.Need) -> Bool {
    guard let exchange = waiting.nextToConnect(need), let request = exchange.request else { return false }
    let connection = PendingConnection(
      request, exchange.ticket, mayMultiplex: need.mayMultiplex, for: self)
    if pending.isEmpty {
      pendingSince = table.now
      table.noteExpiry(after: shortestIdleLimit)
    }
    pending.append(connection)
    if !need.mayMultiplex { pendingPlain += 1 }
    open += 1
    connection.begin()
    return true
  }

  /// Returns the ends of the steps of the connection that is being established for an exchange; `nil` without one.
  func progress(for ticket: UInt64) -> ConnectionFacts.Times? {
    pending.first { $0.ticket == ticket }?.progress
  }

  private func removePending(_ connection: PendingConnection) {
    guard let index = pending.lastIndex(where: { $0 === connection }) else { return }
    if !pending.remove(at: index).mayMultiplex { pendingPlain -= 1 }
  }

  /// Adds an established connection.
  func opened(_ connection: HTTP1Connection, by maker: PendingConnection) {
    removePending(maker)
    multiplexes = false
    hasFailed = false
    keep(connection)
    // Its end, or bytes that answer no request, may have been reported while it was established.
    if connection.exchange == nil { connection.pipeIsReady() }
  }

  /// Adds an established connection of HTTP/2.
  func opened(_ connection: HTTP2Connection, by maker: PendingConnection) {
    removePending(maker)
    multiplexes = true
    hasFailed = false
    multiplexed.append(connection)
    noteIdle(until: connection.idleLimit)
    // Its preface leaves with the first request, or without one.
    connection.flushLater()
    assign()
  }

  /// Ends the exchange for which connecting failed, unless it is suspended. Others that have waited for the same
  /// connection begin their own.
  func failed(_ failure: TransportFailure, _ times: ConnectionFacts.Times, by maker: PendingConnection) {
    guard pending.contains(where: { $0 === maker }) else { return }
    removePending(maker)
    open -= 1
    hasFailed = true
    if let ticket = maker.ticket, waiting.isActive(ticket), let exchange = waiting.remove(ticket) {
      exchange.times.connecting = times
      table.end(exchange, .failure(failure.with(metrics: exchange.metrics())))
    }
    assign()
  }

  /// Keeps a connection that has no exchange, and gives it to the next one.
  func keep(_ connection: HTTP1Connection) {
    idle.append(connection)
    noteIdle(until: connection.idleLimit)
    assign()
  }

  /// Counts a connection that has no exchange.
  ///
  /// - Parameter limit: The time until which it is used again.
  func noteIdle(until limit: UInt64) {
    group.idleCount += 1
    table.idleCount += 1
    table.noteIdle(until: limit, connections: group.limit)
    group.wakeOthers(than: self)
  }

  /// Counts a connection that is not idle any more.
  func noteBusy() {
    group.idleCount -= 1
    table.idleCount -= 1
  }

  /// All connections without an exchange.
  var idleConnections: [any Connection] { idle + multiplexed.filter(\.isIdle) }

  /// The connections without an exchange on which no exchange can begin, because the server allows no streams.
  var uselessConnections: [any Connection] { multiplexed.filter { $0.isIdle && !$0.allowsStreams } }

  /// Takes the connection that was used last.
  ///
  /// - Parameter fresh: Whether it must have been established just now.
  private func takeIdle(fresh: Bool) -> HTTP1Connection? {
    guard let index = idle.lastIndex(where: { !fresh || $0.isFresh }) else { return nil }
    let connection = idle.remove(at: index)
    noteBusy()
    return connection
  }

  /// Forgets a connection that was closed. Another one may be established instead.
  func closed(_ connection: any Connection) {
    if let index = idle.lastIndex(where: { $0 === connection }) {
      idle.remove(at: index)
      noteBusy()
    } else if let index = multiplexed.firstIndex(where: { $0 === connection }) {
      let connection = multiplexed.remove(at: index)
      if connection.isIdle { noteBusy() }
      if connection.isDraining { group.draining -= 1 }
    }
    open -= 1
    if waiting.hasActive { table.assignLater(self) }
  }

  /// Closes idle connections that are too old to be used.
  private func dropExpired() {
    while let last = idle.last, last.idleLimit <= table.elapsed { last.close() }
    for connection in multiplexed where connection.isIdle && connection.idleLimit <= table.elapsed {
      connection.close()
    }
  }

  /// Closes the idle connections that have expired. Returns the time of the next check, by ``LoopExchanges/elapsed``.
  func sweep() -> UInt64 {
    for connection in idleConnections where connection.idleLimit <= table.elapsed { connection.close() }
    return idleConnections.reduce(.max) { min($0, $1.idleLimit) }
  }

  /// Cancels the connections that are being established.
  func cancelPending() {
    for connection in pending { connection.cancel() }
    open -= pending.count
    pending.removeAll()
    pendingPlain = 0
  }

  /// Closes all connections, and cancels those that are being established.
  func closeAll() {
    cancelPending()
    for connection in idle { connection.close() }
    for connection in multiplexed { connection.close() }
  }
}

/// All connections to one host, which share a limit. Belongs to the loop's thread.
final class HostGroup {
  struct Key: Hashable {
    let origin: Origin
    let limit: Int
  }

  private struct Member {
    weak var pool: Pool?
  }

  let limit: Int
  /// The number of connections, including those that are being established.
  @exclusivity(unchecked) var open = 0
  /// The number of connections of HTTP/2 that only carry their last exchanges.
  @exclusivity(unchecked) var draining = 0
  /// The number of connections without an exchange.
  @exclusivity(unchecked) var idleCount = 0
  @exclusivity(unchecked) private var members: [Member] = []

  init(limit: Int) { self.limit = limit }

  /// The number of connections that count towards the limit. The server expects new connections to replace those that
  /// drain (RFC 9113 §6.8), but there are never more than twice as many connections as allowed.
  var occupied: Int { open - min(draining, limit) }

  func add(_ pool: Pool) {
    members.removeAll { $0.pool == nil }
    members.append(Member(pool: pool))
  }

  private var pools: [Pool] { members.compactMap(\.pool) }

  /// Lets the exchanges of the other pools ask again, because a connection was closed or has become idle. They share
  /// the limit, so one of theirs may be established now.
  func wakeOthers(than pool: Pool) {
    guard members.count > 1 else { return }
    for other in pools where other !== pool && other.waiting.hasActive { other.table.assignLater(other) }
  }

  /// Whether an exchange of `pool` or of another pool waits for a connection.
  func isAwaited(by pool: Pool) -> Bool {
    pool.waiting.hasActive || members.count > 1 && pools.contains { $0.waiting.hasActive }
  }

  /// Closes the connection that has been idle longest. Connections of `pool` that can carry an exchange are left alone.
  func closeOldestIdle(except pool: Pool?) {
    let candidates = pools.flatMap { $0 === pool ? $0.uselessConnections : $0.idleConnections }
    candidates.min { $0.idleSince < $1.idleSince }?.close()
  }
}
