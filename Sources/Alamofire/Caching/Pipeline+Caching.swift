import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Stage 3 of each hop, between challenges and the transport. A request for which nothing is stored does not come
// here: it is sent, and its response looked at once (`concernsCache`).
extension Pipeline {
  /// Answers a hop from the cache as far as HTTP (RFC 9111) and the policy allow, else sends it.
  nonisolated(nonsending) func throughCache(
    _ journey: Journey, _ policy: CacheDecision.Policy
  ) async throws(TransportFailure) -> WireResponse {
    let caching = core.session.caching
    let stored = journey.isAnsweredFromCache ? await stored(caching.key(of: journey.sent)) : []
    let now = caching.store?.now ?? 0
    let fields = journey.sent.fields
    let question = CacheDecision.Question(
      method: journey.sent.method, fields: FieldDigests(of: fields), policy: policy,
      mayRefresh: !core.decidesAboutStoring && !core.hasBodySink)
    func answer(_ stored: StoredResponse) -> StoredAnswer? {
      journey.allowed(
        StoredAnswer(of: stored, method: question.method, fields: fields, isConfirmed: false, now: now))
    }
    switch CacheDecision.decide(question, stored: stored, now: now) {
    case .send: break
    case .serve(let stored):
      if let answer = answer(stored) { return try await played(answer, journey) }
      if policy == .storedOnly { throw .notInCache }
    case .serveAndRefresh(let stored, let conditions):
      if let answer = answer(stored) {
        core.session.refresh(stored, by: journey.sent, conditions, takeCookies: journey.cookieTaker)
        return try await played(answer, journey)
      }
    case .validate(let stored, let conditions):
      // Of what it could not give anyhow, it need not ask; and what goes into a file or a stream is not held back until
      // the server has confirmed it.
      guard !core.hasBodySink, answer(stored) != nil else { break }
      if policy == .revalidate { journey.asksCachesToRevalidate() }
      if let response = try await validated(stored, conditions, journey) { return response }
      if let store = caching.store { await offLoop { store.remove(stored.key) } }
    case .validateVariants(let variants, let conditions):
      guard !core.hasBodySink else { break }
      if policy == .revalidate { journey.asksCachesToRevalidate() }
      if let response = try await validated(variants, conditions, journey) { return response }
    case .unavailable: throw .notInCache
    case .gatewayTimeout: return try await played(.gatewayTimeout, journey)
    }
    if policy == .revalidate { journey.asksCachesToRevalidate() }
    return try await loaded(journey)
  }

  nonisolated(nonsending) private func stored(_ key: CacheKey) async -> [StoredResponse] {
    guard let store = core.session.caching.store else { return [] }
    let found = if let found = store.find(key) { found } else { await offLoop { store.read(key) } }
    // A file or a stream gets complete content, and nothing else.
    return core.hasBodySink ? found.filter { $0.head.status == 200 } : found
  }

  nonisolated(nonsending) private func loaded(_ journey: Journey) async throws(TransportFailure)
    -> WireResponse
  {
    journey.notesRemovals()
    let response = try await journey.transport.send(journey.sent, observer: core)
    journey.passed(response.metrics, response.head)
    if journey.concernsCache(response) { await learn(from: response, journey) }
    return response
  }

  nonisolated(nonsending) private func played(
    _ answer: StoredAnswer, _ journey: Journey
  ) async throws(TransportFailure) -> WireResponse {
    let transport = StoredTransport(answer: answer, sink: core.hasBodySink ? journey.sent.sink : nil)
    let response = try await transport.send(journey.sent, observer: StoredAnswerObserver(core))
    journey.passed(response.metrics, response.head, from: .localCache)
    return response
  }

