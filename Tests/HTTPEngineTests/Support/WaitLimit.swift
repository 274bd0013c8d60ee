import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Limits the waits of tests, so that a wait that would not end says what was awaited.
enum WaitLimit {
  /// Longer than any wait on a busy machine, and shorter than the limits of the suites.
  static let duration = Duration.seconds(50)

  /// Waits for `body`. If it has not ended in time, an issue names what was awaited, and `end` has to end it.
  static func watch<Result, Failure: Error>(
    _ awaited: @autoclosure @escaping @Sendable () -> String, _ location: SourceLocation,
    orElse end: @escaping @Sendable () -> Void, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let guardian = Task {
      guard (try? await Task.sleep(for: duration)) != nil else { return }
      Issue.record("\(awaited()) did not come within \(duration)", sourceLocation: location)
      end()
    }
    defer { guardian.cancel() }
    return try await body()
  }
}

extension EngineTransport {
  /// Sends a request. If its outcome does not come, an issue says so, and the request is cancelled.
  func send(
    _ request: WireRequest, within location: SourceLocation, observer: Watcher
  ) async throws(TransportFailure) -> WireResponse {
    try await WaitLimit.watch(
      "the outcome of \(request.method) \(request.url)", location, orElse: { observer.cancel() }
    ) { () async throws(TransportFailure) in try await send(request, observer: observer) }
  }
}

extension Gate {
  /// Waits until `count` replies have reached the gate.
  func waitForArrival(count: Int = 1, _ location: SourceLocation = #_sourceLocation) async {
    let wait = Task { await waitUntilReached(count: count) }
    await WaitLimit.watch("reply \(count) at the gate", location, orElse: { wait.cancel() }) {
      await wait.value
    }
  }
}
