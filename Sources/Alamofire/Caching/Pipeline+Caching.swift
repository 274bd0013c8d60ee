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
      method: journey.sent.method, fields: fields, policy: policy, mayRefresh: !core.decidesAboutStoring)
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
      // Of what it could not give anyhow, it need not ask.
      guard answer(stored) != nil else { break }
      if let response = try await validated(stored, conditions, journey) { return response }
      if let store = caching.store { await offLoop { store.remove(stored.key) } }
    case .unavailable: throw .notInCache
    case .gatewayTimeout: return try await played(.gatewayTimeout, journey)
    }
    return try await loaded(journey)
  }

  nonisolated(nonsending) private func stored(_ key: CacheKey) async -> [StoredResponse] {
    guard let store = core.session.caching.store else { return [] }
    if let found = store.find(key) { return found }
    return await offLoop { store.read(key) }
  }

  nonisolated(nonsending) private func loaded(_ journey: Journey) async throws(TransportFailure)
    -> WireResponse
  {
    let response = try await journey.transport.send(journey.sent, observer: core)
    journey.passed(response.metrics, response.head)
    if journey.concernsCache(response) { await learn(from: response, journey) }
    return response
  }

  nonisolated(nonsending) private func played(
    _ answer: StoredAnswer, _ journey: Journey
  ) async throws(TransportFailure) -> WireResponse {
    let response = try await StoredTransport(answer: answer).send(
      journey.sent, observer: StoredAnswerObserver(core))
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
    let request = journey.sent.collecting(fields: fields + conditions)
    let observer = ValidationObserver(core) { head in
      head.status == 304
        || CacheDecision.mayServeInstead(stored, of: head.status, fields: fields, now: before)
    }
    let response: WireResponse
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
    if response.head.status == 304 {
      guard Validation.confirms(response.head, stored) else { return nil }
      let now = store.now
      let fresh = Validation.freshened(
        stored, by: response.head, fields: fields, requestTime: response.requestTime(now), responseTime: now)
      if store.waits { await offLoop { store.putConfirmed(fresh) } } else { store.putConfirmed(fresh) }
      return try await served(fresh, journey, isConfirmed: true)
    }
    if CacheDecision.mayServeInstead(stored, of: response.head.status, fields: fields, now: before) {
      return try await served(stored, journey, isConfirmed: false)
    }
    if journey.concernsCache(response) { await learn(from: response, journey) }
    return response
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
  /// Whether responses to this hop can come from the cache, or go there.
  var isAnsweredFromCache: Bool {
    // What a connection is authenticated with stands in no field that would tell answers apart.
    core.session.caching.isThere && carrier.isEngine && !core.hasBodySink && !request.body.isPresent
      && request.login == nil
      && (request.method == "GET" || request.method == "HEAD")
  }

  /// What the hop wants of the cache, when it has to be asked; `nil` sends the hop at once. Looks into memory, and
  /// allocates nothing.
  @inline(never)
  func cachePolicy() -> CacheDecision.Policy? {
    guard carrier.isEngine else { return nil }
    let caching = core.session.caching
    switch caching.policy(of: urlRequest) {
    case .useProtocolCachePolicy:
      return isAnsweredFromCache && (mayBeStored || asksForStoredOnly) ? .rules : nil
    case .reloadIgnoringLocalCacheData: return nil
    case .reloadIgnoringLocalAndRemoteCacheData:
      passOverAllCaches()
      return nil
    case .returnCacheDataElseLoad: return isAnsweredFromCache && mayBeStored ? .storedElseLoad : nil
    case .returnCacheDataDontLoad: return .storedOnly
    case .reloadRevalidatingCacheData: return isAnsweredFromCache && mayBeStored ? .revalidate : nil
    @unknown default: return isAnsweredFromCache ? .rules : nil
    }
  }

  private var mayBeStored: Bool { core.session.caching.mayHold(request) }

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
    guard !request.fields.contains("Cache-Control") else { return }
    request = request.with(
      fields: request.fields + [
        HTTPHeader(name: "Cache-Control", value: "no-cache"), HTTPHeader(name: "Pragma", value: "no-cache"),
      ])
  }

  /// Who sends the hop.
  var transport: any Transport {
    var transport = carrier.transport(of: core.session)
    if request.profile.remembersHosts, carrier.isEngine {
      transport = RememberingTransport(session: core.session, transport: transport)
    }
    return isShared ? SharedTransport(session: core.session, transport: transport) : transport
  }

  /// Who sends the hop when that takes no task; `nil` when it does.
  var directTransport: (any DirectTransport)? {
    carrier.isEngine && !request.profile.remembersHosts && !isShared ? core.session.directTransport : nil
  }

  private var isShared: Bool {
    request.profile.options.sharesIdenticalRequests && carrier.isEngine && request.method == "GET"
      && request.sink == nil && !request.body.isPresent && request.login == nil
  }
}

extension TransportFailure {
  fileprivate static var notInCache: TransportFailure {
    TransportFailure(
      .resourceUnavailable,
      "The request may only be answered from the cache, which has no response for it. Downloads and streams are "
        + "never answered from there.")
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
