import Alamofire
import AlamofireGenerations
import Foundation
import FoundationNetworking

/// What a ``Request`` and the core's request have in common while it runs: the core asks it as an interceptor and
/// tells it the end, the handlers wait for it.
///
/// It knows the ``Request`` weakly until that is started; from then on to its end it keeps it alive, since users
/// need not.
final class RequestBridge: Alamofire::RequestInterceptor {
  /// Judges a response; returns what is wrong with it.
  typealias Check = (_ ending: RequestResult, _ response: HTTPURLResponse) -> (any Error)?

  private struct State {
    weak var manager: SessionManager?
    weak var request: Request?
    /// The same, while it runs.
    var running: Request?
    /// Who wants the attempt that comes next, if it is a retry.
    var retry: Retry?
    var retryCount: UInt = 0
    /// Whether the adapter has refused a retry.
    var isGivenUp = false

    var checks: [Boxed<Check>] = []
    /// How many of them have judged the response of this attempt.
    var checkedCount = 0
    /// Whether all that there were have; what comes later needs another end.
    var isJudged = false
    /// What a check has found, or a user has put in its place.
    var failure: (any Error)?
    /// For how many ends of the core's the handlers have to wait.
    var pendingEnds = 1
    var isCompleted = false

    var credentials = LateCredentials()
    var relays: [ProgressRelay.Direction: Relays] = [:]
  }

  private enum Retry {
    case retrier
    /// Credentials that came late, which is nobody's business.
    case credentials
  }

  /// Who hears of one direction: for its end while the request runs, and, for whoever takes that place, also later.
  private struct Relays {
    var running: ProgressRelay?
    weak var latest: ProgressRelay?
  }

