import HTTPWire

/// The queues of requests, one for each host and its limits. Belongs to the loop's thread. ``HostAdmission`` decides
/// within a host, and ``HostOrder`` between hosts.
final class HostQueues {
  /// The requests that share a limit.
  struct Key: Hashable {
    let origin: Origin
    let connections: Int
    let limits: HostLimits?
  }

  /// The capacity of connections of HTTP/2, as far as it is known.
  struct StreamLimit: Equatable {
    /// The number of streams that the server allows on a connection.
    let streams: Int
    let connections: Int
  }

  final class Queue {
    let key: Key
    let hasRate: Bool
    @exclusivity(unchecked) var admission: HostAdmission
    @exclusivity(unchecked) var multiplexes: Bool?
    @exclusivity(unchecked) var waitingTickets: Set<UInt64> = []
    /// The streams of the connections; `nil` while the server has always allowed as many as usual.
    @exclusivity(unchecked) var streamLimit: StreamLimit?
    /// The entries of the queue in ``HostOrder``.
    @exclusivity(unchecked) var candidate: (request: HostAdmission.Waiting, number: UInt64)?
    @exclusivity(unchecked) var release: (time: UInt64, number: UInt64)?

    init(_ key: Key) {
      self.key = key
      hasRate = key.limits?.rate != nil
      admission = HostAdmission(connections: key.connections, limits: key.limits)
    }
  }

  @exclusivity(unchecked) private(set) var hostQueues: [Key: Queue] = [:]
  /// The queue of the last request, because the next request mostly has the same host.
  @exclusivity(unchecked) private var last: LastTarget<Queue>?
  /// The number of requests in flight, and its limit.
  @exclusivity(unchecked) private var running = 0
  @exclusivity(unchecked) private var mostRunning = Int.max
  /// Whether a request had a limit of the session. Until then, only the hosts with a rate are in the order.
  @exclusivity(unchecked) private var hasLimit = false
  @exclusivity(unchecked) private(set) var order = HostOrder()
  /// The number of queues beyond which those without requests are forgotten.
  @exclusivity(unchecked) private var keptQueues = 1024

  /// Puts a request into the queue of its host. Returns whether it may start.
  func enqueue(_ exchange: Exchange, _ now: UInt64) -> Bool {
    guard let request = exchange.request else { return false }
    let hostQueue = hostQueue(of: request)
    exchange.hostQueue = hostQueue
    mostRunning = request.mostInFlight
    if mostRunning < .max { hasLimit = true }
    let moment = HostAdmission.Moment(now: now, room: room)
    if hostQueue.admission.submitted(exchange.ticket, priority: exchange.priority, moment) {
      running += 1
      return true
    }
    hostQueue.waitingTickets.insert(exchange.ticket)
    renew(hostQueue, now)
    return false
  }

  /// The number of requests that the limit of the session allows.
  private var room: Int { mostRunning - running }

  /// The time at which a rate allows a waiting request. It is 0 if a request may be sent now, because the time of its
  /// host has come before another change.
  var releaseTime: UInt64 { hasLimit && room > 0 && order.hasCandidate ? 0 : order.releaseTime }

  /// Gives a host its place in the order after a change of its queue.
  private func renew(_ hostQueue: Queue, _ now: UInt64) {
    guard hasLimit || hostQueue.hasRate else { return }
    order.renew(hostQueue, isLimited: hasLimit, now)
  }

  /// Removes an exchange that has ended, or that is suspended when its turn comes. Returns the exchanges that may start
  /// now.
  ///
  /// - Parameter isUnsent: Whether the exchange was admitted and is not sent, so that it does not count for a rate.
  func remove(_ exchange: Exchange, multiplexes: Bool?, _ now: UInt64, isUnsent: Bool = false)
    -> [UInt64]
  {
    guard let hostQueue = exchange.hostQueue else { return [] }
    exchange.hostQueue = nil
    if !hostQueue.waitingTickets.isEmpty, hostQueue.waitingTickets.remove(exchange.ticket) != nil {
      _ = hostQueue.admission.withdrawn(exchange.ticket)
      renew(hostQueue, now)
      return []
    }
    running -= 1
    // If the session has a limit, the next request may be one for another host.
    let moment = HostAdmission.Moment(now: now, room: hasLimit ? 0 : .max)
    var admitted: [UInt64] = []
    // An exchange without a start was admitted just now.
    let start = exchange.timing.started > 0 ? exchange.timing.started : now
    let next =
      isUnsent ? hostQueue.admission.returned(moment, admittedAt: start) : hostQueue.admission.ended(moment)
    if let next { admitted.append(next) }
    if let multiplexes, multiplexes != hostQueue.multiplexes {
      hostQueue.multiplexes = multiplexes
      admitted += hostQueue.admission.learned(multiplexes: multiplexes, moment)
    }
    note(admitted, of: hostQueue, now)
    if hasLimit { admitted += fill(now) }
    if hostQueues.count > keptQueues { forgetQueues(now) }
    return admitted
  }

  /// Removes the queues that hold no state worth keeping. A rate keeps a queue for a while after its last request.
  private func forgetQueues(_ now: UInt64) {
    hostQueues = hostQueues.filter { !$0.value.admission.isForgettable(now) }
    last = nil
    // The rest is examined again when it has doubled, so that the cost of a request stays constant.
    keptQueues = max(1024, hostQueues.count * 2)
  }

