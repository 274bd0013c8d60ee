import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// Performs the steps of one request's attempts, one after the other.
///
/// There are two forms of one loop, because a synchronous function cannot be suspended. ``advance(from:)`` performs
/// steps on the loop's thread as long as each of them can be performed at once: a plain request needs no task.
/// ``run(from:)`` performs any steps in a task. Both ask the same ``RequestAttempt`` for the order and perform the same
/// stages. A task whose next step is a transfer leaves the driver to the loop and ends, if it need not stay.
///
/// One thread or task uses the driver at a time. The driver is passed on through the inbox of the loop, as the
/// completion of a transfer, or by starting a task. Hence `@unchecked Sendable`.
final class AttemptDriver: @unchecked Sendable {
  let core: RequestCore
  /// The request as the caller's code sees it.
  let request: Request
  /// The index of the request in the registry of its session; `nil` if the session has ended.
  let registryIndex: Int?
  /// The priority of the task that started the request.
  private let priority: TaskPriority
  @exclusivity(unchecked) var attempt: RequestAttempt
  @exclusivity(unchecked) var values = AttemptValues()

  init(_ request: Request, core: RequestCore, registryIndex: Int?, priority: TaskPriority) {
    self.core = core
    self.request = request
    self.registryIndex = registryIndex
    self.priority = priority
    attempt = RequestAttempt(core.kind.ofAttempt)
  }

  // MARK: The two forms of the loop

  /// Performs steps on the loop's thread until one has to wait; then a task continues.
  private func advance(from first: AttemptStep) {
    var step = first
    while step != .finished {
      // From here on the transport owns the driver.
      if step == .send, sendWithCompletion() { return }
      guard let event = eventAtOnce(of: step) else { return continueInTask(from: step) }
      step = attempt.next(after: event)
    }
  }

  /// Performs steps in a task until the request has ended, or until the loop's thread goes on.
  nonisolated(nonsending) func run(from first: AttemptStep) async {
    var step = first
    // A task that begins by sending does so because the loop's thread could not.
    var mayLeave = first != .send
    while step != .finished {
      // From here on the loop owns the driver.
      if step == .send, mayLeave, leaveTask() { return }
      mayLeave = true
      let event: AttemptEvent
      if let now = eventAtOnce(of: step) { event = now } else { event = await eventAfterWaiting(of: step) }
      step = attempt.next(after: event)
    }
  }

  /// Performs the attempts from their first step, in the task of the caller.
  nonisolated(nonsending) func run(after first: AttemptEvent) async {
    await run(from: attempt.next(after: first))
  }

  /// Lets the loop's thread go on with the transfer. Returns false if the task stays.
  private func leaveTask() -> Bool {
    guard let enqueue = core.session.enqueue, core.mayLeaveTask, needsNoTask,
      !values.request.profile.asksForNames, !core.session.isOnLoop()
    else { return false }
    enqueue(self)
    return true
  }

  /// Starts a task that performs the remaining steps. It is detached, because the current task, if any, belongs to
  /// another request.
  private func continueInTask(from step: AttemptStep) {
    core.run {
      Task.detached(executorPreference: core.session.executor, priority: priority) { [self] in
        await run(from: step)
      }
    }
  }

  private func eventAtOnce(of step: AttemptStep) -> AttemptEvent? {
    do throws(AFError) {
      return try performAtOnce(step)
    } catch {
      values.error = error.naming(method: values.method)
      return .failed
    }
  }

  nonisolated(nonsending) private func eventAfterWaiting(of step: AttemptStep) async -> AttemptEvent {
    do throws(AFError) {
      return try await perform(step)
    } catch {
      values.error = error.naming(method: values.method)
      return .failed
    }
  }

  // MARK: The stages

  /// Performs `step` if nothing has to be waited for; otherwise returns `nil`. It may be called again for the same
  /// step, because the task form tries it as well.
  private func performAtOnce(_ step: AttemptStep) throws(AFError) -> AttemptEvent? {
    switch step {
    case .begin, .finished: preconditionFailure("\(step) is not performed")
    case .convert: try convertAtOnce()
    case .adapt: adaptAtOnce()
    case .prepareBody, .announceTask: nil
    case .waitForResume: waitForResumeAtOnce()
    case .schedule, .keepAnswer: core.transfer == nil ? .done : nil
    case .makeRequest: try makeRequest()
    case .chooseHandler: try chooseHandlerAtOnce()
    case .addCredentials: try addCredentialsAtOnce()
    case .provideBodyStream: provideBodyStreamAtOnce()
    case .applyCachePolicy: applyCachePolicy()
    case .addCookies: addCookiesAtOnce()
    case .beginHop: beginHop()
    case .lookUpCache: lookUpCacheAtOnce()
    case .send, .replay, .revalidate: nil
    case .askForWholeBody: askForWholeBody()
    case .evaluateTrust, .chooseIdentity, .waitForConnectivity: nil
    case .recordTransferFailure: try recordTransferFailure()
    case .updateCache: updateCacheAtOnce()
    case .evaluateCredentials: evaluateCredentials()
    case .answerChallenge: try answerChallengeAtOnce()
    case .followRedirect: try followRedirectAtOnce()
    case .storeResult: storeResultAtOnce()
    case .announceTaskEnd, .moveDownload: nil
    case .waitForCookies: core.hasPendingCookies ? nil : .done
    case .processUploadResponse: try processUploadResponse()
    case .prepareContinuation: try prepareContinuation()
    case .completeStream: completeStream()
    case .waitForHeadDecision: core.mayAwaitHeadDecision ? nil : .done
    // The response to a WebSocket handshake was validated before.
    case .validate: core.webSocket == nil ? try validateAtOnce() : .done
    case .recordSuccess: recordSuccess()
    case .recordFailure: recordFailureAtOnce()
    case .askRetriers: core.mayBeRetried ? nil : .retry(isWanted: false)
    case .prepareRetry: prepareRetry()
    case .prepareLateHandlers: prepareLateHandlersAtOnce()
    case .settle: settleAtOnce()
    case .serialize: serializeAtOnce()
    }
  }