  /// Asks the server whether what is stored is still good (RFC 9111 §4.3). `nil` when it confirms something else,
  /// and has to be asked without condition.
  nonisolated(nonsending) private func validated(
    _ stored: StoredResponse, _ conditions: [HTTPHeader], _ journey: Journey
  ) async throws(TransportFailure) -> WireResponse? {
    guard let store = core.session.caching.store else { return nil }
    let fields = journey.sent.fields
    let before = store.now
    // Whoever watches is shown the body at the end: only then is it known to be the user's.
    let request = journey.sent.collecting(adding: conditions)
    // A server that is not asked under a condition has no reason for a 304, which is shown as it is.
    let isConditional = !conditions.isEmpty
    let observer = ValidationObserver(core) { head in
      head.status == 304 && isConditional
        || CacheDecision.mayServeInstead(stored, of: head.status, fields: fields, now: before)
    }
    let response: WireResponse
    journey.notesRemovals()
    do {
      response = try await journey.transport.send(request, observer: observer)
    } catch {
      // Who may have seen the head of what broke off gets no other one.
      guard error.kind.isOutage, !observer.hasShownHead,
        CacheDecision.mayServeInstead(stored, of: nil, fields: fields, now: store.now)
      else { throw error }
      if let metrics = error.metrics { journey.passed(metrics, nil, as: request) }
      return try await served(stored, journey, isConfirmed: false)
    }
    journey.passed(response.metrics, response.head, as: request)
    if response.head.status == 304, isConditional {
      guard Validation.confirms(response.head, stored) else { return nil }
      return try await confirmed(stored, by: response, journey, in: store)
    }
    if CacheDecision.mayServeInstead(stored, of: response.head.status, fields: fields, now: before) {
      return try await served(stored, journey, isConfirmed: false)
    }
    if journey.concernsCache(response) { await learn(from: response, journey) }
    return response
  }

  /// Offers the server what is stored for other fields (RFC 9111 §4.3.1). `nil` when its 304 names none of that, and it
  /// has to be asked without condition.
  nonisolated(nonsending) private func validated(
    _ variants: [StoredResponse], _ conditions: [HTTPHeader], _ journey: Journey
  ) async throws(TransportFailure) -> WireResponse? {
    guard let store = core.session.caching.store else { return nil }
    let request = journey.sent.collecting(adding: conditions)
    let observer = ValidationObserver(core) { $0.status == 304 }
    journey.notesRemovals()
    let response = try await journey.transport.send(request, observer: observer)
    journey.passed(response.metrics, response.head, as: request)
    if response.head.status == 304 {
      guard let stored = Validation.variant(of: variants, confirmedBy: response.head) else { return nil }
      return try await confirmed(stored, by: response, journey, in: store)
    }
    if journey.concernsCache(response) { await learn(from: response, journey) }
    return response
  }

  /// Stores what a 304 has confirmed, for the fields of this request, and answers with it.
  nonisolated(nonsending) private func confirmed(
    _ stored: StoredResponse, by response: WireResponse, _ journey: Journey, in store: any ResponseStore
  ) async throws(TransportFailure) -> WireResponse? {
    let now = store.now
    let fresh = Validation.freshened(
      stored, by: response.head, fields: FieldDigests(of: journey.sent.fields),
      requestTime: response.requestTime(now),
      responseTime: now)
    let count = journey.removalCount
    if store.waits {
      await offLoop { store.putConfirmed(fresh, askedAfter: count) }
    } else {
      store.putConfirmed(fresh, askedAfter: count)
    }
    return try await served(fresh, journey, isConfirmed: true)
  }

  nonisolated(nonsending) private func served(
    _ stored: StoredResponse, _ journey: Journey, isConfirmed: Bool
  ) async throws(TransportFailure) -> WireResponse? {
    guard
      let answer = journey.allowed(
        StoredAnswer(
          of: stored, method: journey.sent.method, fields: journey.sent.fields,
          isConfirmed: isConfirmed, now: core.session.caching.store?.now ?? 0))
    else { return nil }
    core.state.withLock { $0.extras.progress.isIntermediate = false }
    return try await played(answer, journey)
  }
}

extension Journey {
  /// Whether responses to this hop can come from the cache. Those of downloads and streams can when they are for the
  /// whole: what was begun by an earlier download is gone on with by the server.
  var isAnsweredFromCache: Bool {
    // What a connection is authenticated with stands in no field that would tell answers apart.
    guard core.session.caching.isThere, hopHandler.isEngine, !request.body.isPresent, request.login == nil
    else {
      return false
    }
    // Stored bodies are decoded ones.
    guard request.profile.options.decodesContent else { return false }
    if core.hasBodySink { return request.method == "GET" && !request.fields.contains("Range") }
    return request.method == "GET" || request.method == "HEAD"
  }

  /// Whether the response to this hop can go to the cache, or change what is there.
  var isStoredInCache: Bool { isAnsweredFromCache && !core.hasBodySink }

  /// The hop is sent now; what is removed later may have been read by the server before.
  func notesRemovals() {
    if let store = core.session.caching.store { removalCount = store.removalCount }
  }

