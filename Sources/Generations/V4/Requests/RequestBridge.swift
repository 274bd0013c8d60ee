import Alamofire
import Foundation
import FoundationNetworking

/// The link between a ``Request`` and the core's request while it runs. The core calls the bridge as an interceptor,
/// and reports its end to the bridge. The handlers wait for the bridge.
///
/// The bridge refers to the ``Request`` weakly until the request is started. From then on to the end it retains the
/// request, because the caller need not.
final class RequestBridge: Alamofire::RequestInterceptor {
  /// Checks a response; returns the failure.
  typealias Check = (_ outcome: RequestResult, _ response: HTTPURLResponse) -> (any Error)?

  private struct State {
    weak var manager: SessionManager?
    weak var request: Request?
    /// A strong reference to the request while it runs.
    var running: Request?
    /// The cause of the next attempt, if it is a retry.
    var retry: Retry?
    var question = RetryQuestion()
    /// Whether this attempt has reached the adapter. Before that, only the request itself can have failed.
    var isAdapted = false
    var retryCount: UInt = 0
    /// Whether the adapter has refused a retry.
    var isAbandoned = false

    var checks: [Boxed<Check>] = []
    /// The number of checks that have evaluated the response of this attempt.
    var checkedCount = 0
    /// Whether all checks so far have run; a later check needs another end.
    var isValidated = false
    /// The error of a check, or the error that the user has set.
    var failure: (any Error)?
    /// Whether `failure` is the error of a check.
    var isRefused = false
    /// For how many ends of the core's the handlers have to wait.
    var pendingEnds = 1
    var isCompleted = false

    var credentials = CredentialRetry()
    var relays: [ProgressRelay.Direction: Relays] = [:]
    /// The body, if it is a form in a temporary file.
    var file: FormFile?
    /// Whether that file was removed.
    var isSpent = false

    /// Notes that another attempt follows.
    mutating func prepare(_ retry: Retry) {
      self.retry = retry
      isAdapted = false
    }

    /// Notes that the attempt which an answer asked for does not follow. Returns the ticket of its question.
    mutating func closeQuestion() -> RetryQueue.Ticket? {
      if retry == .retrier {
        retry = nil
        isAdapted = true
      }
      return question.close()
    }
  }

  private enum Retry {
    case retrier
    /// Credentials that were added after the challenge; such a retry is not counted.
    case credentials
  }

  /// The observers of one direction. The first gets the end of a running request; the second is replaced by the next
  /// observer, also after the end.
  private struct Relays {
    var running: ProgressRelay?
    weak var latest: ProgressRelay?
  }

