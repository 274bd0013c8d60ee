import HTTPWire

/// Sends a request, or joins the transfer of an identical one.
struct SharedTransport: Transport {
  let shared: SharedTransfers
  let transport: any Transport
  /// The number of removals from the cache so far. A request after a removal is another one.
  let removalCount: UInt64

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    let key = SharedTransfers.Key(
      request, in: shared.era, removalCount: removalCount)
    let room = LocalTransferControl()
    let id = shared.reserve()
    defer { observer.transferEnded() }
    switch observer.transferBegan(SharedTransferControl(shared: shared, key: key, id: id, room: room)) {
    case .go: break
    case .hold: room.suspend()
    case .refuse: room.cancel()
    }
    do throws(TransportFailure) { try await room.pass() } catch {
      shared.leave(key, id)
      throw error
    }
    switch shared.join(key, id, observer, room) {
    case .first(let flight): begin(request, key, flight)
    case .joined(let head?): tell(head, key, id, observer, room)
    case .joined(nil): break
    case .left: throw TransportFailure(.cancelled, "The request was cancelled.")
    }
    let outcome = await shared.outcome(key, id)
    // Suspended, or not decided about its head yet: the response is there, and waits.
    try await room.pass()
    return try outcome.get()
  }

  private func tell(
    _ head: ResponseHead, _ key: SharedTransfers.Key, _ id: UInt64, _ observer: any TransferObserver,
    _ room: LocalTransferControl
  ) {
    let openings = room.resumptions
    if observer.headReceived(head) == .hold { room.suspend(unlessResumedSince: openings) }
    if let count = shared.knowsHead(key, id) { observer.bytesMoved(count) }
  }

  private func begin(_ request: WireRequest, _ key: SharedTransfers.Key, _ flight: UInt64) {
    let observer = SharedObserver(shared: shared, key: key, flight: flight)
    let (transport, shared) = (transport, shared)
    Task {
      let outcome: SharedTransfers.Outcome
      do throws(TransportFailure) {
        outcome = .success(try await transport.send(request, observer: observer))
      } catch {
        outcome = .failure(error)
      }
      shared.ended(key, flight, outcome)
    }
  }
}

/// Forwards the events of a transfer to all requests that wait for it.
private final class SharedObserver: TransferObserver {
  private let shared: SharedTransfers
  private let key: SharedTransfers.Key
  private let flight: UInt64

  init(shared: SharedTransfers, key: SharedTransfers.Key, flight: UInt64) {
    self.shared = shared
    self.key = key
    self.flight = flight
  }

  var cancelsByControl: Bool { true }

  func transferBegan(_ control: any TransferControl) -> TransferStart { shared.began(key, flight, control) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    // All requests of the transfer follow a redirect. A challenge may concern one of them alone.
    shared.headCame(key, flight, head) && head.status / 100 == 3 ? .discard : .proceed
  }

  func bytesMoved(_ count: ByteCount) { shared.bytesMoved(key, flight, count) }

  func transferEnded() {}
}

/// Holds up one request, and never the transfer; cancelled, the request leaves it.
private struct SharedTransferControl: TransferControl {
  let shared: SharedTransfers
  let key: SharedTransfers.Key
  let id: UInt64
  let room: LocalTransferControl

  func suspend() { room.suspend() }
  func resume() { room.resume() }

  func cancel() {
    room.cancel()
    shared.leave(key, id)
  }
}