  /// What the hop wants of the cache, when it has to be asked; `nil` sends the hop at once. Looks into memory, and
  /// allocates nothing for a request without `Cache-Control`.
  @inline(never)
  func cachePolicy() -> CacheDecision.Policy? {
    guard hopHandler.isEngine else { return nil }
    switch core.session.caching.policy(of: urlRequest) {
    case .useProtocolCachePolicy:
      return isAnsweredFromCache && (mayBeAnswered || asksForStoredOnly) ? .rules : nil
    case .reloadIgnoringLocalCacheData: return nil
    case .reloadIgnoringLocalAndRemoteCacheData:
      passOverAllCaches()
      return nil
    case .returnCacheDataElseLoad: return isAnsweredFromCache && mayBeAnswered ? .storedElseLoad : nil
    case .returnCacheDataDontLoad: return .storedOnly
    case .reloadRevalidatingCacheData:
      if isAnsweredFromCache, mayBeAnswered { return .revalidate }
      asksCachesToRevalidate()
      return nil
    @unknown default: return isAnsweredFromCache ? .rules : nil
    }
  }

  /// Whether a stored response may be used: `no-store` passes the cache by, so that nothing is looked up.
  private var mayBeAnswered: Bool { core.session.caching.mayHold(request) && !request.forbidsStoring }

  /// An answer that is stored, unless it is larger than the options of this request allow: then the server's own
  /// is refused as well.
  func allowed(_ answer: StoredAnswer?) -> StoredAnswer? {
    guard let answer, let limit = request.profile.options.bodySizeLimit, Int64(answer.body.count) > limit
    else { return answer }
    return nil
  }

  /// `only-if-cached`, which has an answer also where nothing is stored.
  private var asksForStoredOnly: Bool {
    request.fields.contains("Cache-Control") && CacheControl(request: request.fields).onlyIfCached
  }

  /// Caches on the way are told to pass the request on (RFC 9111 §5.2.1.4).
  private func passOverAllCaches() {
    add([HTTPHeader(name: "Cache-Control", value: "no-cache"), HTTPHeader(name: "Pragma", value: "no-cache")])
  }

  /// Caches on the way are told to answer with nothing that the origin has not confirmed (RFC 9111 §5.2.1.1).
  func asksCachesToRevalidate() { add([HTTPHeader(name: "Cache-Control", value: "max-age=0")]) }

  /// Adds directives for caches, unless the user has some.
  private func add(_ directives: [HTTPHeader]) {
    guard !request.fields.contains("Cache-Control") else { return }
    request = request.changing { $0.fields += directives }
    outgoing = outgoing?.changing { $0.fields += directives }
  }

  /// Who sends the hop.
  var transport: any Transport {
    var transport = hopHandler.transport(of: core.session)
    if request.profile.hasHostPolicies, hopHandler.isEngine {
      transport = HostPolicyTransport(session: core.session, transport: transport)
    }
    return isShared ? SharedTransport(session: core.session, transport: transport) : transport
  }

  /// Whether the engine itself sends the hop, which needs no task.
  var needsNoTask: Bool { hopHandler.isEngine && !request.profile.hasHostPolicies && !isShared }

  private var isShared: Bool {
    request.profile.options.sharesIdenticalRequests && hopHandler.isEngine && request.method == "GET"
      && request.sink == nil && !request.body.isPresent && request.login == nil
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

extension TransportFailure.Kind {
  /// Whether the server could not be reached, or failed: what RFC 5861 §4 calls an error.
  fileprivate var isOutage: Bool {
    switch self {
    case .timedOut, .cannotFindHost, .cannotFindProxy, .cannotConnectToHost, .notConnected, .connectionLost,
      .badServerResponse:
      true
    default: false
    }
  }
}

extension WireResponse {
  /// When its request was sent, by the clock of the cache, which says `now` when it has come.
  func requestTime(_ now: Int64) -> Int64 {
    let counted = now - metrics.values.latest / 1_000_000
    // What took a part of a second may have begun in the one before: the difference to a removal in between.
    return Int64(exactly: metrics.values.start.rounded(.down)) == counted - 1 ? counted - 1 : counted
  }
}

extension WireRequest {
  /// `no-store`: neither the request nor its response leaves a trace here (RFC 9111 §5.2.1.5).
  var forbidsStoring: Bool {
    fields.contains("Cache-Control") && CacheControl(fields.joinedValue(of: "Cache-Control")).noStore
  }
}
