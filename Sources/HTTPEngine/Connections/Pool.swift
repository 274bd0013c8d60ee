import HTTPWire

/// The connections with one key, and the exchanges that wait for one. Belongs to the loop's thread. ``PoolState``
/// decides how an exchange gets a connection.
final class Pool {
  let key: ConnectionKey
  /// The connections to the same host, whatever their keys.
  let group: HostGroup
  unowned(unsafe) let table: LoopExchanges
  /// The connections without an exchange. The last one was used last.
  @exclusivity(unchecked) private(set) var idle: [HTTP1Connection] = []
  /// The connections of HTTP/2, also those that take no more exchanges.
  @exclusivity(unchecked) private(set) var multiplexed: [HTTP2Connection] = []
  /// The connections that are being made.
  @exclusivity(unchecked) private(set) var pending: [PendingConnection] = []
  /// The number of connections whose response has ended since the sockets were last looked at.
  @exclusivity(unchecked) var settling = 0
  /// The exchanges that wait for a connection, in their order.
  @exclusivity(unchecked) private(set) var waiting: [Exchange] = []
  /// Whether the connections carry many requests at a time; `nil` until one was made.
  @exclusivity(unchecked) var multiplexes: Bool?
  /// The credentials that the proxy of forwarded requests has accepted last.
  @exclusivity(unchecked) var proxyProof: AuthenticationProof?
  /// Whether the last connection could not be made. Then exchanges do not wait for the connection of another one.
  @exclusivity(unchecked) private var hasFailed = false
  @exclusivity(unchecked) private var isAssigning = false
  @exclusivity(unchecked) private var mustAssignAgain = false

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
  /// The fields of the last request over HTTP/1.1.
  @exclusivity(unchecked) var headMemory = RequestHeadMemory()

  /// Whether nothing has to be remembered.
  var isForgettable: Bool { open == 0 && waiting.isEmpty }

  /// The number of connections, with those that are being made.
  @exclusivity(unchecked) private var open = 0 {
    didSet { group.open += open - oldValue }
  }

  // MARK: Exchanges

  /// Gives the exchange a connection, at once or later.
  func serve(_ exchange: Exchange) {
    exchange.phase = .connecting
    exchange.pool = self
    if let connection = connectionAtOnce(for: exchange) { return connection.start(exchange) }
    waiting.append(exchange)
    assign()
  }

  /// Returns the connection that was used last, if it is idle and nothing else has to be considered.
  private func connectionAtOnce(for exchange: Exchange) -> HTTP1Connection? {
    guard waiting.isEmpty, multiplexed.isEmpty, !isAssigning, !exchange.needsNewConnection,
      !exchange.flow.isSuspended, let limit = idle.last?.idleLimit, limit > table.now
    else { return nil }
    noteBusy()
    return idle.removeLast()
  }

  /// Forgets an exchange that waits for a connection. A connection that is being made for it goes on only if another
  /// exchange waits.
  func withdraw(_ exchange: Exchange) {
    guard let place = waiting.firstIndex(where: { $0 === exchange }) else { return }
    waiting.remove(at: place)
    while pending.count > waiting.count, let last = pending.popLast() {
      last.cancel()
      open -= 1
    }
    assign()
  }

  /// Gives connections to the waiting exchanges, and makes those that are missing.
  func assign() {
    guard !isAssigning else {
      mustAssignAgain = true
      return
    }
    isAssigning = true
    repeat {
      mustAssignAgain = false
      var place = 0
      // What a started exchange does can change the list.
      while place < waiting.count, !mustAssignAgain {
        if !assign(at: place) { place += 1 }
      }
    } while mustAssignAgain
    isAssigning = false
  }

  /// Returns whether the exchange at `place` has a connection now.
  private func assign(at place: Int) -> Bool {
    let exchange = waiting[place]
    // An exchange that is suspended would not send anything.
    guard !exchange.flow.isSuspended else { return false }
    dropExpired()
    switch state(ahead: place, exchange).step(mayMultiplex: mayMultiplex(exchange)) {
    case .useIdle:
      guard let connection = takeIdle(unused: exchange.needsNewConnection) else { return false }
      waiting.remove(at: place)
      connection.start(exchange)
      return true
    case .useStream:
      guard let connection = multiplexed.first(where: { $0.freeStreams > 0 }) else { return false }
      waiting.remove(at: place)
      if connection.start(exchange) { return true }
      waiting.insert(exchange, at: min(place, waiting.count))
    case .wait: break
    case .connect: connect(for: exchange)
    case .closeOtherAndConnect:
      // One that has been used makes room for a new one.
      group.closeOldestIdle(except: exchange.needsNewConnection ? nil : self)
      connect(for: exchange)
    }
    return false
  }

