package import HTTPWire

extension LoopCore {
  /// Returns the requests and connections of this moment.
  func snapshot() -> TransportSnapshot {
    var scenes: [Origin: Scene] = [:]
    let requests = transfers.values.map(Row.init) + exchanges.exchanges.values.map(Row.init)
    for row in requests.sorted(by: { $0.queued.ticket < $1.queued.ticket }) {
      guard let request = row.queued.request else { continue }
      scenes[request.origin, default: Scene()].rows.append(row)
    }
    for (ports, origin) in sockets.open() { scenes[origin, default: Scene()].ports.insert(ports) }
    for (origin, open, idle) in exchanges.connectionCounts where open > 0 {
      scenes[origin, default: Scene()].openConnections += open
      scenes[origin, default: Scene()].idleConnections += idle
    }
    let hosts = scenes.sorted { $0.key.description < $1.key.description }.map { origin, scene in
      TransportSnapshot.Host(
        origin: origin.description, waiting: waiting(scene.rows.filter { !$0.isRunning }),
        running: scene.rows.filter(\.isRunning).map(\.running),
        openConnections: scene.openConnections + scene.ports.count,
        idleConnections: scene.idleConnections + scene.ports.subtracting(scene.rows.compactMap(\.ports)).count
      )
    }
    return TransportSnapshot(hosts: hosts)
  }

  /// The requests and connections of one origin.
  private struct Scene {
    var rows: [Row] = []
    var openConnections = 0
    var idleConnections = 0
    /// The connections of libcurl.
    var ports: Set<RetainedSockets.Ports> = []
  }

  /// One request, whatever carries it.
  private struct Row {
    let queued: any QueuedRequest
    let isRunning: Bool
    let isSuspended: Bool
    let isThrottled: Bool
    let count: ByteCount
    var ports: RetainedSockets.Ports?

    init(_ transfer: Transfer) {
      queued = transfer
      isRunning = transfer.phase.isAdded
      isSuspended = transfer.flow.isSuspended || transfer.phase == .withheld
      isThrottled = transfer.flow == .stopped(.throttled)
      count = transfer.count
      ports = transfer.phase.isAdded ? transfer.connection.ports : nil
    }

    init(_ exchange: Exchange) {
      queued = exchange
      isRunning = exchange.phase.isAdmitted
      isSuspended = exchange.flow.isSuspended || exchange.phase == .withheld
      isThrottled = exchange.flow.isThrottled
      count = exchange.count
    }

    var running: TransportSnapshot.RunningRequest {
      TransportSnapshot.RunningRequest(
        method: queued.request?.method ?? "", url: queued.request?.url ?? "", bytesSent: count.sent,
        bytesReceived: count.received, isSuspended: isSuspended, isThrottled: isThrottled)
    }
  }

  private func waiting(_ rows: [Row]) -> [TransportSnapshot.WaitingRequest] {
    let places = HostQueues.places(of: rows.map(\.queued))
    let sorted = rows.sorted { left, right in
      let tickets = (left.queued.ticket, right.queued.ticket)
      return (places[tickets.0] ?? .max, tickets.0) < (places[tickets.1] ?? .max, tickets.1)
    }
    return sorted.compactMap { row in
      guard let request = row.queued.request else { return nil }
      return TransportSnapshot.WaitingRequest(
        method: request.method, url: request.url, priority: row.queued.priority,
        reason: row.isSuspended ? .suspended : hostQueues.reason(row.queued, now) ?? .connections)
    }
  }
}

extension EventLoop {
  /// Returns the transfers and connections of this moment. Callable from any thread.
  package func snapshot() async -> TransportSnapshot {
    await withCheckedContinuation { continuation in
      post(.run { continuation.resume(returning: $0.snapshot()) })
    }
  }

  /// Returns the number of hosts whose queues are kept. Callable from any thread.
  package func hostQueueCount() async -> Int {
    await withCheckedContinuation { continuation in
      post(.run { continuation.resume(returning: $0.hostQueues.hostQueues.count) })
    }
  }
}
