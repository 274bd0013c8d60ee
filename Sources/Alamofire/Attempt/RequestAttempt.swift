/// The order of the steps of one attempt, from the conversion of the request to the delivery of its responses.
///
/// A value without I/O, clock, lock or reference: asked for the next step after an event, it answers from the facts of
/// the event alone. A retry makes a new value.
struct RequestAttempt: Sendable, Equatable {
  /// The kind of a request.
  enum Kind: UInt8, Sendable { case data, upload, download, stream }

  let kind: Kind
  private(set) var step = AttemptStep.begin
  /// Whether observers know the task of the attempt and have yet to hear of its end.
  private(set) var taskIsAnnounced = false
  private var response = ResponseFacts()
  private var asksCache = false
  private var trustEvaluations: UInt8 = 0
  private var hasFailed = false
  private var isSerializing = false

  /// A server that presents other certificates each time is not evaluated endlessly.
  static let trustEvaluationLimit: UInt8 = 8

  init(_ kind: Kind) {
    self.kind = kind
  }

  /// Returns the next step after `event`, the outcome of ``step``.
  mutating func next(after event: AttemptEvent) -> AttemptStep {
    if step == .announceTaskEnd { taskIsAnnounced = false }
    if event == .failed, step != .prepareRetry { return fail() }
    step = step(after: event)
    return step
  }

  private mutating func step(after event: AttemptEvent) -> AttemptStep {
    switch step {
    case .begin: event == .begunForLateHandlers ? .prepareLateHandlers : .convert

    // The request
    case .convert: .adapt
    case .adapt: kind == .upload ? .prepareBody : .waitForResume
    case .prepareBody: .waitForResume
    case .waitForResume: event == .observed ? announceTask() : .makeRequest
    case .announceTask: .makeRequest
    case .makeRequest: .chooseHandler

    // One hop
    case .chooseHandler: .addCredentials
    case .addCredentials: beforeSending
    case .provideBodyStream: .applyCachePolicy
    case .applyCachePolicy: addCookies(event)
    case .addCookies: .beginHop
    case .beginHop: asksCache ? .lookUpCache : .send
    case .lookUpCache, .send, .replay, .revalidate: afterExchange(event)

    // Recovery from a failed transfer
    case .askForWholeBody, .evaluateTrust, .chooseIdentity, .waitForConnectivity: beforeSending

    // The response of a hop
    case .updateCache: afterCache
    case .judgeCredentials: .answerChallenge
    case .answerChallenge: event == .challenge(isAnswered: true) ? beforeSending : .followRedirect
    case .followRedirect: event == .redirect(.followed) ? .chooseHandler : .storeResult

    // The result
    case .storeResult: taskIsAnnounced ? .announceTaskEnd : .waitForCookies
    case .announceTaskEnd: .waitForCookies
    case .waitForCookies: hasFailed ? .recordFailure : afterCookies
    case .moveDownload, .completeStream: .waitForHeadDecision
    case .waitForHeadDecision: .validate
    case .validate: .recordSuccess
    case .recordSuccess: .settle

    // Failure and retry
    case .recordFailure: .askRetriers
    case .askRetriers: event == .retry(isWanted: true) ? .prepareRetry : afterRefusal
    case .prepareRetry: event == .done ? beginAgain() : afterRefusal

    // The end of the request
    case .prepareLateHandlers, .settle: .serialize
    case .serialize: afterSerialization(event)
    case .recordTransferFailure, .finished: unexpected(event)
    }
  }

  /// The first failure counts: the task ends, then retriers are asked.
  private mutating func fail() -> AttemptStep {
    hasFailed = true
    step = taskIsAnnounced ? .announceTaskEnd : .waitForCookies
    return step
  }

  private mutating func announceTask() -> AttemptStep {
    taskIsAnnounced = true
    return .announceTask
  }

  /// Only uploads have a body that a delegate can replace.
  private var beforeSending: AttemptStep { kind == .upload ? .provideBodyStream : .applyCachePolicy }

  private mutating func addCookies(_ event: AttemptEvent) -> AttemptStep {
    asksCache = event == .cache(.lookUp)
    return .addCookies
  }

  private mutating func afterExchange(_ event: AttemptEvent) -> AttemptStep {
    switch event {
    case .responded(let facts):
      response = facts
      return facts.concernsCache ? .updateCache : afterCache
    case .transferFailed(let failure): return recover(from: failure)
    case .cache(.replay): return .replay
    case .cache(.revalidate): return .revalidate
    case .cache(.send): return .send
    default: return unexpected(event)
    }
  }

  private var afterCache: AttemptStep { response.mayContinue ? .judgeCredentials : .storeResult }

  private mutating func recover(from failure: TransferFailureFacts) -> AttemptStep {
    switch failure {
    case .rangeMismatch: return .askForWholeBody
    case .trust, .identity:
      guard trustEvaluations < Self.trustEvaluationLimit else { return .recordTransferFailure }
      trustEvaluations += 1
      return failure == .trust ? .evaluateTrust : .chooseIdentity
    case .offline: return .waitForConnectivity
    case .other: return .recordTransferFailure
    }
  }

  private var afterCookies: AttemptStep {
    switch kind {
    case .download: .moveDownload
    case .stream: .completeStream
    case .data, .upload: .waitForHeadDecision
    }
  }

  private mutating func beginAgain() -> AttemptStep {
    self = RequestAttempt(kind)
    return .convert
  }

  private var afterRefusal: AttemptStep { isSerializing ? .serialize : .settle }

  private mutating func afterSerialization(_ event: AttemptEvent) -> AttemptStep {
    switch event {
    case .serialized(.all): return .finished
    case .serialized(.failed):
      isSerializing = true
      return .askRetriers
    default: return unexpected(event)
    }
  }

  private func unexpected(_ event: AttemptEvent) -> AttemptStep {
    preconditionFailure("\(step) of an attempt cannot end with \(event)")
  }
}