  /// Performs the steps that ``performAtOnce(_:)`` cannot perform at present.
  nonisolated(nonsending) private func perform(_ step: AttemptStep) async throws(AFError) -> AttemptEvent {
    switch step {
    case .convert: return try await convert()
    case .adapt: return try await adapt()
    case .prepareBody: return try await prepareBody()
    case .waitForResume: return try await waitForResume()
    case .announceTask: return try await announceTask()
    case .schedule: return try await schedule()
    case .chooseHandler: return try await chooseHandler()
    case .addCredentials: return try await addCredentials()
    case .provideBodyStream: return try await provideBodyStream()
    case .addCookies: return await addCookies()
    case .lookUpCache: return await lookUpCache()
    case .send: return await send()
    case .replay: return await replay()
    case .revalidate: return await revalidate()
    case .evaluateTrust: return try await evaluateTrust()
    case .chooseIdentity: return try await chooseIdentity()
    case .waitForConnectivity: return try await waitForConnectivity()
    case .updateCache: return await updateCache()
    case .answerChallenge: return try await answerChallenge()
    case .followRedirect: return try await followRedirect()
    case .storeResult: return try await storeRefusal()
    case .announceTaskEnd: return await announceTaskEnd()
    case .waitForCookies: return await waitForCookies()
    case .moveDownload: return try await moveDownload()
    case .keepAnswer: return await keepAnswer()
    case .waitForHeadDecision: return await waitForHeadDecision()
    case .validate: return try await validate()
    case .recordFailure: return await recordFailure()
    case .askRetriers: return await askRetriers()
    case .prepareLateHandlers, .settle: return await settle(step)
    case .serialize: return await serialize()
    case .begin, .makeRequest, .applyCachePolicy, .beginHop, .askForWholeBody, .recordTransferFailure,
      .evaluateCredentials, .processUploadResponse, .prepareContinuation, .completeStream, .recordSuccess,
      .prepareRetry, .finished:
      preconditionFailure("\(step) never waits")
    }
  }

  /// Throws if the request was cancelled or its session has ended.
  func checkAlive() throws(AFError) {
    if let error = core.error { throw error }
    if Task.isCancelled { throw .explicitlyCancelled }
  }
}

extension AttemptDriver: LoopWork {
  func runOnLoop() {
    advance(from: attempt.step == .begin ? attempt.next(after: .begun) : attempt.step)
  }
}

extension AttemptDriver: TransferCompletion {
  func transferEnded(_ outcome: consuming Result<WireResponse, TransportFailure>) {
    advance(from: attempt.next(after: accept(outcome)))
  }
}

/// The values that the steps of one attempt read and write. ``RequestAttempt`` never sees them.
struct AttemptValues {
  /// The request of the caller, converted and adapted.
  @inline(__always) var urlRequest: URLRequest {
    get { convertedRequest ?? Self.missing("a converted request") }
    set { convertedRequest = newValue }
  }
  private var convertedRequest: URLRequest?

  /// The request that is sent next, or was sent last, without the cookies of the session's storage.
  @inline(__always) var request: WireRequest {
    get { wireRequest ?? Self.missing("a request to send") }
    set { wireRequest = newValue }
  }
  private var wireRequest: WireRequest?

  /// The method of the request that is sent next, or of the caller's; `nil` before the conversion.
  var method: String? { wireRequest?.method ?? convertedRequest?.httpMethod }

  /// The origin of the caller's request. Credentials go to no other origin.
  @inline(__always) var initialOrigin: Origin {
    get { originOfRequest ?? Self.missing("an origin") }
    set { originOfRequest = newValue }
  }
  private var originOfRequest: Origin?

  /// ``request`` with the cookies of the session's storage; `nil` without such cookies.
  var requestWithCookies: WireRequest?
  /// The server or the code that answers the next hop.
  var handler = HopHandler.engine
  /// The fault of the request's method or fields, which the engine must not send.
  var violation: HeaderFieldRules.Violation?
  var redirectCount = 0
  /// The redirect about which an observer decides.
  var redirectPlan: RedirectPlan?
  /// Whether a hop went to another origin. Nothing is sent preemptively any more.
  var leftInitialOrigin = false
  /// The challenges that were answered; `nil` for most attempts.
  var authentication: Authentication?
  var hasWaitedForConnectivity = false

  var cachePolicy: CacheDecision.Policy?
  /// The number of removals from the cache at the time when the hop was sent.
  var removalCount: UInt64 = 0
  var storedAnswer: StoredAnswer?
  var revalidation: Revalidation?

  var response: WireResponse?
  var transferFailure: TransportFailure?
  /// Whether the body of the last response is delivered to the caller.
  var deliversBody = true
  /// The hops that went over the wire.
  var hops: ShortList<Exchange.Hop> = []
  /// The start of the first hop that the engine does not measure.
  var startDate: Date?
  /// The result of the attempt.
  var exchange: Exchange?
  var error: AFError?
  /// The handler whose response is made next, because it cannot be made at once.
  var pendingSink: (any ResponseSink)?
  /// The handler whose serializer failed.
  var failedSink: (any ResponseSink)?

  /// The request that goes over the wire.
  var outgoing: WireRequest { requestWithCookies ?? request }

  private static func missing<Value>(_ value: String) -> Value {
    preconditionFailure("a step of an attempt needs \(value), which an earlier step makes")
  }
}
