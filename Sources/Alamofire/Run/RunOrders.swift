/// The order of the steps of one attempt, from the conversion of the request to the delivery of its responses.
///
/// A value without I/O, clock, lock or reference: asked for the next step after an event, it answers from the facts of
/// the event alone. A retry makes a new value.
struct RequestAttempt: Sendable, Equatable {
  /// The kind of a request.
  enum Kind: UInt8, Sendable { case data, upload, download, stream }

  let kind: Kind
  private(set) var step = AttemptStep.begin
  /// Whether observers know the task of the attempt and have yet to be notified of its end.
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
    case .waitForResume: event == .observed ? announceTask() : afterResume
    case .announceTask: afterResume
    case .schedule: .makeRequest
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
    case .evaluateCredentials: .answerChallenge
    case .answerChallenge: event == .challenge(isAnswered: true) ? beforeSending : .followRedirect
    case .followRedirect: event == .redirect(.followed) ? .chooseHandler : .storeResult

    // The result
    case .storeResult: taskIsAnnounced ? .announceTaskEnd : .waitForCookies
    case .announceTaskEnd: .waitForCookies
    case .waitForCookies: hasFailed ? .recordFailure : afterCookies
    case .processUploadResponse: event == .continued ? .prepareContinuation : .keepAnswer
    case .prepareContinuation: beginAgain()
    case .moveDownload, .keepAnswer, .completeStream: .waitForHeadDecision
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

  /// Continues after the first failure: the task ends, then retriers are asked.
  private mutating func fail() -> AttemptStep {
    hasFailed = true
    step = taskIsAnnounced ? .announceTaskEnd : .waitForCookies
    return step
  }

  private mutating func announceTask() -> AttemptStep {
    taskIsAnnounced = true
    return .announceTask
  }

  /// Only downloads and uploads may belong to a background session.
  private var afterResume: AttemptStep { kind == .download || kind == .upload ? .schedule : .makeRequest }

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

  private var afterCache: AttemptStep { response.mayContinue ? .evaluateCredentials : .storeResult }

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
    case .upload: .processUploadResponse
    case .data: .waitForHeadDecision
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

/// The steps of one attempt. ``RequestAttempt`` knows their order, ``RequestRun`` performs them.
enum AttemptStep: UInt8, Sendable, CaseIterable {
  /// The start of the attempt, before any step.
  case begin
  // The request
  case convert, adapt, prepareBody, waitForResume, announceTask, schedule, makeRequest
  // One hop: a request that goes over the wire, and its response
  case chooseHandler, addCredentials, provideBodyStream, applyCachePolicy, addCookies, beginHop
  case lookUpCache, send, replay, revalidate
  // Recovery from a failed transfer
  case askForWholeBody, evaluateTrust, chooseIdentity, waitForConnectivity, recordTransferFailure
  // The response of a hop
  case updateCache, evaluateCredentials, answerChallenge, followRedirect
  // The result
  case storeResult, announceTaskEnd, waitForCookies, processUploadResponse, prepareContinuation
  case moveDownload, keepAnswer, completeStream, waitForHeadDecision
  case validate, recordSuccess
  // Failure and retry
  case recordFailure, askRetriers, prepareRetry
  // The end of the request
  case prepareLateHandlers, settle, serialize, finished
}

/// The outcome of a step. Events carry facts alone; the values that the facts are about belong to ``AttemptValues``, so
/// that events cost nothing to pass on.
enum AttemptEvent: Sendable, Equatable {
  /// The attempt begins.
  case begun
  /// Handlers were added to a request that has ended or was never sent. These handlers receive the existing outcome.
  case begunForLateHandlers
  case done
  /// ``AttemptValues/error`` has the reason.
  case failed
  /// The task of the attempt has observers, which are notified of it before it is sent.
  case observed
  case responded(ResponseFacts)
  case transferFailed(TransferFailureFacts)
  case cache(CacheVerdict)
  case challenge(isAnswered: Bool)
  case redirect(RedirectVerdict)
  /// Another request of a resumable upload follows.
  case continued
  case retry(isWanted: Bool)
  case serialized(SerializationVerdict)
}

/// The facts about a response that decide what follows.
struct ResponseFacts: Sendable, Equatable {
  var status: UInt16 = 0
  /// Whether the response came over HTTP and may be a challenge or a redirect.
  var isHTTP = false
  /// Whether the cache stores the response or invalidates stored ones because of it.
  var concernsCache = false
  /// Whether the attempt has answered challenges or sent credentials preemptively.
  var hasAuthentication = false

  /// Whether the response may be other than the last.
  var mayContinue: Bool { isHTTP && (hasAuthentication || !(200..<300).contains(status)) }
}

/// The kinds of failed transfers that differ in their remedy.
enum TransferFailureFacts: Sendable, Equatable {
  /// The response does not continue the part of a download that is there.
  case rangeMismatch
  /// The certificates of the server have to be evaluated outside the handshake.
  case trust
  /// The delegate may choose a client certificate.
  case identity
  /// The machine has no network, and the session waits for one.
  case offline
  case other
}

/// The part that the cache takes in a hop.
enum CacheVerdict: Sendable, Equatable {
  /// The cache is not asked.
  case none
  /// The cache has to be asked.
  case lookUp
  /// A stored response is the response of the hop.
  case replay
  /// A stored response can be used if the server confirms it.
  case revalidate
  /// The request is sent.
  case send
}

enum RedirectVerdict: Sendable, Equatable {
  /// The response leads nowhere else.
  case none
  case followed
  /// The response is a redirect that is not followed. The body of the redirect is dropped.
  case declined
}

enum SerializationVerdict: Sendable, Equatable {
  /// Every handler has its response, and all were delivered.
  case all
  /// A serializer failed, and a retrier may ask for another attempt.
  case failed
}
