import HTTPWire

/// One lane for each host and profile, in which requests wait for their turn. Belongs to the loop
/// thread; what is decided is decided by ``HostAdmission``.
final class Lanes {
  /// Which requests share a limit.
  struct Key: Hashable {
    let origin: Origin
    let connections: Int
  }

  final class Lane {
    let key: Key
    @exclusivity(unchecked) var admission: HostAdmission
    @exclusivity(unchecked) var multiplexes: Bool?
    @exclusivity(unchecked) var waitingTickets: Set<UInt64> = []
    /// The connections whose server takes few streams at a time.
    @exclusivity(unchecked) var limited: [LimitedConnection] = []

    init(_ key: Key) {
      self.key = key
      admission = HostAdmission(connections: key.connections)
    }
  }

  struct LimitedConnection {
    weak var record: ConnectionRecord?
  }

  @exclusivity(unchecked) private var lanes: [Key: Lane] = [:]
  /// The lane of the last request, which is mostly that of the next.
  @exclusivity(unchecked) private var last: Lane?
  private static let keptLanes = 1024

  /// A transfer has come. Returns whether it may start.
  func submitted(_ transfer: Transfer) -> Bool {
    guard let request = transfer.request else { return false }
    let lane = lane(for: Key(origin: request.origin, connections: request.profile.connectionsPerHost))
    transfer.lane = lane
    let admitted = lane.admission.submitted(transfer.ticket, priority: request.priority)
    if !admitted { lane.waitingTickets.insert(transfer.ticket) }
    return admitted
  }

  /// A transfer is over, or is not wanted any more. Returns those that may start now.
  func ended(_ transfer: Transfer, multiplexes: Bool?) -> [UInt64] {
    guard let lane = transfer.lane else { return [] }
    transfer.lane = nil
    if !lane.waitingTickets.isEmpty, lane.waitingTickets.remove(transfer.ticket) != nil {
      _ = lane.admission.withdrawn(transfer.ticket)
      return []
    }
    var admitted: [UInt64] = []
    if let next = lane.admission.ended() { admitted.append(next) }
    if let multiplexes, multiplexes != lane.multiplexes {
      lane.multiplexes = multiplexes
      admitted += lane.admission.learned(multiplexes: multiplexes)
    }
    for ticket in admitted { lane.waitingTickets.remove(ticket) }
    if lane.admission.isIdle, lanes.count > Self.keptLanes {
      lanes[lane.key] = nil
      if last === lane { last = nil }
    }
    return admitted
  }

  /// A server has said how many streams a connection takes at a time. Returns the transfers that may start now.
  func limited(_ key: Key, by connection: ConnectionRecord) -> [UInt64] {
    guard let lane = lanes[key] else { return [] }
    lane.limited.removeAll { $0.record == nil || $0.record === connection }
    guard let limit = connection.streamLimit, limit < HostAdmission.streamsPerConnection else { return [] }
    lane.limited.append(LimitedConnection(record: connection))
    let admitted = lane.admission.learned(streams: max(1, limit), connections: lane.limited.count)
    for ticket in admitted { lane.waitingTickets.remove(ticket) }
    return admitted
  }

  private func lane(for key: Key) -> Lane {
    if let last, last.key == key { return last }
    let lane = lanes[key] ?? Lane(key)
    lanes[key] = lane
    last = lane
    return lane
  }
}
