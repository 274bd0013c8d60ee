import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// Runs a request, from its conversion to the delivery of its responses: asks ``RequestAttempt`` for the order of the
/// steps, performs their stages, and passes itself on when a stage has to wait.
///
/// It continues on one of these threads:
/// - the loop's, at the start of a request, after a transfer and behind a gate;
/// - one of the pool, after work that a task has awaited, until the run passes itself on;
/// - that of the caller, in a session that makes its requests in the call of the factory.
///
/// One thread or task uses the run at a time. It is passed on through the inbox of the loop, as the completion of a
/// transfer, at a gate, or by starting a task. Nothing touches it afterwards. Hence `@unchecked Sendable`.
final class RequestRun: @unchecked Sendable {
  let core: RequestCore
  /// The request as the caller's code sees it.
  let request: Request
  /// The index of the request in the registry of its session; `nil` if the session has ended.
  let registryIndex: Int?
  /// The priority of the task that started the request.
  private let priority: TaskPriority
  @exclusivity(unchecked) var attempt: RequestAttempt
  @exclusivity(unchecked) var values = AttemptValues()
  /// The rest of a stage, with which the loop's thread goes on; `nil` at the beginning.
  @exclusivity(unchecked) private var next: Continuation?
  /// The rest of the stage that waits for a transfer.
  @exclusivity(unchecked) private var afterTransfer: Transfer.End?

  init(_ request: Request, core: RequestCore, registryIndex: Int?, priority: TaskPriority) {
    self.core = core
    self.request = request
    self.registryIndex = registryIndex
    self.priority = priority
    attempt = RequestAttempt(core.kind.ofAttempt)
  }

  // MARK: The loop

  private enum Place { case loop, task }

  /// The result of a turn.
  private enum Turn {
    case ended
    /// Another owner has the run.
    case passedOn
    case task(@Sendable () async -> Continuation)
  }

  /// Performs stages until the run has ended, is passed on, or needs a task.
  private func turn(from first: consuming Outcome, in place: Place) -> Turn {
    var outcome = first
    while true {
      switch consume outcome {
      case .event(let event):
        let step = attempt.next(after: event)
        if step == .finished { return .ended }
        outcome = self.outcome { () throws(AFError) in try perform(step) }
      case .wait(.task(let work)): return .task(work)
      case .wait(.transfer(let transfer)): return begin(transfer, in: place)
      case .wait(.gate(let gate, let then)):
        if place == .task, staysInTask {
          return .task { [core] in
            await core.passed(gate); return then
          }
        }
        if core.park(at: gate, { self.proceed(with: then) }) { return .passedOn }
        outcome = self.outcome { () throws(AFError) in try then(self) }
      }
    }
  }

  /// Passes the run to the transport, if that needs no task.
  private func begin(_ transfer: consuming Transfer, in place: Place) -> Turn {
    guard transfer.mayNeedNoTask else { return .task(transfer.work()) }
    if place == .task {
      if staysInTask { return .task(transfer.work()) }
      proceed(with: transfer.again())
      return .passedOn
    }
    afterTransfer = transfer.then
    // From here on the transport owns the run.
    let isTaken = transfer.transport.send(transfer.request, observer: transfer.observer, completion: self)
    return isTaken ? .passedOn : .task(transfer.work())
  }

  private var staysInTask: Bool { core.session.enqueue == nil || core.keepsTask }

  /// Returns the outcome of a stage, or of the rest of one. Every error of a stage is caught here.
  private func outcome(of stage: () throws(AFError) -> Outcome) -> Outcome {
    do throws(AFError) {
      return try stage()
    } catch {
      values.error = error.naming(method: values.method)
      return .event(.failed)
    }
  }

  // MARK: The entries

  /// Performs stages in the current task until the run has ended or is passed on.
  nonisolated(nonsending) func run(after event: AttemptEvent) async { await run(from: .event(event)) }

  nonisolated(nonsending) private func run(from first: consuming Outcome) async {
    var outcome = first
    while case .task(let work) = turn(from: outcome, in: .task) {
      let then = await work()
      outcome = self.outcome { () throws(AFError) in try then(self) }
    }
  }

