import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// The state of the cache's part in a hop.
struct HopCache: Sendable {
  /// The source of the response of the hop.
  enum ResponseSource: Sendable {
    case server
    /// A stored response that no server has confirmed.
    case stored
    /// A stored response that the 304 with this head has confirmed.
    case confirmed(by: ResponseHead)

    /// Returns the head that the server sent for the response of the hop; `nil` if it sent none.
    ///
    /// - Parameter response: The head of the response, which may have fields of earlier ones if it was stored.
    func sentHead(_ response: ResponseHead) -> ResponseHead? {
      switch self {
      case .server: response
      case .stored: nil
      case .confirmed(let head): head
      }
    }
  }

  /// The policy of the caller's request, which is read once for each hop.
  var requested = URLRequest.CachePolicy.useProtocolCachePolicy
  /// Whether a stored response can answer the hop, which is decided once for each hop.
  var mayAnswer = false
  var policy: CacheDecision.Policy?
  /// The number of removals from the cache at the time when the hop was sent.
  var removalCount: UInt64 = 0
  /// The stored response that answers the hop.
  var answer: StoredAnswer?
  var source = ResponseSource.server
  var revalidation: Revalidation?
  /// Whether observers know the task of the attempt, so that they can be asked about storing.
  var taskIsAnnounced = false
}

// The cache (RFC 9111) answers a hop as far as its rules and the policy of the request allow.
extension HopLoop {
  /// Decides from memory whether the cache has to be asked. Allocates nothing for a request without `Cache-Control`.
  mutating func applyCachePolicy() -> CacheVerdict {
    caching.source = .server
    caching.mayAnswer = isAnsweredFromCache
    caching.policy = policy()
    return caching.policy == nil ? .none : .lookUp
  }

  private mutating func policy() -> CacheDecision.Policy? {
    guard route.handler.isEngine else { return nil }
    let policy = services.cache.policy(of: urlRequest)
    caching.requested = policy
    if policy == .returnCacheDataDontLoad { return .storedOnly }
    let request = request
    let mayUse = caching.mayAnswer && mayUseStoredResponse(for: request)
    // It is never sent, even if no stored response can answer it.
    let isNeverSent = services.cache.isThere && request.asksForStoredOnly
    switch policy {
    case .useProtocolCachePolicy: return mayUse || isNeverSent ? .rules : nil
    case .reloadIgnoringLocalCacheData: return isNeverSent ? .reload : nil
    case .reloadIgnoringLocalAndRemoteCacheData:
      if isNeverSent { return .reload }
      bypassAllCaches()
      return nil
    case .returnCacheDataElseLoad: return mayUse || isNeverSent ? .storedElseLoad : nil
    case .returnCacheDataDontLoad: return .storedOnly
    case .reloadRevalidatingCacheData:
      if mayUse || isNeverSent { return .revalidate }
      askCachesToRevalidate()
      return nil
    @unknown default: return caching.mayAnswer || isNeverSent ? .rules : nil
    }
  }

  /// Whether a stored response can answer the hop. Downloads and streams take complete responses only, because the
  /// server continues the part of an earlier download.
  var isAnsweredFromCache: Bool {
    let request = request
    // No field tells the responses of authenticated connections apart.
    guard services.cache.isThere, route.handler.isEngine, !request.hasBody, !request.hasLogin
    else { return false }
    // The URL is the key of the cache.
    guard !request.namesOtherHost else { return false }
    // Stored bodies are decoded ones.
    guard request.decodesContent else { return false }
    if delegate.passesBodyOn { return request.isGET && !request.marks.contains(.range) }
    return request.isGET || request.isHEAD
  }

  /// Whether the cache may hold a response for the request, and the request does not forbid to use it (`no-store`).
  private func mayUseStoredResponse(for request: WireRequest) -> Bool {
    services.cache.mayHold(request) && !request.forbidsStoring
  }

  /// Tells the caches between here and the origin to forward the request (RFC 9111 §5.2.1.4).
  private mutating func bypassAllCaches() {
    add([HTTPHeader(name: "Cache-Control", value: "no-cache"), HTTPHeader(name: "Pragma", value: "no-cache")])
  }

  /// Tells the caches between here and the origin to revalidate what they store (RFC 9111 §5.2.1.1).
  private mutating func askCachesToRevalidate() {
    add([HTTPHeader(name: "Cache-Control", value: "max-age=0")])
  }

  /// Adds directives for caches, unless the caller has set some.
  private mutating func add(_ directives: [HTTPHeader]) {
    guard !request.marks.contains(.cacheControl) else { return }
    requests.add(directives)
  }

  /// Stores the number of removals at the time at which the hop is sent. The server may have read later removals before
  /// it answers.
  mutating func noteRemovals() {
    if let store = services.cache.store { caching.removalCount = store.removalCount }
  }

  // MARK: Lookup

