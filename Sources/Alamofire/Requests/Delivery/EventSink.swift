import HTTPWire
import Synchronization

/// The end of the run of a request, for one of the readers of its events. If the request is sent again, the reader
/// keeps the outcome of its own run, and cannot cancel the later one.
final class RunEnd: Sendable {
  private struct State {
    var outcome: RequestOutcome?
    var isReached = false
  }

  private let state = Mutex(State())

  /// The outcome of the last attempt; `nil` while it is unknown.
  var outcome: RequestOutcome? { state.withLock { $0.outcome } }

  /// Whether the run has ended.
  var isReached: Bool { state.withLock { $0.isReached } }

  func keep(_ outcome: RequestOutcome) { state.withLock { $0.outcome = outcome } }

  func reach() { state.withLock { $0.isReached = true } }
}

/// A reader of the events of a request. It is one of the response handlers of the request as well, so that it receives
/// the outcome after the last event.
protocol EventSink: ResponseSink {
  var runEnd: RunEnd { get }
}

extension EventSink {
  var runsUserCode: Bool { false }

  func postpone(_ outcome: RequestOutcome) -> Bool {
    runEnd.keep(outcome)
    return true
  }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    runEnd.keep(outcome)
    return nil
  }

  func replaceFailure(with error: AFError) {}

  // The outcome is no response. Monitors are notified of each value of a stream when it is delivered.
  func announce(to request: Request) {}
}

/// A reader of a stream request.
protocol StreamSink: StreamReader, EventSink {
  var id: Int { get }
  var flow: StreamFlow { get }
}

extension StreamSink {
  func deliver() {
    runEnd.reach()
    flow.end(id)
  }
}