  private func state(ahead place: Int, _ exchange: Exchange) -> PoolState {
    var state = PoolState(limit: group.limit)
    state.freeStreams = multiplexed.reduce(0) { $0 + $1.freeStreams }
    state.idle = exchange.needsNewConnection ? idle.count { !$0.isUsed } : idle.count
    state.connecting = pending.count + (exchange.needsNewConnection ? 0 : settling)
    state.waiting = place
    state.multiplexes = hasFailed ? false : multiplexes
    state.open = group.open
    state.idleElsewhere = group.idleCount - state.idle
    if !exchange.needsNewConnection { state.idleElsewhere -= multiplexed.count { $0.isIdle } }
    return state
  }

  /// Whether HTTP/2 may carry the exchange. A proxy that reads the requests speaks HTTP/1.1.
  func mayMultiplex(_ exchange: Exchange) -> Bool { exchange.mayMultiplex && !forwards }

  // MARK: Connections

  private func connect(for exchange: Exchange) {
    guard let request = exchange.request else { return }
    let connection = PendingConnection(
      request, exchange.ticket, mayMultiplex: mayMultiplex(exchange), for: self)
    // Until now these exchanges have waited for one another, and not for the host.
    if pending.isEmpty { for exchange in waiting { exchange.noteActivity() } }
    pending.append(connection)
    open += 1
    connection.begin()
  }

  /// Takes a connection that was made.
  func opened(_ connection: HTTP1Connection, by maker: PendingConnection) {
    pending.removeAll { $0 === maker }
    multiplexes = false
    hasFailed = false
    keep(connection)
  }

  /// Takes a connection of HTTP/2 that was made.
  func opened(_ connection: HTTP2Connection, by maker: PendingConnection) {
    pending.removeAll { $0 === maker }
    multiplexes = true
    hasFailed = false
    multiplexed.append(connection)
    noteIdle(until: connection.idleLimit)
    // Its preface leaves with the first request, or without one.
    connection.flushLater()
    assign()
  }

  /// Ends the exchange for which a connection could not be made. Others that have waited for it make connections of
  /// their own.
  func failed(_ failure: TransportFailure, _ times: ConnectionFacts.Times, by maker: PendingConnection) {
    guard pending.contains(where: { $0 === maker }) else { return }
    pending.removeAll { $0 === maker }
    open -= 1
    hasFailed = true
    if let place = waiting.firstIndex(where: { $0.ticket == maker.ticket }) {
      let exchange = waiting.remove(at: place)
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
  }

  /// Counts a connection that is not idle any more.
  func noteBusy() {
    group.idleCount -= 1
    table.idleCount -= 1
  }

  /// All connections without an exchange.
  var idleConnections: [any Connection] { idle + multiplexed.filter(\.isIdle) }

  /// Takes the connection that was used last.
  ///
  /// - Parameter unused: Whether it must not have carried an exchange.
  private func takeIdle(unused: Bool) -> HTTP1Connection? {
    guard let place = idle.lastIndex(where: { !unused || !$0.isUsed }) else { return nil }
    let connection = idle.remove(at: place)
    noteBusy()
    return connection
  }

  /// Forgets a connection that was closed. Another one may be made in its place.
  func closed(_ connection: any Connection) {
    if let place = idle.lastIndex(where: { $0 === connection }) {
      idle.remove(at: place)
      noteBusy()
    } else if let place = multiplexed.firstIndex(where: { $0 === connection }) {
      if multiplexed.remove(at: place).isIdle { noteBusy() }
    }
    open -= 1
    if !waiting.isEmpty { table.assignLater(self) }
  }

  /// Closes idle connections that are too old to be used.
  private func dropExpired() {
    while let last = idle.last, last.idleLimit <= table.now { last.close() }
    for connection in multiplexed where connection.isIdle && connection.idleLimit <= table.now {
      connection.close()
    }
  }

  /// Closes the idle connections whose time is over. Returns the next time to ask.
  func sweep() -> UInt64 {
    for connection in idleConnections where connection.idleLimit <= table.now { connection.close() }
    return idleConnections.reduce(.max) { min($0, $1.idleLimit) }
  }

  /// Closes all connections, and cancels those that are being made.
  func closeAll() {
    for connection in pending { connection.cancel() }
    open -= pending.count
    pending.removeAll()
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
  /// The number of connections, with those that are being made.
  @exclusivity(unchecked) var open = 0
  /// The number of connections without an exchange.
  @exclusivity(unchecked) var idleCount = 0
  @exclusivity(unchecked) private var members: [Member] = []

  init(limit: Int) { self.limit = limit }

  func add(_ pool: Pool) {
    members.removeAll { $0.pool == nil }
    members.append(Member(pool: pool))
  }

  private var pools: [Pool] { members.compactMap(\.pool) }

  /// Closes the connection that has been idle longest. Connections of `pool` are left alone.
  func closeOldestIdle(except pool: Pool?) {
    let candidates = pools.filter { $0 !== pool }.flatMap(\.idleConnections)
    candidates.min { $0.idleSince < $1.idleSince }?.close()
  }
}
