import Foundation
import Synchronization

/// The response that a ``DataTask`` is awaited for, by any number of tasks and any number of times.
/// Serialization that runs code of a user happens where the response is awaited, when nobody has to
/// know of its failure earlier.
final class AwaitedSink<Value: Sendable>: ResponseSink {
  /// Guarded by the one lock of this class.
  fileprivate enum State {
    case pending([CheckedContinuation<Void, Never>])
    /// The request is over, its response is not yet made.
    case postponed(RequestOutcome, [CheckedContinuation<Void, Never>])
    /// The response is made, the request is not yet over.
    case prepared(AFDataResponse<Value>, [CheckedContinuation<Void, Never>])
    /// Ready to be serialized by the first who awaits it.
    case deliverable(RequestOutcome)
    /// Somebody serializes; the others wait.
    case serializing([CheckedContinuation<Void, Never>])
    case ready(AFDataResponse<Value>)
  }

  private let serialization: Serialization<Value>
  private let state = Mutex(State.pending([]))

  init(serialization: Serialization<Value>) {
    self.serialization = serialization
  }

  var runsUserCode: Bool { serialization.runsUserCode }

  func postpone(_ outcome: RequestOutcome) -> Bool {
    guard serialization.runsUserCode else { return false }
    state.withLock { state in state = .postponed(outcome, state.waiters) }
    return true
  }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    let result = serialization.response(for: outcome)
    state.withLock { state in state = .prepared(result.response, state.waiters) }
    return result.failure
  }

  func deliver() {
    let waiters = state.withLock { state in
      let waiters = state.waiters
      switch state {
      case .postponed(let outcome, _): state = .deliverable(outcome)
      case .prepared(let response, _): state = .ready(response)
      case .pending, .deliverable, .serializing, .ready:
        preconditionFailure("a handler was served before its response was made")
      }
      return waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// The response, as soon as there is one.
  func response() async -> AFDataResponse<Value> {
    while true {
      switch step() {
      case .ready(let response): return response
      case .serialize(let outcome): return finish(serialization.response(for: outcome).response)
      case .wait: await untilChanged()
      }
    }
  }

  private enum Step {
    case ready(AFDataResponse<Value>)
    case serialize(RequestOutcome)
    case wait
  }

  private func step() -> Step {
    state.withLock { state in
      switch state {
      case .ready(let response): return .ready(response)
      case .deliverable(let outcome):
        state = .serializing([])
        return .serialize(outcome)
      case .pending, .postponed, .prepared, .serializing: return .wait
      }
    }
  }

  private func untilChanged() async {
    await withCheckedContinuation { continuation in
      let hasChanged = state.withLock { state in
        switch state {
        case .pending(let waiters): state = .pending(waiters + [continuation])
        case .postponed(let outcome, let waiters): state = .postponed(outcome, waiters + [continuation])
        case .prepared(let response, let waiters): state = .prepared(response, waiters + [continuation])
        case .serializing(let waiters): state = .serializing(waiters + [continuation])
        case .deliverable, .ready: return true
        }
        return false
      }
      if hasChanged { continuation.resume() }
    }
  }

  private func finish(_ response: AFDataResponse<Value>) -> AFDataResponse<Value> {
    let waiters = state.withLock { state in
      defer { state = .ready(response) }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
    return response
  }
}

extension AwaitedSink.State {
  fileprivate var waiters: [CheckedContinuation<Void, Never>] {
    switch self {
    case .pending(let waiters), .serializing(let waiters): waiters
    case .postponed(_, let waiters), .prepared(_, let waiters): waiters
    case .deliverable, .ready: []
    }
  }
}
