import HTTPWire

/// The queues of requests, one for each host and limit of connections. Belongs to the loop's thread.
/// ``HostAdmission`` makes the decisions.
final class HostQueues {
  /// The requests that share a limit.
  struct Key: Hashable {
    let origin: Origin
    let connections: Int
  }

  final class Queue {
    let key: Key
    @exclusivity(unchecked) var admission: HostAdmission
    @exclusivity(unchecked) var multiplexes: Bool?
    @exclusivity(unchecked) var waitingTickets: Set<UInt64> = []
    /// The connections whose server allows few streams at a time.
    @exclusivity(unchecked) var limited: [LimitedConnection] = []

    init(_ key: Key) {
      self.key = key
      admission = HostAdmission(connections: key.connections)
    }
  }

  struct LimitedConnection {
    weak var record: ConnectionRecord?
  }

  @exclusivity(unchecked) private var hostQueues: [Key: Queue] = [:]
  /// The queue of the last request, because the next request mostly has the same host.
  @exclusivity(unchecked) private var last: Queue?
  private static let keptQueues = 1024

  /// Puts a transfer into the queue of its host. Returns whether it may start.
  func enqueue(_ transfer: Transfer) -> Bool {
    guard let request = transfer.request else { return false }
    let hostQueue = hostQueue(
      for: Key(origin: request.origin, connections: request.profile.connectionsPerHost))
    transfer.hostQueue = hostQueue
    transfer.phase = .waiting
    let admitted = hostQueue.admission.submitted(transfer.ticket, priority: request.priority)
    if !admitted { hostQueue.waitingTickets.insert(transfer.ticket) }
    return admitted
  }

  /// Removes a transfer that has ended, or that is suspended when its turn comes. Returns the transfers that may start
  /// now.
  func remove(_ transfer: Transfer, multiplexes: Bool?) -> [UInt64] {
    guard let hostQueue = transfer.hostQueue else { return [] }
    transfer.hostQueue = nil
    if !hostQueue.waitingTickets.isEmpty, hostQueue.waitingTickets.remove(transfer.ticket) != nil {
      _ = hostQueue.admission.withdrawn(transfer.ticket)
      return []
    }
    var admitted: [UInt64] = []
    if let next = hostQueue.admission.ended() { admitted.append(next) }
    if let multiplexes, multiplexes != hostQueue.multiplexes {
      hostQueue.multiplexes = multiplexes
      admitted += hostQueue.admission.learned(multiplexes: multiplexes)
    }
    for ticket in admitted { hostQueue.waitingTickets.remove(ticket) }
    if hostQueue.admission.isIdle, hostQueues.count > Self.keptQueues {
      hostQueues[hostQueue.key] = nil
      if last === hostQueue { last = nil }
    }
    return admitted
  }

  /// Notes the server's limit of concurrent streams on a connection. Returns the transfers that may start now.
  func noteStreamLimit(of key: Key, _ connection: ConnectionRecord) -> [UInt64] {
    guard let hostQueue = hostQueues[key] else { return [] }
    hostQueue.limited.removeAll { $0.record == nil || $0.record === connection }
    guard let limit = connection.streamLimit, limit < HostAdmission.streamsPerConnection else { return [] }
    hostQueue.limited.append(LimitedConnection(record: connection))
    let admitted = hostQueue.admission.learned(streams: max(1, limit), connections: hostQueue.limited.count)
    for ticket in admitted { hostQueue.waitingTickets.remove(ticket) }
    return admitted
  }

  private func hostQueue(for key: Key) -> Queue {
    if let last, last.key == key { return last }
    let hostQueue = hostQueues[key] ?? Queue(key)
    hostQueues[key] = hostQueue
    last = hostQueue
    return hostQueue
  }
}
