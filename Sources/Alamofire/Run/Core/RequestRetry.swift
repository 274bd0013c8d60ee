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
  /// attempt begins here. Monitors receive the responses that were created for handlers, because the next attempt
  /// creates others.
  ///
  /// - Returns: False, without a change, if no further attempt may be made.
  func prepareRetry(of request: any RunOwner, because cause: RetryCause) -> Bool {
    let notifies = notifiesMonitors
    var served: ShortList<any ResponseSink> = []
    // The attempt leaves errors, body streams and handlers of the caller, which are released outside the lock.
    let left = state.withLock { state -> LeftByAttempt? in
      let left = LeftByAttempt(state)
      if notifies { served = state.handlers.served }
      guard state.beginRetry(because: cause) else { return nil }
      state.resetForRetry(because: cause)
      // The readers of the body have received all of it.
      if cause == .demand, state.bodies.isChanged {
        state.bodies.value.chunks = nil
        // Under the lock, so that the interest of a reader that is added at the same time stays.
        remove(.body)
      }
      return left
    }
    guard left != nil else { return false }
    if cause == .continuation { return true }
    kind.beginAgain(because: cause)
    if notifies { request.notify(.retrying(after: served)) }
    return true
  }
}

/// The state that a retry forgets. A copy of the state alone would share the memory of what few requests have.
private struct LeftByAttempt: Sendable {
  let state: RequestCore.CoreState
  let observers: AddedObservers?
  let bodies: SharedBodies?
  let history: AttemptHistory?

  init(_ state: RequestCore.CoreState) {
    self.state = state
    observers = state.observed.added.read { copy $0 }
    bodies = state.bodies.read { copy $0 }
    history = state.results.history.read { copy $0 }
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
