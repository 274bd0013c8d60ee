import Foundation
package import HTTPWire
import Synchronization

/// The control of a ``LocalTransport``: its one reader waits here while it is closed, or while there is no room.
package final class LocalTransferControl: TransferControl {
  private struct State {
    var isClosed = false
    var isFull = false
    var isCancelled = false
    var resumptions = 0
    var reader: CheckedContinuation<Void, Never>?

    var mayPass: Bool { isCancelled || !(isClosed || isFull) }
  }

  private let state = Mutex(State())

  package init() {}

  /// How often it has been opened.
  package var resumptions: Int { state.withLock { $0.resumptions } }

  package func suspend() { change { $0.isClosed = true } }

  /// For a head that is held: the decision may have been made before the observer returned.
  package func suspend(unlessResumedSince resumptions: Int) {
    change { state in
      if state.resumptions == resumptions { state.isClosed = true }
    }
  }

  package func resume() {
    change { state in
      state.isClosed = false
      state.resumptions += 1
    }
  }

  package func cancel() { change { $0.isCancelled = true } }

  /// Before bytes are offered: whoever has no room may tell of it before the offer has returned.
  package func expectFullness() { change { $0.isFull = true } }

  package func hasRoom() { change { $0.isFull = false } }

  /// Returns when bytes may move.
  package func pass() async throws(TransportFailure) {
    await withCheckedContinuation { continuation in
      let mayPass = state.withLock { state in
        if !state.mayPass { state.reader = continuation }
        return state.mayPass
      }
      if mayPass { continuation.resume() }
    }
    guard !state.withLock({ $0.isCancelled }) else {
      throw TransportFailure(.cancelled, "The request was cancelled.")
    }
  }

  /// Waits for room as often as the sink has none. Its ``hasRoom()`` is what the sink wakes.
  func give(_ bytes: Data, to sink: any BodySink) async throws(TransportFailure) {
    while true {
      expectFullness()
      switch bytes.withUnsafeBytes({ sink.receive($0) }) {
      case .taken: return hasRoom()
      case .full: try await pass()
      case .failure(let failure): throw failure
      }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
      body(&state)
      guard state.mayPass else { return nil }
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }
}
