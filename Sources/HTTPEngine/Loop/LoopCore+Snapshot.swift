package import HTTPWire

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

  /// Returns the number of hosts whose queues are kept. Callable from any thread.
  package func hostQueueCount() async -> Int {
    await withCheckedContinuation { continuation in
      post(.run { continuation.resume(returning: $0.hostQueues.hostQueues.count) })
    }
  }
}
