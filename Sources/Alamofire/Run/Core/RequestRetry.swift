import Foundation

extension RequestCore {
  /// The cause of a further attempt.
  enum RetryCause {
    /// A retrier answered a failure.
    case retrier
    /// ``RequestDelegate/retryRequest(_:withDelay:)`` was called for a request that is finished.
    case demand
    /// The next request of a resumable upload follows.
    case continuation
  }

  /// Resets the request to its state before the first attempt, except for its handlers and counters. Every further
  /// attempt begins here.
  ///
  /// - Parameter sink: The handler whose serializer failed. Monitors receive its response as parsed.
  /// - Returns: False, without a change, if no further attempt may be made.
  func prepareRetry(
    of request: any RunOwner, because cause: RetryCause, failedSink sink: (any ResponseSink)? = nil
  ) -> Bool {
    let isReady = state.withLock { state in
      guard state.beginRetry(because: cause) else { return false }
      state.resetForRetry(because: cause)
      // The readers of the body have received all of it.
      if cause == .demand, state.bodies.isChanged { state.bodies.value.chunks = nil }
      return true
    }
    guard isReady else { return false }
    if cause == .continuation { return true }
    if cause == .demand { remove(.body) }
    kind.beginAgain(because: cause)
    if notifiesMonitors { request.notify(.retrying(ofSink: sink)) }
    return true
  }
}

extension RequestCore.CoreState {
  fileprivate mutating func beginRetry(because cause: RequestCore.RetryCause) -> Bool {
    switch cause {
    case .retrier, .continuation: lifecycle.attemptsAgain()
    case .demand: lifecycle.sentAgain() == .start
    }
  }

  /// Resets all but the handlers and the counters.
  fileprivate mutating func resetForRetry(because cause: RequestCore.RetryCause) {
    endAttemptForRetry()
    if let earlier = results.beginRetry(counts: cause != .continuation), keepsEarlierAttempts {
      results.history.value.add(earlier)
    }
    handlers.restart()
    // The attempt has ended, so that nothing waits for the decision.
    _ = run.closeHeadDecision()
    guard observed.added.isChanged else { return }
    observed.added.value.cacheCandidates = []
    if cause != .continuation { observed.added.value.progress.reset() }
  }
}
