import HTTPWire
import Synchronization

/// The end of the run of a stream request, for one of its readers. If the request is sent again, the reader keeps the
/// outcome of its own run, and cannot cancel the later one.
final class StreamRunEnd: Sendable {
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

/// A reader of a stream request. It is one of the response handlers of the request as well, so that it gets the outcome
/// after the last chunk.
protocol StreamSink: StreamReader, ResponseSink {
  var id: Int { get }
  var flow: StreamFlow { get }
  var runEnd: StreamRunEnd { get }
}

extension StreamSink {
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

  // Monitors are told of each value when it is handed out.
  func announce(to request: Request) {}

  func deliver() {
    runEnd.reach()
    flow.end(id)
  }
}