  private func note(_ admitted: [UInt64], of hostQueue: Queue, _ now: UInt64) {
    running += admitted.count
    for ticket in admitted { hostQueue.waitingTickets.remove(ticket) }
    renew(hostQueue, now)
  }

  /// Admits the requests of all hosts that the limit of the session allows, in the order of their priorities.
  private func fill(_ now: UInt64) -> [UInt64] {
    while let hostQueue = order.due(now) { renew(hostQueue, now) }
    var admitted: [UInt64] = []
    while room > 0, let hostQueue = order.best(now) {
      guard let ticket = hostQueue.admission.next(HostAdmission.Moment(now: now, room: room)) else { break }
      note([ticket], of: hostQueue, now)
      admitted.append(ticket)
    }
    return admitted
  }

  /// Returns the exchanges that rates allow now.
  func release(_ now: UInt64) -> [UInt64] {
    if hasLimit { return fill(now) }
    var admitted: [UInt64] = []
    while let hostQueue = order.due(now) {
      let released = hostQueue.admission.released(HostAdmission.Moment(now: now))
      note(released, of: hostQueue, now)
      admitted += released
    }
    return admitted
  }

  /// Changes the queue position of a waiting exchange.
  func prioritize(_ exchange: Exchange, _ now: UInt64) {
    guard let hostQueue = exchange.hostQueue,
      hostQueue.admission.prioritized(exchange.ticket, exchange.priority)
    else { return }
    renew(hostQueue, now)
  }

  /// Notes that connections of HTTP/2 serve a queue. Returns the requests that may start now.
  ///
  /// - Parameters:
  ///   - streams: The number of streams that the server of such a connection allows at a time.
  ///   - connections: The number of connections.
  func noteStreams(_ streams: Int, connections: Int, of hostQueue: Queue, _ now: UInt64) -> [UInt64] {
    let streams = min(max(1, streams), HostAdmission.streamsPerConnection)
    let limit = StreamLimit(streams: streams, connections: connections)
    // With as many streams as usual, the number of connections changes nothing.
    let isLimited = hostQueue.streamLimit != nil || streams < HostAdmission.streamsPerConnection
    let isNew = isLimited && hostQueue.streamLimit != limit
    guard hostQueue.multiplexes != true || isNew else { return [] }
    let moment = HostAdmission.Moment(now: now, room: room)
    var admitted: [UInt64] = []
    if isNew {
      hostQueue.streamLimit = limit
      admitted += hostQueue.admission.learned(streams: streams, connections: connections, moment)
    }
    if hostQueue.multiplexes != true {
      hostQueue.multiplexes = true
      let moment = HostAdmission.Moment(now: now, room: room - admitted.count)
      admitted += hostQueue.admission.learned(multiplexes: true, moment)
    }
    note(admitted, of: hostQueue, now)
    return admitted
  }

  /// Notes that the connection of a running request accepts no further ones. Returns the requests that may start now.
  func noteDraining(_ hostQueue: Queue, _ now: UInt64) -> [UInt64] {
    let admitted = hostQueue.admission.began(draining: 1, HostAdmission.Moment(now: now, room: room))
    note(admitted, of: hostQueue, now)
    return admitted
  }

  private func hostQueue(of request: WireRequest) -> Queue {
    if let last, last.receives(request) { return last.value }
    let profile = request.profile
    let key = Key(origin: request.origin, connections: profile.connectionsPerHost, limits: profile.hostLimits)
    let hostQueue = hostQueues[key] ?? Queue(key)
    hostQueues[key] = hostQueue
    last = LastTarget(request, hostQueue)
    return hostQueue
  }
}

extension HostQueues {
  /// Returns the positions of waiting exchanges in their queues.
  static func places(of exchanges: [Exchange]) -> [UInt64: Int] {
    var places: [UInt64: Int] = [:]
    var seen: Set<ObjectIdentifier> = []
    for case let hostQueue? in exchanges.map(\.hostQueue)
    where seen.insert(ObjectIdentifier(hostQueue)).inserted {
      for (position, request) in hostQueue.admission.queue.enumerated() { places[request.ticket] = position }
    }
    return places
  }

  /// Returns the reason for which an exchange waits; `nil` if it does not wait.
  func reason(_ exchange: Exchange, _ now: UInt64) -> TransportSnapshot.WaitReason? {
    guard let hostQueue = exchange.hostQueue, hostQueue.waitingTickets.contains(exchange.ticket) else {
      return nil
    }
    switch hostQueue.admission.obstacle(now) {
    case .connections: return .connections
    case .inFlight: return .requestsOfHost
    case .rate: return .rate
    case nil: return .requestsOfSession
    }
  }
}

/// The queue or the pool of the last request, because the next request mostly goes to the same host.
final class LastTarget<Value: AnyObject> {
  private let origin: Origin
  private let profile: ConnectionProfile
  let value: Value

  init(_ request: WireRequest, _ value: Value) {
    origin = request.origin
    profile = request.profile
    self.value = value
  }

  /// Whether the value serves the request, too.
  func receives(_ request: WireRequest) -> Bool { request.goes(to: origin, with: profile) }
}
