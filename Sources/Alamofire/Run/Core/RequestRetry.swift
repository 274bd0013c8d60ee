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
  /// - Returns: False, and nothing has changed, if no further attempt may be made.
  func prepareRetry(
    of request: any RunOwner, because cause: RetryCause, failedSink sink: (any ResponseSink)? = nil
  ) -> Bool {
    let (isReady, file) = state.withLock { state -> (Bool, URL?) in
      guard state.beginRetry(because: cause) else { return (false, nil) }
      let file = state.hasExtras ? state.extras.fileURL : nil
      state.resetForRetry(because: cause)
      // The readers of the body have received all of it.
      if cause == .demand, state.hasExtras { state.extras.chunks = nil }
      return (true, file)
    }
    guard isReady else { return false }
    switch cause {
    case .retrier:
      // A file at a destination belongs to the user. No response will name a temporary file.
      if let file, let download, download.destination == nil { try? FileManager.default.removeItem(at: file) }
    case .demand:
      remove(.body)
    case .continuation: return true
    }
    kind.beginAgain(because: cause)
    download?.forget()
    if notifiesMonitors { request.notify(.retrying(ofSink: sink)) }
    return true
  }
}

extension RequestCore.State {
  fileprivate mutating func beginRetry(because cause: RequestCore.RetryCause) -> Bool {
    switch cause {
    case .retrier, .continuation: lifecycle.mayAttemptAgain
    case .demand: lifecycle.sentAgain() == .start
    }
  }

  /// Resets all but the handlers and the counters.
  fileprivate mutating func resetForRetry(because cause: RequestCore.RetryCause) {
    endAttemptForRetry()
    if let earlier = results.beginRetry(counts: cause != .continuation), keepsEarlierAttempts {
      extras.earlierExchanges.append(earlier)
    }
    handlers.restart()
    // The attempt has ended, so that nothing waits for the decision.
    _ = run.closeHeadDecision()
    guard hasExtras else { return }
    extras.fileURL = nil
    extras.resumeData = nil
    extras.cacheCandidates = []
    if cause != .continuation { extras.progress.reset() }
  }
}
