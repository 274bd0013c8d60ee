import Foundation
import Randomness
import Testing

@testable import Alamofire

/// The order of the steps, without a request.
struct RequestAttemptTests {
  typealias Kind = RequestAttempt.Kind

  private static let request: [AttemptStep] = [.convert, .adapt, .waitForResume, .makeRequest]
  private static let hop: [AttemptStep] = [.chooseHandler, .addCredentials] + again
  private static let again: [AttemptStep] = [.applyCachePolicy, .addCookies, .beginHop, .send]
  private static let challenge: [AttemptStep] = [.evaluateCredentials, .answerChallenge]
  private static let result: [AttemptStep] = [
    .storeResult, .waitForCookies, .waitForHeadDecision, .validate, .recordSuccess,
  ]
  private static let end: [AttemptStep] = [.settle, .serialize]
  private static let failure: [AttemptStep] = [.waitForCookies, .recordFailure, .askRetriers]

  /// Performs an attempt. Its steps end as those of a plain GET, except for `events`, which replace the outcomes of
  /// their steps in this order.
  private static func steps(
    kind: Kind = .data, after first: AttemptEvent = .begun, _ events: (AttemptStep, AttemptEvent)...
  ) -> [AttemptStep] {
    var attempt = RequestAttempt(kind)
    var rest = events[...]
    var steps: [AttemptStep] = []
    var step = attempt.next(after: first)
    while step != .finished, steps.count < 200 {
      steps.append(step)
      var event = usual(step)
      if let next = rest.first, next.0 == step {
        event = next.1
        rest.removeFirst()
      }
      step = attempt.next(after: event)
    }
    #expect(rest.isEmpty, "never performed: \(rest)")
    return steps
  }

  private static func usual(_ step: AttemptStep) -> AttemptEvent {
    switch step {
    case .applyCachePolicy: .cache(.none)
    case .send, .replay, .revalidate: .responded(ResponseFacts(status: 200, isHTTP: true))
    case .answerChallenge: .challenge(isAnswered: false)
    case .followRedirect: .redirect(.none)
    case .recordTransferFailure: .failed
    case .askRetriers: .retry(isWanted: false)
    case .serialize: .serialized(.all)
    default: .done
    }
  }

  private static func responded(_ status: UInt16, concernsCache: Bool = false) -> AttemptEvent {
    .responded(ResponseFacts(status: status, isHTTP: true, concernsCache: concernsCache))
  }

  @Test("A plain GET passes each stage once")
  func plainGET() {
    #expect(Self.steps() == Self.request + Self.hop + Self.result + Self.end)
  }

