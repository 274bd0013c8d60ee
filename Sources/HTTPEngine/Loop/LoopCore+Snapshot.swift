package import HTTPWire

extension LoopCore {
  /// Returns the transfers and connections of this moment.
  func snapshot() -> TransportSnapshot {
    var scenes: [Origin: Scene] = [:]
    for transfer in transfers.values.sorted(by: { $0.ticket < $1.ticket }) {
      guard let request = transfer.request else { continue }
      scenes[request.origin, default: Scene()].add(transfer)
    }
    for (ports, origin) in sockets.open() { scenes[origin, default: Scene()].ports.insert(ports) }
    let hosts = scenes.sorted { $0.key.description < $1.key.description }.map { origin, scene in
      TransportSnapshot.Host(
        origin: origin.description, waiting: waiting(scene.waiting), running: scene.running.map(Self.running),
        openConnections: scene.ports.count,
        idleConnections: scene.ports.subtracting(scene.running.compactMap(\.connection.ports)).count)
    }
    return TransportSnapshot(hosts: hosts)
  }

  /// The transfers and connections of one origin.
  private struct Scene {
    var waiting: [Transfer] = []
    var running: [Transfer] = []
    var ports: Set<RetainedSockets.Ports> = []

    mutating func add(_ transfer: Transfer) {
      if transfer.phase.isAdded { running.append(transfer) } else { waiting.append(transfer) }
    }
  }

  private func waiting(_ transfers: [Transfer]) -> [TransportSnapshot.WaitingRequest] {
    let places = HostQueues.places(of: transfers)
    let sorted = transfers.sorted { left, right in
      (places[left.ticket] ?? .max, left.ticket) < (places[right.ticket] ?? .max, right.ticket)
    }
    return sorted.compactMap { transfer in
      guard let request = transfer.request else { return nil }
      let isSuspended = transfer.phase == .withheld || transfer.flow.isSuspended
      return TransportSnapshot.WaitingRequest(
        method: request.method, url: request.url, priority: transfer.priority,
        reason: isSuspended ? .suspended : hostQueues.reason(transfer, now) ?? .connections)
    }
  }

  private static func running(_ transfer: Transfer) -> TransportSnapshot.RunningRequest {
    TransportSnapshot.RunningRequest(
      method: transfer.request?.method ?? "", url: transfer.request?.url ?? "",
      bytesSent: transfer.count.sent, bytesReceived: transfer.count.received,
      isSuspended: transfer.flow.isSuspended, isThrottled: transfer.flow == .stopped(.throttled))
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
