import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// A request and its core, as the hops of an attempt see them.
struct RequestOwner: HopDelegate {
  /// The request as the caller's code sees it.
  let request: Request

  var core: RequestCore { request.core }

  // MARK: The request

  var kind: any HopKind { core.kind }
  var profile: ConnectionProfile { core.profile }
  var credential: URLCredential? { core.state.withLock { $0.options.read { $0.credential } } }
  var passesBodyOn: Bool { core.hasBodySink }
  /// The body of an upload.
  private var body: UploadBody? { (request as? UploadRequest)?.body }
  var hasChunkReaders: Bool { core.chunks != nil }

  func profile(presenting identity: ClientIdentity, inPlaceOf profile: ConnectionProfile) -> ConnectionProfile
  {
    core.profile(presenting: identity, inPlaceOf: profile)
  }

  func makeRequest(
    of request: URLRequest, _ violation: inout HeaderFieldRules.Violation?
  ) throws(AFError) -> WireRequest {
    try core.makeWireRequest(of: request, &violation, wireObserver: self.request.wireObserver)
  }

  func addBodyStream(to made: inout URLRequest) {
    switch body?.content {
    case .file(let url, _): made.httpBodyStream = InputStream(url: url)
    case .stream(let stream): made.httpBodyStream = stream
    case .data, nil: break
    }
  }

  // MARK: The run

  var observer: any TransferObserver { core }
  var hasPendingCookies: Bool { core.hasPendingCookies }

  func checkAlive() throws(AFError) { try core.checkAlive() }

  func begin(_ hop: consuming CurrentHop) {
    // A stored response that answers the hop does not use the sink.
    if hop.request.hasSink { (hop.request.sink as? ObservedBody)?.forget() }
    // The earlier hop is released outside the lock, because its body may be an object of the caller.
    var exchanged: CurrentHop? = consume hop
    let begun = core.state.withLock { state in
      swap(&state.run.hop, &exchanged)
      return state.beginTask()
    }
    begun.show(of: request)
  }

  func challengeDecision(in sink: (any BodySink)?) -> CurrentHop.ChallengeDecision {
    core.challengeDecision(in: sink)
  }

  func isUndecided(_ head: ResponseHead) -> Bool { core.isUndecided(head) }
  func declineChallenge() { core.declineChallenge() }

  func challengeBody(in sink: (any BodySink)?) throws(TransportFailure) -> Data? {
    switch sink {
    case let kept as ChallengeBody: try kept.take()
    case let observed as ObservedBody: try observed.keptChallenge()
    default: nil
    }
  }

  func redirect(by head: ResponseHead, of request: WireRequest, after count: Int) -> Redirect.Decision {
    core.redirect(by: head, of: request, after: count)
  }

  func redirectDeclined(_ head: ResponseHead) { core.redirectDeclined(head) }

  // MARK: The response

  func isShown(_ head: ResponseHead) -> Bool { core.isShown(head) }
  func headShown(_ head: ResponseHead) -> HeadDisposition { core.headShown(head) }
  func storeCookies(of head: ResponseHead) { core.storeCookies(of: head) }
  func bytesReplayed(_ count: ByteCount) { core.bytesReplayed(count) }

  func setIntermediate(_ isIntermediate: Bool) {
    core.state.withLock { $0.observed.added.value.progress.isIntermediate = isIntermediate }
  }

  func shown(_ body: Data?, of request: WireRequest, isDelivered: Bool) -> Data? {
    core.shown(body, of: request, isDelivered: isDelivered)
  }

  func keptBody(in sink: (any BodySink)?) -> Data? { (sink as? ObservedBody)?.data }
  func store(_ exchange: Exchange, body: Data?) { core.store(exchange, body: body) }
  func propose(_ candidate: CacheCandidate) {
    core.state.withLock { $0.observed.added.value.cacheCandidates.append(candidate) }
  }
  func handshakeFailure() async -> AFError? { await core.handshakeFailure() }

  func resumeData(after failure: TransportFailure) -> Data? {
    core.kind.resumeData(after: failure, of: core)
  }

  // MARK: The observers

  var observers: RequestObservers { core.observers }
  var hasOwnDelegate: Bool { request.session.hasOwnDelegate }
  var asksAboutChallenge: Bool { core.asksAboutChallenge }

  func connectivityAwaited() async {
    await request.callDelegate { delegate, session, task in
      delegate.urlSession(session, taskIsWaitingForConnectivity: task)
    }
  }

  func serverRefused(_ error: AFError) {
    if core.notifiesMonitors { request.notify(.failedEarly(error)) }
  }

