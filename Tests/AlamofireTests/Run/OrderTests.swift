import Foundation
import Randomness
import Testing

@testable import Alamofire

/// The orders of the steps of a run, its attempts and their hops, without a request.
@Suite("The orders of the steps") struct OrderTests {
  /// A step of one of the three orders.
  enum Step: Equatable, Hashable {
    case run(RunOrder.RunStep)
    case attempt(AttemptOrder.AttemptStep)
    case hop(HopOrder.HopStep)
  }

  /// The three orders, one inside the other, as a run asks them.
  struct Orders {
    private let hasBody: Bool
    private let isScheduled: Bool
    private let hasFile: Bool
    private var run = RunOrder()
    private var attempt: AttemptOrder?
    private var hops: HopOrder?

    init(hasBody: Bool = false, isScheduled: Bool = false, hasFile: Bool = false) {
      self.hasBody = hasBody
      self.isScheduled = isScheduled
      self.hasFile = hasFile
    }

    mutating func next(after first: StageEvent) -> Step? {
      var event = first
      while true {
        if var order = hops {
          let step = order.next(after: event)
          hops = step == nil ? nil : order
          if let step { return .hop(step) }
          event = order.result
        } else if var order = attempt {
          let step = order.next(after: event)
          attempt = step == nil ? nil : order
          if let step, step != .hops { return .attempt(step) }
          if step == nil {
            event = order.result
          } else {
            (hops, event) = (HopOrder(hasBody: hasBody), .begun)
          }
        } else {
          guard let step = run.next(after: event) else { return nil }
          guard step == .attempt else { return .run(step) }
          attempt = AttemptOrder(hasBody: hasBody, isScheduled: isScheduled, hasFile: hasFile)
          event = .begun
        }
      }
    }
  }

  private static func run(_ steps: RunOrder.RunStep...) -> [Step] { steps.map { .run($0) } }
  private static func attempt(_ steps: AttemptOrder.AttemptStep...) -> [Step] { steps.map { .attempt($0) } }
  private static func hop(_ steps: HopOrder.HopStep...) -> [Step] { steps.map { .hop($0) } }

  private static let request = attempt(.convert, .adapt, .waitForResume)
  private static let first = hop(.makeRequest) + again
  private static let again = hop(.chooseHandler, .addCredentials) + sent
  private static let sent = hop(.addCookies, .beginHop, .send)
  private static let challenge = hop(.evaluateCredentials, .answerChallenge)
  private static let stored = hop(.storeResult)
  private static let result = attempt(.waitForCookies, .acceptResult, .validate)
  private static let end = run(.settle, .serialize)
  private static let failure = attempt(.waitForCookies) + run(.recordFailure, .askRetriers)

  /// Performs a run. Its steps end like the steps of a plain GET, except for `events`, which replace the outcomes of
  /// their steps in this order.
  private static func steps(
    of orders: Orders = Orders(), after first: StageEvent = .begun, _ events: (Step, StageEvent)...
  ) -> [Step] {
    var orders = orders
    var rest = events[...]
    var steps: [Step] = []
    var next = orders.next(after: first)
    while let step = next, steps.count < 200 {
      steps.append(step)
      var event = usual(step)
      if let scripted = rest.first, scripted.0 == step {
        event = scripted.1
        rest.removeFirst()
      }
      next = orders.next(after: event)
    }
    #expect(rest.isEmpty, "never performed: \(rest)")
    return steps
  }

  private static func usual(_ step: Step) -> StageEvent {
    switch step {
    case .hop(.beginHop): .cache(.none)
    case .hop(.send), .hop(.replay), .hop(.revalidate): .responded(ResponseFacts(status: 200, isHTTP: true))
    case .hop(.answerChallenge): .challenge(isAnswered: false)
    case .hop(.followRedirect): .redirect(.none)
    case .hop(.recordTransferFailure): .failed
    case .run(.askRetriers): .retry(isRequested: false)
    case .run(.serialize): .serialized(.all)
    default: .done
    }
  }

