/// Where a request stands for those who hold it, and which steps are allowed from there.
package struct RequestState: Sendable, Equatable {
  package enum Phase: Sendable, CaseIterable {
    /// Made, not started. → every other
    case initialized
    /// Running, or waiting to be sent. → suspended, cancelled, finished
    case resumed
    /// Held by `suspend()`. → resumed, cancelled, finished
    case suspended
    /// Ended by `cancel()`; the end of all steps.
    case cancelled
    /// Over, with its handlers served. → resumed, but only through ``reopen()``
    case finished
  }

  package private(set) var phase: Phase = .initialized

  package init() {}

  package func canTransition(to next: Phase) -> Bool {
    switch (phase, next) {
    case (.initialized, _): true
    case (_, .initialized), (.resumed, .resumed), (.suspended, .suspended): false
    case (.resumed, .suspended), (.resumed, .cancelled), (.resumed, .finished): true
    case (.suspended, .resumed), (.suspended, .cancelled), (.suspended, .finished): true
    case (.cancelled, _), (.finished, _): false
    }
  }

  /// Takes the step if it is allowed, and says whether it was. A step that is not allowed is no error:
  /// `cancel()` twice, or `resume()` after the end, does nothing.
  package mutating func transition(to next: Phase) -> Bool {
    guard canTransition(to: next) else { return false }
    phase = next
    return true
  }

  /// A handler was added after the end: a finished request runs once more, for that handler alone and
  /// without the network. Says whether it does.
  package mutating func reopen() -> Bool {
    guard phase == .finished else { return false }
    phase = .resumed
    return true
  }
}
