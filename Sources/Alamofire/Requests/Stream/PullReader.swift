import HTTPWire
import Synchronization

/// What a stream request holds of a loop that reads it: whom to wake.
final class PullReader: StreamReader, ResponseSink {
  private struct State {
    var isWoken = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  let id: Int
  private let flow: StreamFlow
  private let state = Mutex(State())

  init(_ flow: StreamFlow, id: Int) {
    self.flow = flow
    self.id = id
  }

  func wake() {
    let waiter = state.withLock { state in
      defer { state.waiter = nil }
      if state.waiter == nil { state.isWoken = true }
      return state.waiter
    }
    waiter?.resume()
  }

  /// Returns when there may be something to read.
  nonisolated(nonsending) func wait() async {
    await withCheckedContinuation { continuation in
      let isWoken = state.withLock { state in
        guard !state.isWoken else {
          state.isWoken = false
          return true
        }
        state.waiter = continuation
        return false
      }
      if isWoken { continuation.resume() }
    }
  }

  // MARK: The end

  var runsUserCode: Bool { false }
  func postpone(_ outcome: RequestOutcome) -> Bool { true }
  func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
  func replaceFailure(with error: AFError) {}
  func announce(to request: Request) {}

  func deliver() { flow.end(id) }
}