  /// Performs stages on the loop's thread until the run has ended or is passed on. The first stage that needs a task
  /// starts one. It is detached, because the current task, if any, belongs to another request.
  private func advance(from first: consuming Outcome) {
    guard case .task(let work) = turn(from: first, in: .loop) else { return }
    start { [self] in await run(from: .wait(.task(work))) }
  }

  private func start(_ body: @escaping @Sendable () async -> Void) {
    core.run { Task.detached(priority: priority, operation: body) }
  }

  /// Continues on the loop's thread, from any thread. Without a loop a task continues.
  private func proceed(with continuation: @escaping Continuation) {
    guard let enqueue = core.session.enqueue else {
      return start { [self] in await run(from: outcome { () throws(AFError) in try continuation(self) }) }
    }
    next = continuation
    enqueue(self)
  }

  // MARK: The stages

  /// Performs the stage of `step`.
  private func perform(_ step: AttemptStep) throws(AFError) -> Outcome {
    switch step {
    case .begin, .finished: preconditionFailure("\(step) is not performed")
    case .convert: try convert()
    case .adapt: adapt()
    case .prepareBody: try prepareBody()
    case .waitForResume: try waitForResume()
    case .announceTask: announceTask()
    case .schedule: schedule()
    case .makeRequest: try makeRequest()
    case .chooseHandler: try chooseHandler()
    case .addCredentials: try addCredentials()
    case .provideBodyStream: try provideBodyStream()
    case .applyCachePolicy: applyCachePolicy()
    case .addCookies: addCookies()
    case .beginHop: beginHop()
    case .lookUpCache: lookUpCache()
    case .send: send()
    case .replay: replay()
    case .revalidate: revalidate()
    case .askForWholeBody: askForWholeBody()
    case .evaluateTrust: try evaluateTrust()
    case .chooseIdentity: chooseIdentity()
    case .waitForConnectivity: waitForConnectivity()
    case .recordTransferFailure: try recordTransferFailure()
    case .updateCache: updateCache()
    case .evaluateCredentials: evaluateCredentials()
    case .answerChallenge: try answerChallenge()
    case .followRedirect: try followRedirect()
    case .storeResult: storeResult()
    case .announceTaskEnd: announceTaskEnd()
    case .waitForCookies: waitForCookies()
    case .processUploadResponse: try processUploadResponse()
    case .prepareContinuation: try prepareContinuation()
    case .moveDownload: try moveDownload()
    case .keepAnswer: keepAnswer()
    case .completeStream: completeStream()
    case .waitForHeadDecision: waitForHeadDecision()
    case .validate: try validate()
    case .recordSuccess: recordSuccess()
    case .recordFailure: recordFailure()
    case .askRetriers: askRetriers()
    case .prepareRetry: prepareRetry()
    case .prepareLateHandlers: prepareLateHandlers()
    case .settle: settle()
    case .serialize: serialize()
    }
  }
}

extension RequestRun: LoopWork {
  func runOnLoop() {
    guard let continuation = next.take() else { return advance(from: .event(.begun)) }
    advance(from: outcome { () throws(AFError) in try continuation(self) })
  }
}

extension RequestRun: TransferCompletion {
  func transferEnded(_ result: consuming Result<WireResponse, TransportFailure>) {
    guard let then = afterTransfer.take() else {
      preconditionFailure("a transfer ended that nobody waits for")
    }
    let result = result
    advance(from: outcome { () throws(AFError) in try then(self, result) })
  }
}

extension RequestCore {
  /// Throws if the request was cancelled or its session has ended.
  func checkAlive() throws(AFError) {
    if let error { throw error }
    if Task.isCancelled { throw .explicitlyCancelled }
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
  /// The handler whose serializer failed.
  var failedSink: (any ResponseSink)?

  /// The request that goes over the wire.
  var outgoing: WireRequest { requestWithCookies ?? request }

  private static func missing<Value>(_ value: String) -> Value {
    preconditionFailure("a step of an attempt needs \(value), which an earlier step makes")
  }
}
