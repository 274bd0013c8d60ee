/// The order of one request over the wire after the other, until a response is the last one.
struct HopOrder: StepOrder {
  enum HopStep: UInt8, Sendable, CaseIterable {
    // The request. A `URLProtocol` class sees it as it is at `chooseHandler`.
    case makeRequest, chooseHandler, addCredentials, provideBody, addCookies, beginHop
    case lookUpCache, send, replay, revalidate
    // Recovery from a failed transfer
    case askForWholeBody, evaluateTrust, chooseIdentity, waitForConnectivity, recordTransferFailure
    // The response
    case updateCache, evaluateCredentials, answerChallenge, followRedirect, storeResult
  }

  /// A server that presents other certificates each time is not evaluated endlessly. Each redirect may lead to another
  /// server; their number has its own limit.
  static let trustEvaluationLimit: UInt8 = 8

  private(set) var result = StageEvent.done
  private var step: HopStep?
  /// Whether the request has a body that a delegate can replace.
  private let hasBody: Bool
  private var response = ResponseFacts()
  /// The number of evaluations since the last redirect.
  private var trustEvaluations: UInt8 = 0

  init(hasBody: Bool) {
    self.hasBody = hasBody
  }

  mutating func next(after event: StageEvent) -> HopStep? {
    guard event != .failed else {
      result = .failed
      return nil
    }
    guard let step else {
      step = .makeRequest
      return step
    }
    self.step = self.step(after: step, event)
    return self.step
  }

  private mutating func step(after step: HopStep, _ event: StageEvent) -> HopStep? {
    switch step {
    case .makeRequest: .chooseHandler
    case .chooseHandler: .addCredentials
    case .addCredentials: beforeSending
    case .provideBody: .addCookies
    case .addCookies: .beginHop
    case .beginHop: event == .cache(.lookUp) ? .lookUpCache : .send
    case .lookUpCache, .send, .replay, .revalidate: afterExchange(step, event)
    case .askForWholeBody, .evaluateTrust, .chooseIdentity, .waitForConnectivity: beforeSending
    case .updateCache: afterCache
    case .evaluateCredentials: .answerChallenge
    case .answerChallenge: event == .challenge(isAnswered: true) ? beforeSending : .followRedirect
    case .followRedirect: afterRedirect(event)
    case .storeResult: nil
    case .recordTransferFailure: unexpected(event, of: step)
    }
  }

  private var beforeSending: HopStep { hasBody ? .provideBody : .addCookies }

  private var afterCache: HopStep { response.mayContinue ? .evaluateCredentials : .storeResult }

  private mutating func afterRedirect(_ event: StageEvent) -> HopStep {
    guard event == .redirect(.followed) else { return .storeResult }
    trustEvaluations = 0
    return .chooseHandler
  }

  private mutating func afterExchange(_ step: HopStep, _ event: StageEvent) -> HopStep {
    switch event {
    case .responded(let facts):
      response = facts
      return facts.concernsCache ? .updateCache : afterCache
    case .transferFailed(let failure): return recover(from: failure)
    case .cache(.replay): return .replay
    case .cache(.revalidate): return .revalidate
    case .cache(.send): return .send
    default: return unexpected(event, of: step)
    }
  }

  private mutating func recover(from failure: TransferFailureFacts) -> HopStep {
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

  private func unexpected(_ event: StageEvent, of step: HopStep) -> HopStep {
    preconditionFailure("\(step) of a hop cannot end with \(event)")
  }
}