  mutating func lookUpCache() -> Outcome<HopLoop> {
    guard caching.mayAnswer, let store = services.cache.store else { return .event(answer(from: [])) }
    let key = services.cache.key(of: outgoing)
    if let found = store.find(key) { return .event(answer(from: found)) }
    let (question, isUsable) = (cacheQuestion, usability)
    return .task {
      store.read(key) { CacheDecision.choice(of: $0.filter(isUsable), for: question) }
    } then: { hops, found in
      .event(hops.answer(from: found))
    }
  }

  /// Whether a stored response can be used: a file or a stream receives complete content only, and only the server
  /// itself can refuse a credential, be it the library's or the caller's. A head beyond the limit of the request would
  /// be refused from the server as well.
  private var usability: @Sendable (StoredResponse) -> Bool {
    let passesBodyOn = delegate.passesBodyOn
    let hasCredential = credentials.proof != nil || outgoing.authorization != nil
    let headerSizeLimit = outgoing.profile.options.headerSizeLimit
    return { stored in
      guard stored.head.block.bytes.count <= headerSizeLimit else { return false }
      return passesBodyOn ? stored.head.status == 200 : !hasCredential || stored.head.status != 401
    }
  }

  private var cacheQuestion: CacheDecision.Question {
    let request = outgoing
    return CacheDecision.Question(
      method: request.method, fields: FieldDigests(of: request.fields), policy: caching.policy ?? .rules,
      mayRefresh: !delegate.observers.contains(.storing) && !delegate.passesBodyOn)
  }

  private mutating func answer(from found: [StoredResponse]) -> StageEvent {
    let (question, request) = (cacheQuestion, outgoing)
    let policy = question.policy
    let stored = found.filter(usability)
    switch CacheDecision.decide(question, stored: stored, now: now) {
    case .send: break
    case .serve(let stored):
      if hasAnswer(stored, isConfirmed: false) { return .cache(.replay) }
      if policy == .storedOnly { return failed(.notInCache) }
    case .serveAndRefresh(let stored, let conditions):
      if hasAnswer(stored, isConfirmed: false) {
        services.cache.refresh(
          stored, by: request, conditions,
          through: RefreshTransport(transport: services.transport, trust: services.trust),
          on: services.executor, takeCookies: cookieTaker)
        return .cache(.replay)
      }
    case .validate(let stored, let conditions):
      // A response that could not be used need not be confirmed. A file or a stream receives bytes before the server
      // has confirmed them.
      guard !delegate.passesBodyOn, hasAnswer(stored, isConfirmed: false) else { break }
      return revalidate(.response(stored), conditions)
    case .validateVariants(let variants, let conditions):
      guard !delegate.passesBodyOn else { break }
      return revalidate(.variants(variants), conditions)
    case .unavailable: return failed(.notInCache)
    case .gatewayTimeout: return answerWithTimeout()
    }
    // A stored response that cannot be cut to the request is none for it.
    if request.asksForStoredOnly { return answerWithTimeout() }
    if policy == .revalidate { askCachesToRevalidate() }
    return .cache(.send)
  }

  private mutating func answerWithTimeout() -> StageEvent {
    caching.answer = .gatewayTimeout
    return .cache(.replay)
  }

  private mutating func revalidate(_ candidate: Revalidation.Candidate, _ conditions: [HTTPHeader])
    -> StageEvent
  {
    if caching.policy == .revalidate { askCachesToRevalidate() }
    caching.revalidation = Revalidation(candidate: candidate, conditions: conditions)
    return .cache(.revalidate)
  }

  /// Seconds since 1970, by the clock of the cache.
  var now: Int64 { services.cache.store?.now ?? 0 }

  /// Makes the answer that ``replay()`` gives. Returns false if the stored response cannot be used for the request, or
  /// exceeds the limit of its options. The limit then refuses the server's response as well.
  mutating func hasAnswer(_ stored: StoredResponse, isConfirmed: Bool) -> Bool {
    let request = outgoing
    let answer = StoredAnswer(
      of: stored, method: request.method, fields: request.fields, isConfirmed: isConfirmed, now: now)
    let limit = request.profile.options.bodySizeLimit
    guard let answer, limit.map({ Int64(answer.body.count) <= $0 }) ?? true else { return false }
    caching.answer = answer
    return true
  }

  mutating func replay() -> Outcome<HopLoop> {
    guard let answer = caching.answer.take() else { return .event(.cache(.send)) }
    if !answer.isConfirmed { caching.source = .stored }
    return replay(answer, of: outgoing) { hops, result in .event(hops.replayed(result)) }
  }

  /// Delivers a stored response as the transfer of a request would.
  mutating func replay(_ answer: StoredAnswer, of request: WireRequest, then: @escaping Transfer.End)
    -> Outcome<
      HopLoop
    >
  {
    let transport = StoredTransport(answer: answer, sink: delegate.passesBodyOn ? request.sink : nil)
    let observer = StoredAnswerObserver(delegate)
    return wait(for: Transfer(transport: transport, request: request, observer: observer, then: then))
  }