  func question<Answer: Sendable>(
    about challenge: URLAuthenticationChallenge, whenForgotten: Answer, whenCancelled: Answer,
    deadline: MonotonicTime?,
    _ read: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Answer
  ) -> (@Sendable () async -> Answer)? {
    guard let task = request.tasks.last else { return nil }
    return { [session = request.session] in
      await session.delegateAnswer(
        whenForgotten: whenForgotten, whenCancelled: whenCancelled, deadline: deadline
      ) { delegate, facade, completion in
        delegate.urlSession(facade, task: task, didReceive: challenge) { completion(read($0, $1)) }
      }
    }
  }

  func question(about redirect: HTTPURLResponse, to next: WireRequest) -> RedirectQuestion? {
    guard let task = request.tasks.last, let original = core.state.withLock({ $0.results.request }),
      let proposed = URLRequest(proposing: next, to: original)
    else { return nil }
    return RedirectQuestion(proposed: proposed) { [session = request.session] in
      await session.delegateAnswer(whenForgotten: proposed, whenCancelled: nil, deadline: next.deadline) {
        delegate, facade, completion in
        delegate.urlSession(
          facade, task: task, willPerformHTTPRedirection: redirect, newRequest: proposed
        ) { completion($0) }
      } as URLRequest?
    }
  }

  func questionAboutBody(
    inPlaceOf source: any BodySource, deadline: MonotonicTime?
  ) -> (@Sendable () async throws(AFError) -> RequestBody?)? {
    guard let body, let spent = body.content, spent.stream != nil,
      let ask = request.questionAboutBodyStream(deadline: deadline)
    else { return nil }
    return { [core] () throws(AFError) in
      try await ask()
      guard let next = body.content?.stream, next !== spent.stream else { return nil }
      return .source(core.source(of: next, length: source.length))
    }
  }
}

extension RequestCore {
  /// Decides whether the response to a request leads elsewhere. The thread that reads the head asks as well, because
  /// the body of a redirect is not needed. The attempt then finds the decision of that thread.
  ///
  /// - Parameters:
  ///   - head:    The head of the response.
  ///   - request: The request that was answered.
  ///   - count:   The number of redirects that were followed before.
  func redirect(by head: ResponseHead, of request: WireRequest, after count: Int) -> Redirect.Decision {
    let location = head.block.values(of: "Location").first
    let known = state.withLock { $0.run.hop?.redirect }
    if let known, known.status == head.status, known.location == location { return known.decision }
    let options = request.profile.options
    let decision = Redirect.decide(
      status: head.status, location: location.map { kind.engineURL(of: $0) },
      request: Redirect.Request(
        url: request.url, origin: request.origin, method: request.method, hasBody: request.body.isPresent),
      redirectCount: count, limit: options.redirectLimit, protectedHeaders: options.protectedHeaders)
    let decided = DecidedRedirect(status: head.status, location: location, decision: decision)
    state.withLock { $0.run.hop?.redirect = decided }
    return decision
  }
}

extension Request {
  /// Stores the responses of the attempt, as far as the delegate and the handlers allow.
  func storeCandidates(_ exchange: Exchange) async {
    let candidates = core.state.withLock { state in
      defer { if state.observed.added.isChanged { state.observed.added.value.cacheCandidates = [] } }
      return state.observed.added.value.cacheCandidates
    }
    for candidate in candidates { await store(candidate, exchange) }
  }

  private func store(_ candidate: CacheCandidate, _ exchange: Exchange) async {
    guard let task = tasks.last as? URLSessionDataTask,
      let response = exchange.hops.last?.request === candidate.request
        ? exchange.httpResponse
        : Exchange(url: URL(wire: candidate.request.url), head: candidate.head).httpResponse
    else { return }
    let proposed = CachedURLResponse(response: response, data: candidate.body)
    // Without a deadline, because the total time ends with the response.
    let answer: CachedURLResponse? = await session.delegateAnswer(
      whenForgotten: proposed, whenCancelled: nil
    ) { delegate, facade, completion in
      delegate.urlSession(facade, dataTask: task, willCacheResponse: proposed) { completion($0) }
    }
    // The server's head, unless an observer has replaced it.
    session.cache.store(answer, as: candidate, head: answer?.response === response ? candidate.head : nil)
  }
}

extension Request: RunOwner {
  var hopDelegate: any HopDelegate { RequestOwner(request: self) }

  func wasLastOfSession() { session.notifyInvalidOnce() }