  @Test("A redirect begins another hop, a refused one is the response")
  func redirects() {
    #expect(
      Self.steps((.send, Self.responded(302)), (.followRedirect, .redirect(.followed)))
        == Self.request + Self.hop + Self.challenge + [.followRedirect] + Self.hop + Self.result + Self.end)
    #expect(
      Self.steps((.send, Self.responded(302)), (.followRedirect, .redirect(.declined)))
        == Self.request + Self.hop + Self.challenge + [.followRedirect] + Self.result + Self.end)
  }

  @Test("An answered challenge sends the request again without choosing a handler or credentials")
  func challenges() {
    #expect(
      Self.steps((.send, Self.responded(401)), (.answerChallenge, .challenge(isAnswered: true)))
        == Self.request + Self.hop + Self.challenge + Self.again + Self.result + Self.end)
    #expect(
      Self.steps((.send, Self.responded(401)))
        == Self.request + Self.hop + Self.challenge + [.followRedirect] + Self.result + Self.end)
  }

  @Test("A response to credentials is evaluated even if it is successful")
  func credentialsAreEvaluated() {
    let accepted = AttemptEvent.responded(ResponseFacts(status: 200, isHTTP: true, hasAuthentication: true))
    #expect(Self.steps((.send, accepted)).contains(.evaluateCredentials))
    let local = AttemptEvent.responded(ResponseFacts(status: 404, isHTTP: false))
    #expect(!Self.steps((.send, local)).contains(.evaluateCredentials))
  }

  @Test("A stored response is replayed or revalidated before the request is sent")
  func caching() {
    let looked = Self.request + Array(Self.hop.dropLast()) + [.lookUpCache]
    #expect(
      Self.steps((.applyCachePolicy, .cache(.lookUp)), (.lookUpCache, .cache(.replay)))
        == looked + [.replay] + Self.result + Self.end)
    #expect(
      Self.steps(
        (.applyCachePolicy, .cache(.lookUp)), (.lookUpCache, .cache(.revalidate)),
        (.revalidate, .cache(.replay))) == looked + [.revalidate, .replay] + Self.result + Self.end)
    #expect(
      Self.steps(
        (.applyCachePolicy, .cache(.lookUp)), (.lookUpCache, .cache(.revalidate)),
        (.revalidate, .cache(.send)), (.send, Self.responded(200, concernsCache: true)))
        == looked + [.revalidate, .send, .updateCache] + Self.result + Self.end)
  }

  @Test("The second hop looks up the cache again")
  func cachePolicyOfTheSecondHop() {
    let steps = Self.steps(
      (.applyCachePolicy, .cache(.lookUp)), (.lookUpCache, .cache(.send)),
      (.send, Self.responded(302)), (.followRedirect, .redirect(.followed)))
    #expect(steps.filter { $0 == .lookUpCache }.count == 1)
    #expect(steps.filter { $0 == .applyCachePolicy }.count == 2)
  }

  @Test(
    "Each remedy sends the hop again",
    arguments: [
      (TransferFailureFacts.rangeMismatch, AttemptStep.askForWholeBody), (.trust, .evaluateTrust),
      (.identity, .chooseIdentity), (.offline, .waitForConnectivity),
    ])
  func recovery(failure: TransferFailureFacts, remedy: AttemptStep) {
    #expect(
      Self.steps((.send, .transferFailed(failure)))
        == Self.request + Self.hop + [remedy] + Self.again + Self.result + Self.end)
  }

  @Test("A failure without a remedy ends the attempt")
  func transferFailure() {
    #expect(
      Self.steps((.send, .transferFailed(.other)))
        == Self.request + Self.hop + [.recordTransferFailure] + Self.failure + Self.end)
  }

  @Test("Certificates are evaluated at most eight times")
  func trustEvaluations() {
    let events = Array(repeating: (AttemptStep.send, AttemptEvent.transferFailed(.trust)), count: 9)
    var attempt = RequestAttempt(.data)
    var rest = events[...]
    var steps: [AttemptStep] = []
    var step = attempt.next(after: .begun)
    while step != .finished {
      steps.append(step)
      step = attempt.next(after: step == .send ? rest.popFirst()?.1 ?? .done : Self.usual(step))
    }
    #expect(steps.filter { $0 == .evaluateTrust }.count == Int(RequestAttempt.trustEvaluationLimit))
    #expect(steps.contains(.recordTransferFailure))
  }

  @Test("An upload prepares its body once and may replace its stream before each hop")
  func uploads() {
    let steps = Self.steps(
      kind: .upload, (.send, Self.responded(307)), (.followRedirect, .redirect(.followed)))
    #expect(Array(steps.prefix(4)) == [.convert, .adapt, .prepareBody, .waitForResume])
    #expect(steps.filter { $0 == .provideBodyStream }.count == 2)
  }

  @Test("A further request of a resumable upload begins with the conversion, and is no retry")
  func continuedUploads() {
    let steps = Self.steps(
      kind: .upload, (.processUploadResponse, .continued), (.processUploadResponse, .failed))
    let once = Array(steps.prefix { $0 != .processUploadResponse }) + [.processUploadResponse]
    #expect(
      steps == once + [.prepareContinuation] + once + Self.failure + Self.end && !once.contains(.validate))
  }

  @Test(
    "Downloads and uploads are scheduled before their request is made",
    arguments: [(Kind.data, false), (.stream, false), (.download, true), (.upload, true)])
  func scheduling(kind: Kind, isScheduled: Bool) {
    let steps = Self.steps(kind: kind)
    let expected: [AttemptStep] =
      isScheduled ? [.waitForResume, .schedule, .makeRequest] : [.waitForResume, .makeRequest]
    let first = steps.firstIndex(of: .waitForResume) ?? 0
    #expect(Array(steps[first...].prefix(expected.count)) == expected)
    #expect(steps.contains(.keepAnswer) == (kind == .upload))
  }

  @Test(
    "Downloads move their file, streams complete",
    arguments: [
      (Kind.download, AttemptStep.moveDownload), (.stream, .completeStream),
    ])
  func results(kind: Kind, step: AttemptStep) {
    let steps = Self.steps(kind: kind)
    #expect(steps.filter { $0 == step }.count == 1)
    #expect(Self.steps(kind: kind, (.send, .transferFailed(.other))).contains(step) == false)
  }

  @Test(
    "The end of an announced task is announced, after a failure too",
    arguments: [
      AttemptStep.announceTask, .makeRequest, .addCredentials, .evaluateTrust, .validate, .storeResult,
    ])
  func announcements(failing: AttemptStep) {
    let trust = (AttemptStep.send, AttemptEvent.transferFailed(.trust))
    let steps =
      failing == .evaluateTrust
      ? Self.steps((.waitForResume, .observed), trust, (failing, .failed))
      : Self.steps((.waitForResume, .observed), (failing, .failed))
    #expect(steps.filter { $0 == .announceTaskEnd }.count == 1)
    #expect(steps.suffix(5).contains(.recordFailure))
  }

  @Test("A retry begins with the conversion, a refused one delivers the failure")
  func retries() {
    #expect(
      Self.steps((.validate, .failed), (.askRetriers, .retry(isWanted: true)))
        == Self.request + Self.hop + Self.result.dropLast() + Self.failure + [.prepareRetry] + Self.request
        + Self.hop + Self.result + Self.end)
    #expect(
      Self.steps((.validate, .failed), (.askRetriers, .retry(isWanted: true)), (.prepareRetry, .failed))
        == Self.request + Self.hop + Self.result.dropLast() + Self.failure + [.prepareRetry] + Self.end)
  }

  @Test("A failed serializer can cause another attempt; otherwise the next handler follows")
  func serializers() {
    let before = Self.request + Self.hop + Self.result + Self.end
    #expect(
      Self.steps((.serialize, .serialized(.failed)), (.askRetriers, .retry(isWanted: true)))
        == before + [.askRetriers, .prepareRetry] + before)
    #expect(
      Self.steps((.serialize, .serialized(.failed))) == before + [.askRetriers, .serialize])
  }

  @Test("Late handlers receive the outcome without another attempt, unless a retrier asks for one")
  func lateHandlers() {
    #expect(Self.steps(after: .begunForLateHandlers) == [.prepareLateHandlers, .serialize])
    #expect(
      Self.steps(
        after: .begunForLateHandlers, (.serialize, .serialized(.failed)),
        (.askRetriers, .retry(isWanted: true)))
        == [.prepareLateHandlers, .serialize, .askRetriers, .prepareRetry] + Self.request + Self.hop
        + Self.result + Self.end)
  }

  @Test("Attempts with random events end, and announce as many ends as tasks", .seeded)
  func randomEvents() {
    var generator = Seed.generator()
    for _ in 0..<20_000 {
      var attempt = RequestAttempt(
        [.data, .upload, .download, .stream].randomElement(using: &generator) ?? .data)
      var step = attempt.next(after: .begun)
      var (count, open) = (0, 0)
      while step != .finished, count < 100_000 {
        count += 1
        if step == .announceTask { open += 1 }
        if step == .announceTaskEnd { open -= 1 }
        if step == .recordFailure { #expect(open == 0) }
        step = attempt.next(after: Self.events(of: step).randomElement(using: &generator) ?? .done)
      }
      #expect(step == .finished && open == 0)
    }
  }

  /// Returns the events with which a step may end.
  private static func events(of step: AttemptStep) -> [AttemptEvent] {
    switch step {
    case .waitForResume: [.done, .observed, .failed]
    case .applyCachePolicy: [.cache(.none), .cache(.lookUp)]
    case .lookUpCache: [.cache(.send), .cache(.replay), .cache(.revalidate), .transferFailed(.other)]
    case .send, .replay:
      [200, 302, 401].map { responded($0) } + [responded(200, concernsCache: true)]
        + [.rangeMismatch, .trust, .identity, .offline, .other].map { .transferFailed($0) }
    case .revalidate: [.cache(.replay), .cache(.send), responded(200), .transferFailed(.other)]
    case .recordTransferFailure: [.failed]
    case .answerChallenge: [.challenge(isAnswered: true), .challenge(isAnswered: false), .failed]
    case .followRedirect: [.redirect(.none), .redirect(.followed), .redirect(.declined), .failed]
    case .askRetriers: [.retry(isWanted: true), .retry(isWanted: false), .retry(isWanted: false)]
    case .prepareRetry, .prepareContinuation: [.done, .failed]
    case .processUploadResponse: [.done, .done, .continued, .failed]
    case .serialize: [.serialized(.all), .serialized(.all), .serialized(.failed)]
    case .convert, .adapt, .prepareBody, .announceTask, .schedule, .makeRequest, .chooseHandler,
      .addCredentials,
      .provideBodyStream, .evaluateTrust, .chooseIdentity, .waitForConnectivity, .moveDownload, .validate:
      [.done, .done, .failed]
    default: [.done]
    }
  }
}

@Suite("Delays before attempts") struct RetryDelayTests {
  @Test("A delay is never shorter than asked for, and every number is one")
  func delays() {
    #expect(Duration.retryDelay(0.0101) == .milliseconds(11))
    #expect(Duration.retryDelay(2) == .seconds(2))
    let none: [TimeInterval] = [0, -1, .nan, -TimeInterval.infinity]
    for delay in none { #expect(Duration.retryDelay(delay) == .zero) }
    let longest: [TimeInterval] = [.infinity, 1e300, 31_536_001]
    for delay in longest {
      #expect(Duration.retryDelay(delay) == .seconds(31_536_000))
    }
  }
}