  private static func responded(_ status: UInt16, concernsCache: Bool = false) -> StageEvent {
    .responded(ResponseFacts(status: status, isHTTP: true, concernsCache: concernsCache))
  }

  @Test("A plain GET passes each stage once")
  func plainGET() {
    let steps = Self.steps()
    #expect(steps == Self.request + Self.first + Self.stored + Self.result + Self.end)
    #expect(steps.count == Set(steps).count)
  }

  @Test("A redirect begins another hop, a refused one is the response")
  func redirects() {
    let before = Self.request + Self.first + Self.challenge + Self.hop(.followRedirect)
    #expect(
      Self.steps((.hop(.send), Self.responded(302)), (.hop(.followRedirect), .redirect(.followed)))
        == before + Self.again + Self.stored + Self.result + Self.end)
    #expect(
      Self.steps((.hop(.send), Self.responded(302)), (.hop(.followRedirect), .redirect(.declined)))
        == before + Self.stored + Self.result + Self.end)
  }

  @Test("An answered challenge sends the request again without choosing a handler or credentials")
  func challenges() {
    let before = Self.request + Self.first + Self.challenge
    #expect(
      Self.steps((.hop(.send), Self.responded(401)), (.hop(.answerChallenge), .challenge(isAnswered: true)))
        == before + Self.sent + Self.stored + Self.result + Self.end)
    #expect(
      Self.steps((.hop(.send), Self.responded(401)))
        == before + Self.hop(.followRedirect) + Self.stored + Self.result + Self.end)
  }

  @Test("A response to credentials is evaluated even if it is successful")
  func credentialsAreEvaluated() {
    let accepted = StageEvent.responded(ResponseFacts(status: 200, isHTTP: true, hasAuthentication: true))
    #expect(Self.steps((.hop(.send), accepted)).contains(.hop(.evaluateCredentials)))
    let local = StageEvent.responded(ResponseFacts(status: 404, isHTTP: false))
    #expect(!Self.steps((.hop(.send), local)).contains(.hop(.evaluateCredentials)))
  }

  @Test("A stored response is replayed or revalidated before the request is sent")
  func caching() {
    let looked = Self.request + Array(Self.first.dropLast()) + Self.hop(.lookUpCache)
    let end = Self.stored + Self.result + Self.end
    let asks = (Step.hop(.beginHop), StageEvent.cache(.lookUp))
    #expect(
      Self.steps(asks, (.hop(.lookUpCache), .cache(.replay))) == looked + Self.hop(.replay) + end)
    #expect(
      Self.steps(asks, (.hop(.lookUpCache), .cache(.revalidate)), (.hop(.revalidate), .cache(.replay)))
        == looked + Self.hop(.revalidate, .replay) + end)
    #expect(
      Self.steps(
        asks, (.hop(.lookUpCache), .cache(.revalidate)), (.hop(.revalidate), .cache(.send)),
        (.hop(.send), Self.responded(200, concernsCache: true)))
        == looked + Self.hop(.revalidate, .send, .updateCache) + end)
  }

  @Test("The second hop looks up the cache again")
  func cachePolicyOfTheSecondHop() {
    let steps = Self.steps(
      (.hop(.beginHop), .cache(.lookUp)), (.hop(.lookUpCache), .cache(.send)),
      (.hop(.send), Self.responded(302)), (.hop(.followRedirect), .redirect(.followed)))
    #expect(steps.count { $0 == .hop(.lookUpCache) } == 1)
    #expect(steps.count { $0 == .hop(.beginHop) } == 2)
  }

  @Test(
    "Each remedy sends the hop again",
    arguments: [
      (TransferFailureFacts.rangeMismatch, HopOrder.HopStep.askForWholeBody), (.trust, .evaluateTrust),
      (.identity, .chooseIdentity), (.offline, .waitForConnectivity),
    ])
  func recovery(failure: TransferFailureFacts, remedy: HopOrder.HopStep) {
    #expect(
      Self.steps((.hop(.send), .transferFailed(failure)))
        == Self.request + Self.first + Self.hop(remedy) + Self.sent + Self.stored + Self.result + Self.end)
  }

  @Test("A failure without a remedy ends the attempt")
  func transferFailure() {
    #expect(
      Self.steps((.hop(.send), .transferFailed(.other)))
        == Self.request + Self.first + Self.hop(.recordTransferFailure) + Self.failure + Self.end)
  }

  @Test(
    "An upload may replace its stream when a hop is sent again",
    arguments: [
      (StageEvent.transferFailed(.rangeMismatch), (Step.hop(.askForWholeBody), StageEvent.done)),
      (.transferFailed(.trust), (.hop(.evaluateTrust), .done)),
      (.transferFailed(.identity), (.hop(.chooseIdentity), .done)),
      (.transferFailed(.offline), (.hop(.waitForConnectivity), .done)),
      (responded(401), (.hop(.answerChallenge), .challenge(isAnswered: true))),
    ])
  func bodiesOfRepeatedHops(event: StageEvent, remedy: (Step, StageEvent)) {
    let steps = Self.steps(of: Orders(hasBody: true), (.hop(.send), event), remedy)
    #expect(steps.count { $0 == .hop(.provideBody) } == 2)
    #expect(steps.count { $0 == .hop(.addCookies) } == 2)
  }

  @Test("A retry that may not begin ends the run where it was asked for")
  func refusedRetry() {
    let retry = (Step.run(.askRetriers), StageEvent.retry(isRequested: true))
    let failed = Self.steps((.hop(.send), .transferFailed(.other)), retry, (.run(.prepareRetry), .failed))
    #expect(failed.suffix(4) == Self.run(.askRetriers, .prepareRetry) + Self.end)
    let serialized = Self.steps(
      (.run(.serialize), .serialized(.failed)), retry, (.run(.prepareRetry), .failed))
    #expect(serialized.suffix(5) == Self.end + Self.run(.askRetriers, .prepareRetry, .serialize))
  }

  @Test("Certificates are evaluated at most eight times")
  func trustEvaluations() {
    var orders = Orders()
    var steps: [Step] = []
    var next = orders.next(after: .begun)
    while let step = next, steps.count < 200 {
      steps.append(step)
      next = orders.next(after: step == .hop(.send) ? .transferFailed(.trust) : Self.usual(step))
    }
    #expect(steps.count { $0 == .hop(.evaluateTrust) } == 8)
    #expect(steps.contains(.hop(.recordTransferFailure)))
  }

  @Test("Each redirect may lead to another server whose certificates are evaluated")
  func trustAfterRedirects() {
    let redirectCount = 20
    var orders = Orders()
    var steps: [Step] = []
    var (next, isTrusted, redirects) = (orders.next(after: .begun), false, 0)
    while let step = next, steps.count < 1_000 {
      steps.append(step)
      var event = Self.usual(step)
      if step == .hop(.send), !isTrusted {
        event = .transferFailed(.trust)
        isTrusted = true
      } else if step == .hop(.send), redirects < redirectCount {
        event = Self.responded(302)
      } else if step == .hop(.followRedirect) {
        (event, isTrusted, redirects) = (.redirect(.followed), false, redirects + 1)
      }
      next = orders.next(after: event)
    }
    #expect(steps.count { $0 == .hop(.evaluateTrust) } == redirectCount + 1)
    #expect(!steps.contains(.hop(.recordTransferFailure)))
  }

  @Test("An upload prepares its body once and may replace its stream before each hop")
  func uploads() {
    let steps = Self.steps(
      of: Orders(hasBody: true), (.hop(.send), Self.responded(307)),
      (.hop(.followRedirect), .redirect(.followed)))
    #expect(steps.starts(with: Self.attempt(.convert, .adapt, .prepareBody, .waitForResume)))
    #expect(steps.count { $0 == .hop(.provideBody) } == 2)
  }

  @Test("A further request of a resumable upload begins with the conversion, and is not a retry")
  func continuedUploads() {
    let steps = Self.steps(
      of: Orders(hasBody: true), (.attempt(.acceptResult), .continued), (.attempt(.acceptResult), .failed))
    let once = steps.prefix { $0 != .attempt(.acceptResult) } + Self.attempt(.acceptResult)
    #expect(!once.contains(.attempt(.validate)))
    #expect(steps == once + Self.run(.prepareContinuation) + once + Self.failure + Self.end)
  }

  @Test("A continuation that is refused ends the request with its failure")
  func refusedContinuation() {
    let steps = Self.steps(
      of: Orders(hasBody: true), (.attempt(.acceptResult), .continued), (.run(.prepareContinuation), .failed))
    #expect(steps.suffix(5) == Self.run(.prepareContinuation, .recordFailure, .askRetriers) + Self.end)
  }

  @Test(
    "A transfer of a background session waits for its turn after it is resumed", arguments: [false, true])
  func scheduling(isScheduled: Bool) {
    let steps = Self.steps(of: Orders(isScheduled: isScheduled))
    let turn = isScheduled ? Self.attempt(.schedule) : []
    #expect(steps.starts(with: Self.request + turn + Self.hop(.makeRequest)))
  }

  @Test(
    "The end of an announced task is announced, after a failure too",
    arguments: [
      Step.attempt(.announceTask), .hop(.makeRequest), .hop(.addCredentials), .hop(.evaluateTrust),
      .attempt(.validate), .hop(.storeResult),
    ])
  func announcements(failing: Step) {
    let trust = (Step.hop(.send), StageEvent.transferFailed(.trust))
    let observed = (Step.attempt(.waitForResume), StageEvent.observed)
    let steps =
      failing == .hop(.evaluateTrust)
      ? Self.steps(observed, trust, (failing, .failed)) : Self.steps(observed, (failing, .failed))
    #expect(steps.count { $0 == .attempt(.announceTaskEnd) } == 1)
    #expect(steps.suffix(5).contains(.run(.recordFailure)))
  }

  @Test("The file of a download is moved before the end of its task", arguments: [false, true])
  func files(isObserved: Bool) {
    let waits = (Step.attempt(.waitForResume), isObserved ? StageEvent.observed : .done)
    let (begin, end) =
      isObserved ? (Self.attempt(.announceTask), Self.attempt(.announceTaskEnd)) : ([], [])
    let sent =
      Self.request + begin + Self.first + Self.stored + Self.attempt(.waitForCookies, .moveFile) + end
    #expect(
      Self.steps(of: Orders(hasFile: true), waits) == sent + Self.attempt(.acceptResult, .validate) + Self.end
    )
    #expect(
      Self.steps(of: Orders(hasFile: true), waits, (.attempt(.acceptResult), .failed))
        == sent + Self.attempt(.acceptResult) + Self.failure + Self.end)
    let failed = Self.steps(of: Orders(hasFile: true), waits, (.hop(.send), .transferFailed(.other)))
    #expect(!failed.contains(.attempt(.moveFile)), "a failed transfer leaves no file")
  }

  @Test("A retry begins with the conversion, a refused one delivers the failure")
  func retries() {
    let failed = Self.request + Self.first + Self.stored + Self.result + Self.failure
    let asks = (Step.run(.askRetriers), StageEvent.retry(isRequested: true))
    #expect(
      Self.steps((.attempt(.validate), .failed), asks)
        == failed + Self.run(.prepareRetry) + Self.request + Self.first + Self.stored + Self.result + Self.end
    )
    #expect(
      Self.steps((.attempt(.validate), .failed), asks, (.run(.prepareRetry), .failed))
        == failed + Self.run(.prepareRetry) + Self.end)
  }

  @Test("A failed serializer can cause another attempt; otherwise the next handler follows")
  func serializers() {
    let before = Self.request + Self.first + Self.stored + Self.result + Self.end
    #expect(
      Self.steps((.run(.serialize), .serialized(.failed)), (.run(.askRetriers), .retry(isRequested: true)))
        == before + Self.run(.askRetriers, .prepareRetry) + before)
    #expect(
      Self.steps((.run(.serialize), .serialized(.failed))) == before + Self.run(.askRetriers, .serialize))
  }

  @Test("An attempt after a failed serializer is settled as the first one is")
  func failureAfterSerializer() {
    let steps = Self.steps(
      (.run(.serialize), .serialized(.failed)), (.run(.askRetriers), .retry(isRequested: true)),
      (.attempt(.validate), .failed))
    #expect(steps.suffix(5) == Self.failure + Self.end)
  }

  @Test("Late handlers receive the outcome without another attempt, unless a retrier asks for one")
  func lateHandlers() {
    #expect(Self.steps(after: .begunForLateHandlers) == Self.run(.prepareLateHandlers, .serialize))
    #expect(
      Self.steps(
        after: .begunForLateHandlers, (.run(.serialize), .serialized(.failed)),
        (.run(.askRetriers), .retry(isRequested: true)))
        == Self.run(.prepareLateHandlers, .serialize, .askRetriers, .prepareRetry) + Self.request
        + Self.first + Self.stored + Self.result + Self.end)
  }

  @Test("Runs with random events end, and announce as many ends as tasks, after their files", .seeded)
  func randomEvents() {
    var generator = Seed.generator()
    for _ in 0..<20_000 {
      var orders = Orders(
        hasBody: .random(using: &generator), isScheduled: .random(using: &generator),
        hasFile: .random(using: &generator))
      var next = orders.next(after: .begun)
      var (count, open, hasEnded) = (0, 0, false)
      while let step = next, count < 100_000 {
        count += 1
        if step == .attempt(.convert) { hasEnded = false }
        if step == .attempt(.announceTask) { open += 1 }
        if step == .attempt(.moveFile) { #expect(!hasEnded) }
        if step == .attempt(.announceTaskEnd) {
          open -= 1
          hasEnded = true
        }
        if step == .run(.recordFailure) { #expect(open == 0) }
        next = orders.next(after: Self.events(of: step).randomElement(using: &generator) ?? .done)
      }
      #expect(next == nil && open == 0)
    }
  }

  /// Returns the events with which a step may end.
  private static func events(of step: Step) -> [StageEvent] {
    switch step {
    case .hop(let step): events(of: step)
    case .attempt(.waitForResume): [.done, .observed, .failed]
    case .attempt(.acceptResult): [.done, .done, .continued, .failed]
    case .attempt(.announceTaskEnd), .attempt(.waitForCookies), .attempt(.moveFile): [.done]
    case .attempt: [.done, .done, .failed]
    case .run(.askRetriers):
      [.retry(isRequested: true), .retry(isRequested: false), .retry(isRequested: false)]
    case .run(.prepareRetry), .run(.prepareContinuation): [.done, .failed]
    case .run(.serialize): [.serialized(.all), .serialized(.all), .serialized(.failed)]
    case .run: [.done]
    }
  }

  private static func events(of step: HopOrder.HopStep) -> [StageEvent] {
    switch step {
    case .beginHop: [.cache(.none), .cache(.lookUp)]
    case .lookUpCache: [.cache(.send), .cache(.replay), .cache(.revalidate), .transferFailed(.other)]
    case .send, .replay:
      [200, 302, 401].map { responded($0) } + [responded(200, concernsCache: true)]
        + [.rangeMismatch, .trust, .identity, .offline, .other].map { .transferFailed($0) }
    case .revalidate: [.cache(.replay), .cache(.send), responded(200), .transferFailed(.other)]
    case .recordTransferFailure: [.failed]
    case .answerChallenge: [.challenge(isAnswered: true), .challenge(isAnswered: false), .failed]
    case .followRedirect: [.redirect(.none), .redirect(.followed), .redirect(.declined), .failed]
    case .addCookies, .askForWholeBody, .updateCache, .evaluateCredentials: [.done]
    case .makeRequest, .chooseHandler, .addCredentials, .provideBody, .evaluateTrust, .chooseIdentity,
      .waitForConnectivity, .storeResult:
      [.done, .done, .failed]
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