  func questionAboutBodyStream(
    deadline: MonotonicTime?
  ) -> (@Sendable () async throws(AFError) -> Void)? {
    guard let body = (self as? UploadRequest)?.body, let ours = body.content, ours.stream != nil,
      let task = tasks.last
    else { return nil }
    return { [core, session] () throws(AFError) in
      let answer: UploadContent? = await session.delegateAnswer(
        whenForgotten: ours, whenCancelled: nil, deadline: deadline
      ) { delegate, facade, completion in
        delegate.urlSession(
          facade, task: task, needNewBodyStream: { stream in completion(stream.map { .stream($0) }) })
      }
      try core.checkAlive()
      if answer == nil, let deadline, deadline <= .now {
        throw .unansweredQuestion(
          to: core.state.withLock { $0.results.request }?.url?.absoluteString, "The delegate",
          core.profile.options.timeLimits)
      }
      try body.use(answer, of: core.state.withLock { $0.results.request })
    }
  }
}

// Adapters and retriers. The session is retained while one is called. It is not retained while an answer is awaited nor
// during a delay, so that an interceptor that never answers cannot keep the session alive.
extension Request {
  func adapted(_ initial: URLRequest) async -> Result<URLRequest, any Error>? {
    let adapters = interceptorsInOrder
    guard session.owner != nil else { return nil }
    var current = initial
    for adapter in adapters {
      switch await answer(of: adapter, for: current) {
      case .success(let next)?: current = next
      case .failure(let error)?: return hasEnded ? nil : .failure(error)
      case nil: return nil
      }
    }
    return .success(current)
  }

  /// Whether the request or its session has ended, so that the failure of an adapter may say no more than that.
  private var hasEnded: Bool { session.owner == nil || (try? core.checkAlive()) == nil }

  private func answer(of adapter: any RequestInterceptor, for request: URLRequest) async
    -> Result<URLRequest, any Error>?
  {
    await SingleCompletion<Result<URLRequest, any Error>?>.answer(
      whenForgotten: .failure(ForgottenCompletion()), whenCancelled: nil
    ) { completion in
      guard let session = session.owner else { return completion(nil) }
      adapter.adapt(request, using: RequestAdapterState(of: core, in: session)) { completion($0) }
    }
  }

  func retryDecision(about failure: AFError) async -> RetryDecision {
    if core.refusesRetry { return .refuse(nil) }
    let answer = await retriersAnswer(to: failure, isOpen: true)
    // The session ended while a retrier was being asked, so there is no further attempt.
    if core.isAbandoned { return .refuse(reasonToRefuse) }
    switch answer {
    case .retry: return .retry
    case .doNotRetry: return .refuse(nil)
    case .doNotRetryWithError(let retryError):
      return .refuse(.requestRetryFailed(retryError: retryError, originalError: failure))
    case .retryWithDelay(let delay):
      // Other transfers of a discretionary session do not wait for this one.
      core.kind.held()
      // A request that is cancelled during the delay ends with its failure.
      do { try await Task.sleep(for: .retryDelay(delay)) } catch {
        return .refuse(core.isAbandoned ? reasonToRefuse : nil)
      }
      return .retry
    }
  }

  /// The error that replaces a failure because the session has ended. A late handler keeps its failure.
  private var reasonToRefuse: AFError? { core.refusesRetry ? nil : core.session.reasonOfEnd }

  /// Asks the retriers in their order. The first answer other than `.doNotRetry` counts. A cancellation answers for the
  /// retrier that is being asked, and the rest are not asked.
  ///
  /// - Parameter isOpen: Whether ``RequestDelegate/retryRequest(_:withDelay:)`` may answer as well.
  func retriersAnswer(to error: AFError, isOpen: Bool = false) async -> RetryResult {
    let retriers = interceptorsInOrder
    guard !retriers.isEmpty, session.owner != nil else { return .doNotRetry }
    defer { if isOpen { additions.withLock { $0.value.retryAnswer = nil } } }
    for retrier in retriers where core.mayAttemptAgain {
      let answer = await SingleCompletion.answer(
        whenForgotten: RetryResult.doNotRetry, whenCancelled: .doNotRetry
      ) { completion in
        if isOpen {
          additions.withLock { $0.value.retryAnswer = { [weak completion] in completion?(.retry) } }
        }
        guard let owner = session.owner else { return completion(.doNotRetry) }
        retrier.retry(self, for: owner, dueTo: error) { completion($0) }
      }
      if case .doNotRetry = answer { continue }
      return answer
    }
    return .doNotRetry
  }
}