  /// Runs the handlers, one after the other; it stands still until the request has ended.
  let queue: OperationQueue = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    queue.isSuspended = true
    queue.qualityOfService = .utility
    return queue
  }()

  /// What the core is to send.
  let original: Original
  /// What handlers are given; apart from the rest, so that handlers which wait hold nothing else.
  let ending = EndingBox()
  private let sessionDelegate: SessionDelegate
  private let retryQueue: RetryQueue
  private let state = Mutex(State())

  /// - Parameters:
  ///   - manager: Whose request it is.
  ///   - make:    Makes what is sent; called here and now, and never again.
  convenience init(manager: SessionManager, _ make: () throws -> URLRequest) {
    self.init(manager: manager, original: Original(make))
  }

  /// The request of a download that goes on, which the core makes itself.
  convenience init(manager: SessionManager) {
    self.init(manager: manager, original: .unknown)
  }

  private init(manager: SessionManager, original: Original) {
    self.original = original
    sessionDelegate = manager.delegate
    retryQueue = manager.retryQueue
    state.withLock { $0.manager = manager }
  }

  deinit {
    sessionDelegate.forget(self)
    retryQueue.leave(self)
  }

  /// The request as users know it.
  var request: Request? { state.withLock { $0.running ?? $0.request } }

  // MARK: The life of the request

  /// The request is made.
  func bind(_ request: Request) {
    state.withLock { $0.request = request }
    sessionDelegate.remember(self)
  }

  /// The request is started, or goes on.
  func started(_ request: Request) {
    ending.update { if $0.start == nil { $0.start = Timeline.now } }
    state.withLock { state in
      if !state.isCompleted { state.running = request }
    }
  }

  /// What went wrong, as far as it is known.
  var failure: (any Error)? {
    get { state.withLock { $0.failure } ?? ending.value.error }
    set {
      state.withLock { $0.failure = newValue }
      ending.update { $0.error = newValue }
    }
  }

  /// How often the request has been sent again by a retrier.
  var retryCount: UInt { state.withLock { $0.retryCount } }

  /// What the last attempt was, when the adapter has refused another one; the core knows it no more.
  var givenUp: RequestResult? { state.withLock { $0.isGivenUp } ? ending.value : nil }

  // MARK: What the core asks

  func adapt(
    _ urlRequest: URLRequest, for session: Alamofire::Session,
    completion: @escaping @Sendable (Swift::Result<URLRequest, any Error>) -> Void
  ) {
    let (retry, manager) = state.withLock { state in
      defer { state.retry = nil }
      return (state.retry, state.manager)
    }
    let adapted = Swift::Result { try manager?.adapter?.adapt(urlRequest) ?? urlRequest }
    guard let retry else { return completion(adapted) }
    defer { retryQueue.leave(self) }
    switch adapted {
    case .success: begin(retry)
    case .failure(let error): giveUp(error)
    }
    completion(adapted)
  }

  func retry(
    _ request: Alamofire::Request, for session: Alamofire::Session, dueTo error: any Error,
    completion: @escaping @Sendable (Alamofire::RetryResult) -> Void
  ) {
    if case .refused = original { return completion(.doNotRetry) }
    if state.withLock({ $0.isGivenUp }) { return completion(.doNotRetry) }
    let isLate = state.withLock { state in
      let isLate = state.credentials.takeWish()
      if isLate { state.retry = .credentials }
      return isLate
    }
    if isLate { return completion(.retry) }
    note(request)
    let attempt = request
    // The core asks when the request has been started, so that there is one.
    let (manager, request, failure) = state.withLock { ($0.manager, $0.running ?? $0.request, $0.failure) }
    guard let manager, let request, let retrier = manager.retrier else { return completion(.doNotRetry) }
    retrier.should(manager, retry: request, with: failure ?? legacy(error)) { [weak self] again, delay in
      guard again else { return completion(.doNotRetry) }
      guard let self else { return completion(.doNotRetry) }
      state.withLock { $0.retry = .retrier }
      guard delay > 0 else {
        retryQueue.enter(self) { completion(.retry) }
        // The end of a request takes it out of the line; after that, nothing else would.
        if attempt.isCancelled { retryQueue.leave(self) }
        return
      }
      completion(.retryWithDelay(delay))
    }
  }

  /// What the core knows of an attempt that has failed: retriers see it, and it stays if there is no other attempt.
  private func note(_ attempt: Alamofire::Request) {
    let (request, response, metrics) = (attempt.request, attempt.response, attempt.metrics)
    let data = (attempt as? Alamofire::DataRequest).map { $0.data ?? Data() }
    ending.update { ending in
      ending.request = request
      ending.response = response
      ending.metrics = metrics
      ending.data = ending.isStreamed ? nil : data
    }
  }

  /// Another attempt begins; what the one before has come to is forgotten.
  private func begin(_ retry: Retry) {
    state.withLock { state in
      if retry == .retrier { state.retryCount += 1 }
      state.checkedCount = 0
      state.isJudged = false
      state.failure = nil
    }
    ending.update { $0.prepareForRetry() }
  }

  /// There is no other attempt, since the adapter does not let it be: the request ends with the adapter's error, and
  /// what the last attempt has come to.
  private func giveUp(_ error: any Error) {
    state.withLock { $0.isGivenUp = true }
    failure = error
    ending.update { ending in
      // The core has removed the file.
      ending.temporaryURL = nil
      ending.completed = nil
    }
  }

  // MARK: The end

  /// Adds a check. Returns whether the core has to be asked for another end, since the last one went without it:
  /// requests start before anybody can add a check, and some are fast.
  func add(_ check: @escaping Check) -> Bool {
    let check = Boxed(check)
    let isAgain = state.withLock { state in
      state.checks.append(check)
      return state.isJudged && state.failure == nil && takeEnd(&state)
    }
    // It may be sent again.
    if isAgain { sessionDelegate.remember(self) }
    return isAgain
  }

  /// Judges what has come. What is thrown is the failure of the attempt, about which the core then asks.
  func judge(_ seen: RequestResult) throws {
    let isGivenUp = state.withLock { $0.isGivenUp }
    ending.update { isGivenUp ? $0.complete() : $0.take(seen, refusal: original.refusal) }
    let status = seen.error == nil ? seen.response?.statusCode : nil
    if state.withLock({ $0.credentials.wantsRetry(after: status) }) { throw LateCredentials.Wish() }
    while let check = nextCheck() {
      let ending = ending.value
      guard ending.error == nil, let response = ending.response, let failure = check.value(ending, response)
      else {
        continue
      }
      self.failure = failure
      throw failure
    }
  }

  /// Somebody takes the body. Returns whether the core has to be asked for another end, since the last one may go without
  /// that: handlers wait for the pieces.
  func streamed() -> Bool { state.withLock { $0.isJudged && takeEnd(&$0) } }

  /// Handlers wait for another end.
  private func takeEnd(_ state: inout State) -> Bool {
    state.isJudged = false
    state.pendingEnds += 1
    queue.isSuspended = true
    return true
  }

  private func nextCheck() -> Boxed<Check>? {
    state.withLock { state in
      guard state.checkedCount < state.checks.count else {
        state.isJudged = true
        return nil
      }
      state.checkedCount += 1
      return state.checks[state.checkedCount - 1]
    }
  }

  /// The core has served an end; with the last one the handlers go on.
  func ended(metrics: URLSessionTaskMetrics?, resumeData: Data?, error: (any Error)?) {
    retryQueue.leave(self)
    let (request, isFirst, relays, failure) = state.withLock { state in
      defer {
        state.isCompleted = true
        state.isJudged = true
        state.relays = state.relays.mapValues { Relays(latest: $0.latest) }
      }
      let relays = state.relays.values.compactMap(\.running)
      return (state.running ?? state.request, !state.isCompleted, relays, state.failure)
    }
    ending.update { ending in
      // Of an attempt that the adapter has refused there are none.
      ending.metrics = metrics ?? ending.metrics
      ending.resumeData = resumeData
      let error = error.map { legacy($0) }
      if ending.error == nil { ending.error = failure ?? (error is LateCredentials.Wish ? nil : error) }
    }
    if isFirst, let request {
      for relay in relays { relay.finish(request) }
      sessionDelegate.completed(request)
    }
    if state.withLock({ $0.pendingEnds == 1 }) { sessionDelegate.forget(self) }
    let last = state.withLock { state in
      defer { state.running = nil }
      state.pendingEnds -= 1
      if state.pendingEnds == 0 { queue.isSuspended = false }
      return state.running
    }
    // Released outside of the lock: this may be the last reference.
    _ = last
  }

  /// Adds somebody who wants to hear of progress at least once; takes the place of whoever wanted to hear of the same.
  func add(_ relay: ProgressRelay, of request: Request) {
    let (former, isOver) = state.withLock { state in
      let former = state.relays[relay.direction]?.latest
      state.relays[relay.direction] = Relays(running: state.isCompleted ? nil : relay, latest: relay)
      return (former, state.isCompleted)
    }
    former?.replace()
    if isOver { relay.finish(request) }
  }

  // MARK: Credentials

  /// The server wants credentials.
  func challenged() {
    state.withLock { $0.credentials.challenged() }
  }

  /// There are credentials. Returns whether the core has to be asked for another end, since it went without them.
  func authenticated() -> Bool {
    let isAgain = state.withLock { state in
      state.credentials.came() && state.isJudged && state.failure == nil && takeEnd(&state)
    }
    if isAgain { sessionDelegate.remember(self) }
    return isAgain
  }

  /// Hands what comes at the end to `handler`, once the handlers before it are done.
  func handle(_ handler: @escaping (RequestResult) -> Void) {
    let (ending, handler) = (ending, Boxed(handler))
    queue.addOperation { [queue] in
      // Kept until then: the request may be gone.
      withExtendedLifetime(queue) { handler.value(ending.value) }
    }
  }
}
