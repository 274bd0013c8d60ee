/// The order of a run, from the start of a request to the delivery of its responses.
struct RunOrder: StepOrder {
  enum RunStep: UInt8, Sendable, CaseIterable {
    /// The steps of ``AttemptOrder``.
    case attempt
    case prepareContinuation, recordFailure, askRetriers, prepareRetry
    case prepareLateHandlers, settle, serialize
  }

  private var step: RunStep?
  private var isSerializing = false

  var result: StageEvent { .done }

  mutating func next(after event: StageEvent) -> RunStep? {
    guard let step else {
      step = event == .begunForLateHandlers ? .prepareLateHandlers : .attempt
      return step
    }
    self.step = self.step(after: step, event)
    return self.step
  }

  private mutating func step(after step: RunStep, _ event: StageEvent) -> RunStep? {
    switch step {
    case .attempt: afterAttempt(event)
    case .prepareContinuation: event == .failed ? .recordFailure : .attempt
    case .recordFailure: .askRetriers
    case .askRetriers: event == .retry(isRequested: true) ? .prepareRetry : afterRefusal
    case .prepareRetry: event == .failed ? afterRefusal : beginAgain()
    case .prepareLateHandlers, .settle: .serialize
    case .serialize: afterSerialization(event)
    }
  }

  private func afterAttempt(_ event: StageEvent) -> RunStep {
    switch event {
    case .continued: .prepareContinuation
    case .failed: .recordFailure
    default: .settle
    }
  }

  private mutating func beginAgain() -> RunStep {
    isSerializing = false
    return .attempt
  }

  private var afterRefusal: RunStep { isSerializing ? .serialize : .settle }

  private mutating func afterSerialization(_ event: StageEvent) -> RunStep? {
    guard event == .serialized(.failed) else { return nil }
    isSerializing = true
    return .askRetriers
  }
}

/// The order of an attempt, from the conversion of the request to a validated response.
struct AttemptOrder: StepOrder {
  enum AttemptStep: UInt8, Sendable, CaseIterable {
    case convert, adapt, prepareBody, waitForResume, announceTask, schedule
    /// The steps of ``HopOrder``.
    case hops
    case waitForCookies, moveFile, announceTaskEnd, acceptResult, validate
  }

  private(set) var result = StageEvent.done
  /// Whether observers know the task of the attempt and have yet to be notified of its end.
  private(set) var taskIsAnnounced = false
  private var step: AttemptStep?
  private var hasFailed = false
  private let hasBody: Bool
  /// Whether the request is a transfer of a background session, which waits for its turn.
  private let isScheduled: Bool
  /// Whether the body of the response is a file. As with Foundation, delegates get it before the end of its task.
  private let hasFile: Bool

  init(hasBody: Bool, isScheduled: Bool, hasFile: Bool) {
    self.hasBody = hasBody
    self.isScheduled = isScheduled
    self.hasFile = hasFile
  }

  mutating func next(after event: StageEvent) -> AttemptStep? {
    guard let step else {
      step = .convert
      return step
    }
    if step == .announceTaskEnd { taskIsAnnounced = false }
    self.step = event == .failed ? fail() : self.step(after: step, event)
    return self.step
  }

  private mutating func step(after step: AttemptStep, _ event: StageEvent) -> AttemptStep? {
    switch step {
    case .convert: .adapt
    case .adapt: hasBody ? .prepareBody : .waitForResume
    case .prepareBody: .waitForResume
    case .waitForResume: event == .observed ? announceTask() : afterResume
    case .announceTask: afterResume
    case .schedule: .hops
    case .hops: .waitForCookies
    case .waitForCookies: hasFile && !hasFailed ? .moveFile : endOfTask
    case .moveFile, .announceTaskEnd: endOfTask
    case .acceptResult: event == .continued ? over(.continued) : .validate
    case .validate: nil
    }
  }

  private mutating func announceTask() -> AttemptStep {
    taskIsAnnounced = true
    return .announceTask
  }

  private var afterResume: AttemptStep { isScheduled ? .schedule : .hops }

  /// Announces the end of the task unless that was done. Then the attempt ends, if it has failed.
  private var endOfTask: AttemptStep? {
    mutating get {
      if taskIsAnnounced { return .announceTaskEnd }
      return hasFailed ? over(.failed) : .acceptResult
    }
  }

  /// Continues after the first failure: the task ends, then the attempt.
  private mutating func fail() -> AttemptStep {
    hasFailed = true
    return .waitForCookies
  }

  private mutating func over(_ result: StageEvent) -> AttemptStep? {
    self.result = result
    return nil
  }
}