  private mutating func replayed(_ result: Result<WireResponse, TransportFailure>) -> StageEvent {
    switch result {
    case .success(let response):
      recordHop(response.metrics, response.head, from: .localCache)
      return responded(response, concernsCache: false)
    case .failure(let failure): return failed(failure)
    }
  }
}

extension TransportFailure {
  fileprivate static var notInCache: TransportFailure {
    TransportFailure(
      .resourceUnavailable,
      "The request may only be answered from the cache, which has no response for it. Downloads and streams can be "
        + "answered only by complete responses with status 200.")
  }
}

extension WireResponse {
  /// The head without the length of a body that was not read.
  fileprivate var headToStore: ResponseHead {
    guard isBodyDiscarded else { return head }
    let fields = head.block.fields.filter { !FieldName.equal($0.name, "Content-Length") }
    return ResponseHead(status: head.status, version: head.version, fields: fields)
  }
}

extension WireRequest {
  /// `only-if-cached`, which has an answer even without a stored response (RFC 9111 §5.2.1.7).
  fileprivate var asksForStoredOnly: Bool {
    marks.contains(.cacheControl) && CacheControl(request: fields).onlyIfCached
  }

  /// `no-store`: neither the request nor its response is stored (RFC 9111 §5.2.1.5).
  var forbidsStoring: Bool {
    marks.contains(.cacheControl) && CacheControl(fields.joinedValue(of: "Cache-Control")).noStore
  }
}

// The cache stores a response, or invalidates stored ones because of it.
extension HopLoop {
  /// Whether the cache has to see the response. A response that can never be used again need not be seen. Exceptions
  /// are an observer that decides about storing, and a policy that accepts responses of any age.
  @inline(never)
  func concernsCache(_ response: WireResponse) -> Bool {
    let cache = services.cache
    guard cache.isThere, route.handler.isEngine, response.head.role.isHop else { return false }
    let request = request
    // Even without a stored response, because the response to an earlier request may be on its way.
    guard request.isSafe else {
      return (200..<400).contains(response.head.status)
    }
    guard caching.mayAnswer, !delegate.passesBodyOn else { return false }
    // Without its body, the response to a challenge would be incomplete. A redirect is followed without one.
    if response.isBodyDiscarded, !(300..<400).contains(response.head.status) { return false }
    // A response that must not be stored still replaces stored ones.
    if canBeReused(response), request.isGET,
      StorageRules.mayStore(method: "GET", fields: outgoing.fields, head: response.head)
    {
      return true
    }
    return mayUseStoredResponse(for: request)
  }

  /// Whether the response says how long it is fresh or how to validate it, or the caller accepts any.
  private func canBeReused(_ response: WireResponse) -> Bool {
    if response.head.block.marks.contains(.reusable) || delegate.observers.contains(.storing) { return true }
    return switch caching.requested {
    case .returnCacheDataElseLoad, .returnCacheDataDontLoad: true
    case .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData,
      .reloadRevalidatingCacheData:
      false
    @unknown default: false
    }
  }

  func updateCache() -> Outcome<HopLoop> {
    guard let store = services.cache.store, let response = responses.last else { return .done }
    if !request.isSafe, services.cache.invalidate(by: outgoing, response.head) { return .done }
    let key = services.cache.key(of: outgoing)
    // A store that is not open yet, has to read files, or joins parts would block the loop's thread.
    let mayBlock = store.waits || store.find(key) == nil || response.head.status == 206
    let candidate = candidate(of: response, store, key)
    let (cache, asks) = (services.cache, asksObservers)
    guard mayBlock else {
      propose(candidate, if: cache.update(with: candidate, asksFirst: asks))
      return .done
    }
    return .task {
      cache.update(with: candidate, asksFirst: asks)
    } then: { hops, isProposed in
      hops.propose(candidate, if: isProposed)
      return .done
    }
  }

  /// Returns the work that invalidates stored responses because of the head of a response with a body that was not
  /// received completely; `nil` if there is nothing to wait for.
  func invalidation(by head: ResponseHead) -> (@Sendable () -> Void)? {
    route.handler.isEngine ? services.cache.invalidation(by: outgoing, head) : nil
  }

  /// Whether observers decide about storing. If one was added after the task was announced, the response is not stored,
  /// because it can no longer be asked.
  private var asksObservers: Bool { caching.taskIsAnnounced || delegate.observers.contains(.storing) }

  private func propose(_ candidate: CacheCandidate, if isProposed: Bool) {
    guard isProposed, caching.taskIsAnnounced else { return }
    delegate.propose(candidate)
  }

  private func candidate(of response: WireResponse, _ store: any ResponseStore, _ key: CacheKey)
    -> CacheCandidate
  {
    let now = store.now
    let request = outgoing
    return CacheCandidate(
      key: key, request: request, head: response.headToStore,
      body: response.body ?? delegate.keptBody(in: request.sink) ?? Data(),
      requestTime: response.requestTime(now), responseTime: now, removalCount: caching.removalCount)
  }
}
