import FoundationNetworking

/// The state of a request, as ``Request/State`` shows it.
package enum RequestState: Sendable {
  case initialized, resumed, suspended, cancelled, finished
}

/// The life of one request: its public state (``Request/State``) and whether an attempt runs.
/// Pure: the owner performs the actions that it returns.
package struct RequestLifecycle: Sendable {
  /// The state of the attempts.
  package enum Run: Sendable, Equatable {
    case notStarted
    /// Started, and waiting for the user to resume before anything is sent.
    case gated
    case running
    /// The handlers have been served; later ones get the same outcome.
    case ended
  }

  package enum Action: Sendable, Equatable {
    case nothing
    /// Start an attempt.
    case start
    /// Continue a gated attempt, or resume the running transfer.
    case proceed
    /// Suspend the running transfer.
    case hold
    /// Cancel the running attempt.
    case cancel
    /// Serve the handlers: there is nothing left to send.
    case finish
    /// End the wait for a retrier of a late handler. The request has ended, and its outcome stays.
    case refuseRetry
  }

  package private(set) var state = RequestState.initialized
  package private(set) var run = Run.notStarted
  /// Whether the session has ended, so that nothing may be sent from now on.
  package private(set) var isAbandoned = false
  /// Whether the request was cancelled by ``closed()``, so that it ends by a closing handshake.
  package private(set) var isClosing = false
  /// Whether the run only serves handlers that were added after the end of the request, so that its outcome stays.
  package private(set) var servesLateHandlers = false
  /// Whether the request was cancelled, or its session has ended, while such handlers were served.
  package private(set) var refusesRetry = false
  /// The number of ended runs whose handlers have yet to be called. A request that is sent again may have two. Small,
  /// because every request has it, and each of these runs holds a thread of the pool.
  private var deliveries: UInt8 = 0
  /// Whether a handler was added after the end, and waits until the earlier ones are called.
  private var hasWaitingHandler = false

  /// Whether another attempt may be made.
  package var mayAttemptAgain: Bool { state != .cancelled && !isAbandoned && !refusesRetry }

  /// The state of the task of the current attempt.
  var taskState: URLSessionTask.State {
    if run == .ended { return .completed }
    return switch state {
    case .initialized, .suspended: .suspended
    case .resumed: .running
    case .cancelled: .canceling
    case .finished: .completed
    }
  }

  package init() {}

  package mutating func resumed() -> Action {
    guard state.canBecome(.resumed) else { return .nothing }
    state = .resumed
    return started()
  }

  package mutating func suspended() -> Action {
    guard !servesLateHandlers, state.canBecome(.suspended) else { return .nothing }
    state = .suspended
    return run == .running ? .hold : .nothing
  }

  package mutating func cancelled() -> Action {
    guard !servesLateHandlers, !hasWaitingHandler else { return refuseRetry() }
    guard state.canBecome(.cancelled) else { return closingHandshakeCancelled() }
    state = .cancelled
    switch run {
    case .notStarted:
      run = .running
      return .finish
    case .gated, .running: return .cancel
    case .ended: return .nothing
    }
  }

  /// Cancels a running WebSocket request by a closing handshake. A later ``cancelled()`` ends it at once.
  package mutating func closed() -> Action {
    guard run == .running, !servesLateHandlers, state.canBecome(.cancelled) else { return .nothing }
    state = .cancelled
    isClosing = true
    return .proceed
  }

  private mutating func closingHandshakeCancelled() -> Action {
    guard run == .running, isClosing else { return .nothing }
    isClosing = false
    return .cancel
  }

  /// Starts a request at its creation, before it is resumed, because the session asks for that.
  package mutating func setUpEagerly() -> Action {
    guard run == .notStarted, state == .initialized else { return .nothing }
    run = .running
    return .start
  }

  /// Notes that the attempt is ready to send. Returns false if it has to wait for ``resumed()``.
  package mutating func readyToSend() -> Bool {
    guard state == .initialized || state == .suspended else { return true }
    run = .gated
    return false
  }

  /// Notes that a response handler has been added.
  package mutating func handlerAdded(resumesAutomatically: Bool) -> Action {
    switch run {
    case .ended:
      hasWaitingHandler = true
      return serveWaitingHandlers()
    case .notStarted, .gated, .running:
      guard resumesAutomatically, state == .initialized else { return .nothing }
      return resumed()
    }
  }

  /// Serves the handlers that were added after the end, unless earlier ones have yet to be called.
  private mutating func serveWaitingHandlers() -> Action {
    guard hasWaitingHandler, deliveries == 0, run == .ended else { return .nothing }
    hasWaitingHandler = false
    if state == .finished { state = .resumed }
    run = .running
    servesLateHandlers = true
    return .finish
  }

  /// Ends the request because its session has ended.
  package mutating func abandoned() -> Action {
    isAbandoned = true
    switch run {
    case .notStarted:
      run = .running
      return .finish
    case .gated, .running: return servesLateHandlers ? refuseRetry() : .cancel
    case .ended: return hasWaitingHandler ? refuseRetry() : .nothing
    }
  }

  /// Refuses another attempt for a late handler, which is all that a request can lose after its end.
  private mutating func refuseRetry() -> Action {
    refusesRetry = true
    return .refuseRetry
  }

  /// Begins another attempt of the run. Returns false if none may be made.
  package mutating func attemptsAgain() -> Bool {
    guard mayAttemptAgain else { return false }
    servesLateHandlers = false
    return true
  }

  /// Ends a request that was not started, because its session refuses further ones. Those that run come to their end.
  package mutating func refused() -> Action { run == .notStarted ? abandoned() : .nothing }

  /// Starts a finished request again.
  package mutating func sentAgain() -> Action {
    guard run == .ended, state == .finished, mayAttemptAgain, !hasWaitingHandler else { return .nothing }
    state = .resumed
    run = .running
    return .start
  }

  /// Notes that every handler has been served.
  package mutating func ended() {
    run = .ended
    isClosing = false
    servesLateHandlers = false
    refusesRetry = false
    if state != .cancelled { state = .finished }
  }

  /// Notes that the handlers of a run that has ended are about to be called. Handlers that are added from now on wait.
  package mutating func beginDelivery() { deliveries += 1 }

  /// Notes that these handlers are called, so that the ones that were added since then are next.
  package mutating func endDelivery() -> Action {
    deliveries -= 1
    return serveWaitingHandlers()
  }

  private mutating func started() -> Action {
    switch run {
    case .notStarted:
      run = .running
      return .start
    case .gated:
      run = .running
      return .proceed
    case .running: return .proceed
    case .ended: return .nothing
    }
  }
}

extension RequestState {
  /// Whether the state may change to `next`. No state leads back to `initialized` or out of an end.
  package func canBecome(_ next: RequestState) -> Bool {
    switch (self, next) {
    case (.initialized, _): true
    case (.cancelled, _), (.finished, _), (_, .initialized): false
    case (.resumed, .suspended), (.suspended, .resumed): true
    case (.resumed, .resumed), (.suspended, .suspended): false
    case (.resumed, .cancelled), (.resumed, .finished), (.suspended, .cancelled), (.suspended, .finished):
      true
    }
  }
}