  /// Runs the handlers one after the other; suspended until the request has ended.
  let queue: OperationQueue = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    queue.isSuspended = true
    queue.qualityOfService = .utility
    return queue
  }()

  /// The request for the core.
  let original: OriginalRequest
  /// The result for the handlers, in a separate object, so that waiting handlers retain nothing else.
  let outcome = RequestResultBox()
  private let sessionDelegate: SessionDelegate
  private let retryQueue: RetryQueue
  /// The state of the request, for any thread.
  private let state = Mutex(State())

  /// Makes the bridge of a request that `make` returns.
  ///
  /// - Parameters:
  ///   - manager: The manager of the request.
  ///   - make:    Makes the `URLRequest`; called once, in this call.
  convenience init(manager: SessionManager, _ make: () throws -> URLRequest) {
    self.init(manager: manager, original: OriginalRequest(make))
  }

  /// Makes the bridge of a resumed download, whose request the core makes.
  convenience init(manager: SessionManager) {
    self.init(manager: manager, original: .unknown)
  }

  private init(manager: SessionManager, original: OriginalRequest) {
    self.original = original
    sessionDelegate = manager.delegate
    retryQueue = manager.retryQueue
    state.withLock { $0.manager = manager }
  }

  deinit {
    sessionDelegate.forget(self)
    let (ticket, file) = state.withLock { ($0.closeQuestion(), $0.file) }
    if let ticket { retryQueue.leave(ticket) }
    file?.remove()
  }

  /// The request as users know it.
  var request: Request? { state.withLock { $0.running ?? $0.request } }

  // MARK: The life of the request

  /// Stores the request, and registers the bridge with the session's delegate.
  func bind(_ request: Request) {
    state.withLock { $0.request = request }
    sessionDelegate.remember(self)
  }

  /// Called when the request starts or continues.
  func started(_ request: Request) {
    outcome.update { if $0.start == nil { $0.start = Timeline.now } }
    state.withLock { state in
      if !state.isCompleted { state.running = request }
    }
  }

  /// The error so far.
  var failure: (any Error)? {
    get { state.withLock { $0.failure } ?? outcome.value.error }
    set { fail(with: newValue, isRefused: false) }
  }

  private func fail(with error: (any Error)?, isRefused: Bool) {
    // Released outside of the lock, because the errors of users may be objects.
    _ = state.withLock { state in
      let former = state.failure
      state.failure = error
      state.isRefused = isRefused
      return former
    }
    outcome.update { $0.error = error }
  }

  /// The number of retries by a retrier.
  var retryCount: UInt { state.withLock { $0.retryCount } }

  /// The result of the last attempt if the adapter has refused another one; the core no longer has it.
  var abandonedResult: RequestResult? { state.withLock { $0.isAbandoned } ? outcome.value : nil }

  // MARK: What the core asks

  func adapt(
    _ urlRequest: URLRequest, for session: Alamofire::Session,
    completion: @escaping @Sendable (Swift::Result<URLRequest, any Error>) -> Void
  ) {
    let (retry, ticket, manager) = state.withLock { state in
      defer {
        state.retry = nil
        state.isAdapted = true
      }
      return (state.retry, state.question.beginAdapting(), state.manager)
    }
    let adapted = Swift::Result { try manager?.adapter?.adapt(urlRequest) ?? urlRequest }
    state.withLock { $0.question.endAdapting() }
    defer { if let ticket { retryQueue.leave(ticket) } }
    guard let retry else { return completion(adapted) }
    switch adapted {
    case .success: begin(retry)
    case .failure(let error): abandon(error)
    }
    completion(adapted)
  }

  func retry(
    _ request: Alamofire::Request, for session: Alamofire::Session, dueTo error: any Error,
    completion: @escaping @Sendable (Alamofire::RetryResult) -> Void
  ) {
    let (isSendable, isLate, former) = state.withLock { state in
      // An attempt that was cancelled before it began may have left a question.
      let former = state.question.close()
      guard state.isAdapted, !state.isAbandoned, !state.isSpent else { return (false, false, former) }
      let isLate = state.credentials.takePending()
      if isLate { state.prepare(.credentials) }
      return (true, isLate, former)
    }
    if let former { retryQueue.leave(former) }
    // It would fail again: it cannot be made, for example from unknown resume data, or its body is gone.
    guard isSendable else { return completion(.doNotRetry) }
    if isLate { return completion(.retry) }
    note(request)
    // The core asks when the request has been started, so that there is one.
    let (manager, request, failure) = state.withLock { ($0.manager, $0.running ?? $0.request, $0.failure) }
    guard let manager, let request, let retrier = manager.retrier else { return completion(.doNotRetry) }
    let ticket = retryQueue.makeTicket()
    state.withLock { $0.question.open(ticket) }
    retrier.should(manager, retry: request, with: failure ?? legacy(error)) { [weak self] again, delay in
      guard let self else { return completion(.doNotRetry) }
      answer(ticket, again, delay, completion)
    }
  }

  /// Passes the answer of the retrier to the core, unless the request has ended in the meantime.
  private func answer(
    _ ticket: RetryQueue.Ticket, _ again: Bool, _ delay: TimeInterval,
    _ completion: @escaping @Sendable (Alamofire::RetryResult) -> Void
  ) {
    let isExpected = state.withLock { state in
      guard state.question.answer(ticket) else { return false }
      if again { state.prepare(.retrier) }
      return true
    }
    guard isExpected else { return }
    guard again else { return completion(.doNotRetry) }
    guard delay > 0 else {
      retryQueue.enter(ticket) { completion(.retry) }
      // The request may have ended before it entered the queue; after that, nothing else would remove it.
      if !state.withLock({ $0.question.needsPlace(ticket) }) { retryQueue.leave(ticket) }
      return
    }
    completion(.retryWithDelay(delay))
  }

  /// Notes the result of a failed attempt. Retriers see it, and it stays if there is no other attempt.
  private func note(_ attempt: Alamofire::Request) {
    let (request, response, metrics) = (attempt.request, attempt.response, attempt.metrics)
    let data = (attempt as? Alamofire::DataRequest).map { $0.data ?? Data() }
    outcome.update { outcome in
      outcome.request = request
      outcome.response = response
      outcome.metrics = metrics
      outcome.data = outcome.isStreamed ? nil : data
    }
  }

  /// Begins another attempt; the result of the previous one is dropped.
  private func begin(_ retry: Retry) {
    _ = state.withLock { state in
      let former = state.failure
      if retry == .retrier { state.retryCount += 1 }
      state.checkedCount = 0
      state.isValidated = false
      state.failure = nil
      state.isRefused = false
      return former
    }
    outcome.update { $0.prepareForRetry(replacesFile: retry == .credentials) }
  }

  /// Ends the request with the error of the adapter, which refused a retry, and with the result of the last attempt.
  private func abandon(_ error: any Error) {
    state.withLock { $0.isAbandoned = true }
    failure = error
    outcome.update { outcome in
      // The core has removed the file.
      outcome.temporaryURL = nil
      outcome.completed = nil
    }
  }

  // MARK: The end

  /// Adds a check. Returns whether the core has to be asked for another end, because the last one did not include the
  /// check. Requests start before their caller can add a check, and some are fast.
  func add(_ check: @escaping Check) -> Bool {
    let check = Boxed(check)
    let isAgain = state.withLock { state in
      state.checks.append(check)
      return state.isValidated && state.failure == nil && requireEnd(&state)
    }
    if isAgain { prepareForEnd() }
    return isAgain
  }

  /// Runs the checks. The error that it throws is the failure of the attempt, for which the core then calls retriers.
  func validate(_ seen: RequestResult) throws {
    let isAbandoned = state.withLock { $0.isAbandoned }
    outcome.update { isAbandoned ? $0.complete() : $0.take(seen, refusal: original.refusal) }
    if seen.error == nil, CredentialRetry.asksForCredentials(seen.response?.statusCode) {
      // Outside the lock, because the core has another one.
      let isRepeatable = request.map { !$0.mayHaveBeenPerformed } ?? true
      if state.withLock({ $0.credentials.wantsRetry(ofRepeatable: isRepeatable) }) {
        throw CredentialRetry.Required()
      }
    }
    if let failure = runChecks() { throw failure }
  }

  /// Runs the checks that have not evaluated the response. Returns the failure of the first that refuses it.
  private func runChecks() -> (any Error)? {
    while let check = nextCheck() {
      let outcome = outcome.value
      guard outcome.error == nil, let response = outcome.response,
        let failure = check.value(outcome, response)
      else {
        continue
      }
      fail(with: failure, isRefused: true)
      return failure
    }
    return nil
  }

  /// Runs the checks of a response that asks for credentials, because the core has not repeated the request with them:
  /// the session has ended, the request was cancelled, or a closure has received bytes of the response.
  private func validateWithoutRepetition() {
    let request = state.withLock { state in
      // A later failure would be taken for the one that asks for the repetition.
      _ = state.credentials.takePending()
      if state.retry == .credentials { (state.retry, state.isAdapted) = (nil, true) }
      return state.running ?? state.request
    }
    // A cancellation before the end of the request is its error, whatever the response is.
    if let error = request?.core.error { outcome.update { $0.error = $0.error ?? legacy(error) } }
    _ = runChecks()
  }

  /// Records that a closure takes the body. Returns whether the core has to be asked for another end, because the
  /// last one may not have waited for the chunks.
  func waitForChunks() -> Bool {
    let isAgain = state.withLock { $0.isValidated && requireEnd(&$0) }
    if isAgain { prepareForEnd() }
    return isAgain
  }

  /// Suspends the handlers until another end of the request, and retains the request until then. Returns `true`.
  private func requireEnd(_ state: inout State) -> Bool {
    state.isValidated = false
    state.pendingEnds += 1
    state.running = state.running ?? state.request
    queue.isSuspended = true
    return true
  }

  /// Called when another end is required, because the core may send the request again.
  private func prepareForEnd() {
    sessionDelegate.remember(self)
    removeFileAfterEnd()
  }

  private func nextCheck() -> Boxed<Check>? {
    state.withLock { state in
      guard state.checkedCount < state.checks.count else {
        state.isValidated = true
        return nil
      }
      state.checkedCount += 1
      return state.checks[state.checkedCount - 1]
    }
  }

  /// Called after each end of the core; after the last one the handlers run.
  func ended(metrics: URLSessionTaskMetrics?, resumeData: Data?, error: (any Error)?) {
    let error = error.map { legacy($0) }
    let isUnrepeated = error is CredentialRetry.Required
    if isUnrepeated { validateWithoutRepetition() }
    let (request, isFirst, relays, failure) = state.withLock { state in
      defer {
        state.isCompleted = true
        state.isValidated = true
        state.relays = state.relays.mapValues { Relays(latest: $0.latest) }
      }
      let relays = state.relays.values.compactMap(\.running)
      return (state.running ?? state.request, !state.isCompleted, relays, state.failure)
    }
    outcome.update { outcome in
      // There are none for an attempt that the adapter has refused.
      outcome.metrics = metrics ?? outcome.metrics
      outcome.resumeData = resumeData
      if outcome.error == nil { outcome.error = failure ?? (isUnrepeated ? nil : error) }
    }
    if isFirst, let request {
      for relay in relays { relay.finish(request) }
      sessionDelegate.completed(request)
    }
    if state.withLock({ $0.pendingEnds == 1 }) { sessionDelegate.forget(self) }
    let (isLast, last, ticket) = state.withLock { state -> (Bool, Request?, RetryQueue.Ticket?) in
      state.pendingEnds -= 1
      // A retrier may already be asked because of a later check.
      guard state.pendingEnds == 0 else { return (false, nil, nil) }
      defer { state.running = nil }
      queue.isSuspended = false
      return (true, state.running, state.closeQuestion())
    }
    if let ticket { retryQueue.leave(ticket) }
    // Another end may have become necessary in between.
    if !isLast { sessionDelegate.remember(self) }
    // Released outside of the lock: this may be the last reference.
    _ = last
  }

  /// Adds an observer of progress, replacing the earlier observer of the same direction.
  func add(_ relay: ProgressRelay, of request: Request) {
    let (former, isOver) = state.withLock { state in
      let former = state.relays[relay.direction]?.latest
      state.relays[relay.direction] = Relays(running: state.isCompleted ? nil : relay, latest: relay)
      return (former, state.isCompleted)
    }
    former?.replace()
    if isOver { relay.finish(request) }
  }

  // MARK: The file of a form

  /// Takes over the file that is the body. It is removed after the end of the request, before the handlers that are
  /// added from now on. As long as the request may be sent again, it stays, at most to the release of the request.
  func own(_ file: FormFile) {
    state.withLock { $0.file = file }
    removeFileAfterEnd()
  }

  private func removeFileAfterEnd() {
    guard state.withLock({ $0.file != nil }) else { return }
    queue.addOperation { [weak self] in self?.removeFile() }
  }

  private func removeFile() {
    let hasRetrier = state.withLock { $0.manager }?.retrier != nil
    let hasFailed = failure != nil
    let file = state.withLock { state -> FormFile? in
      // Credentials or a check may still be added.
      guard !state.credentials.isAwaited, hasFailed || !hasRetrier, let file = state.file else { return nil }
      state.file = nil
      state.isSpent = true
      return file
    }
    file?.remove()
  }

  // MARK: Credentials

  /// Called when the server asks for credentials.
  func challenged() {
    state.withLock { $0.credentials.challenged() }
  }

  /// Called when credentials were set. Returns whether the core has to be asked for another end, because the last one
  /// did not use them.
  func authenticated() -> Bool {
    let isAgain = state.withLock { state in
      // An error that the user has set stays; the failure of a check belongs to the response without credentials.
      state.credentials.added() && state.isValidated && (state.failure == nil || state.isRefused)
        && requireEnd(&state)
    }
    if isAgain { prepareForEnd() }
    return isAgain
  }

  /// Passes the result to `handler`, after the earlier handlers.
  func handle(_ handler: @escaping (RequestResult) -> Void) {
    let (outcome, handler) = (outcome, Boxed(handler))
    queue.addOperation { [queue] in
      // Retained until then, because the request may have been released.
      withExtendedLifetime(queue) { handler.value(outcome.value) }
    }
  }
}
