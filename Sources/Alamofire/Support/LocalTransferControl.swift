import Foundation
import HTTPSystem
package import HTTPWire
import Synchronization

/// The control of a ``LocalTransport``: its only reader waits here while the transfer is suspended or the sink is
/// full.
package final class LocalTransferControl: TransferControl {
  private struct State {
    var isClosed = false
    var isFull = false
    var isCancelled = false
    /// Whether the deadline has ended a wait.
    var isOver = false
    var resumptions = 0
    var reader: CheckedContinuation<Void, Never>?

    var mayPass: Bool { isCancelled || isOver || !(isClosed || isFull) }
  }

  /// Whether bytes may move, and what waits for that, for any thread.
  private let state = Mutex(State())
  /// The end of the total time of the request; `nil` without a limit.
  private let deadline: MonotonicTime?

  /// Makes the control of a transfer.
  ///
  /// - Parameter deadline: The end of its total time, which a suspension does not stop.
  package init(deadline: MonotonicTime? = nil) { self.deadline = deadline }

  /// The number of calls of ``resume()``.
  package var resumptions: Int { state.withLock { $0.resumptions } }

  package func suspend() { change { $0.isClosed = true } }

  /// Begins a transfer as its observer has answered.
  package func begin(_ start: TransferStart) {
    switch start {
    case .go: break
    // The control was known before the answer, so it may have been resumed since.
    case .hold: suspend(unlessResumedSince: 0)
    case .refuse: cancel()
    }
  }

  /// Suspends after a held head, unless the decision was made before the observer returned.
  package func suspend(unlessResumedSince resumptions: Int) {
    change { state in
      if state.resumptions == resumptions { state.isClosed = true }
    }
  }

  /// Whether the transfer was cancelled.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  package func resume() {
    change { state in
      state.isClosed = false
      state.resumptions += 1
    }
  }

  package func cancel() { change { $0.isCancelled = true } }

  /// Marks the sink as full before it gets bytes, because it may call ``hasRoom()`` before it returns.
  package func expectFullness() { change { $0.isFull = true } }

  package func hasRoom() { change { $0.isFull = false } }

  /// Returns when bytes may move. Throws after a cancellation, and if the deadline ends the wait.
  package func pass() async throws(TransportFailure) {
    if !state.withLock({ $0.mayPass }) { await wait() }
    let (isCancelled, isOver) = state.withLock { ($0.isCancelled, $0.isOver) }
    if isCancelled { throw TransportFailure(.cancelled, "The request was cancelled.") }
    if isOver { throw Self.incomplete }
  }

  /// Throws after the deadline, for content that takes time to read.
  func checkDeadline() throws(TransportFailure) {
    guard let deadline, deadline <= .now else { return }
    throw Self.incomplete
  }

  private static var incomplete: TransportFailure {
    TransportFailure(
      .timedOut, "The response was not complete in time (timeoutIntervalForResource).", phase: .total)
  }

  private func wait() async {
    let timer = deadline.map { deadline in
      DispatchSource.timer(at: DispatchTime(deadline)) { [weak self] in self?.change { $0.isOver = true } }
    }
    defer { timer?.cancel() }
    await withCheckedContinuation { continuation in
      let mayPass = state.withLock { state in
        if !state.mayPass { state.reader = continuation }
        return state.mayPass
      }
      if mayPass { continuation.resume() }
    }
  }

  /// Gives bytes to a sink, and waits while the sink is full. The sink ends the wait with ``hasRoom()``.
  func give(_ bytes: Data, to sink: any BodySink) async throws(TransportFailure) {
    expectFullness()
    switch bytes.withUnsafeBytes({ sink.receive($0) }) {
    case .more: hasRoom()
    case .pause: try await pass()
    case .failure(let failure): throw failure
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
