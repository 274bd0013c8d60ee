import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A response that may be stored, if whoever watches the request lets it.
struct CacheCandidate: Sendable {
  /// Under what it is stored.
  let key: CacheKey
  let request: WireRequest
  let head: ResponseHead
  let body: Data
  let requestTime: Int64
  let responseTime: Int64
  /// How much had been removed from the cache when the request was sent.
  let removalCount: UInt64
}

extension Pipeline {
  /// Takes from a response what the cache has to know: it is stored, or makes something else invalid.
  @inline(never)
  nonisolated(nonsending) func learn(from response: WireResponse, _ journey: Journey) async {
    guard let store = core.session.caching.store else { return }
    let now = store.now
    let key = core.session.caching.key(of: journey.sent)
    let offer = CacheCandidate(
      key: key, request: journey.sent, head: response.head,
      body: response.body ?? (journey.sent.sink as? ObservedBody)?.data ?? Data(),
      requestTime: response.requestTime(now), responseTime: now, removalCount: journey.removalCount)
    // Who has come since, and decides, could not be asked any more: then nothing is stored.
    let asks = journey.isWatched || core.decidesAboutStoring
    let session = core.session
    let isKept: Bool
    // Not yet opened, or to be read from files: not on the engine's thread.
    if store.waits || store.find(key) == nil {
      isKept = await offLoop { session.take(offer, asks: asks) }
    } else {
      isKept = session.take(offer, asks: asks)
    }
    if isKept, journey.isWatched { core.state.withLock { $0.extras.cacheCandidates.append(offer) } }
  }

  /// Stores what came on the way to an exchange, as far as the delegate and the handlers let it.
  nonisolated(nonsending) func storeWhatIsOffered(_ exchange: Exchange) async {
    let offers = core.state.withLock { state in
      defer { if state.hasExtras { state.extras.cacheCandidates = [] } }
      return state.extras.cacheCandidates
    }
    for offer in offers { await store(offer, exchange) }
  }

  nonisolated(nonsending) private func store(_ offer: CacheCandidate, _ exchange: Exchange) async {
    guard let task = core.tasks(of: request).last as? URLSessionDataTask,
      let response = exchange.hops.last?.request === offer.request
        ? exchange.httpResponse : Exchange(url: URL(string: offer.request.url), head: offer.head).httpResponse
    else { return }
    let proposed = CachedURLResponse(response: response, data: offer.body)
    let session = core.session
    await offLoop {
      let answer = await SingleCompletion.answer(whenForgotten: proposed, whenCancelled: nil) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(facade, dataTask: task, willCacheResponse: proposed) { completion($0) }
        }
      }
      // The head as it came, unless somebody has made another one.
      session.keep(answer, as: offer, head: answer?.response === response ? offer.head : nil)
    }
  }
}

extension Journey {
  /// Whether the cache has to know of a response. Of one that could never be used again it has not, unless somebody
  /// decides about storing, or wants it whatever its age.
  @inline(never)
  func concernsCache(_ response: WireResponse) -> Bool {
    let caching = core.session.caching
    guard caching.isThere, hopHandler.isEngine, response.head.role == .hop else { return false }
    // Also where nothing is stored: the answer to an earlier request may be on its way.
    guard Invalidation.isSafe(request.method) else { return (200..<400).contains(response.head.status) }
    guard isStoredInCache else { return false }
    // A response that may not be stored concerns the cache only for the sake of what is stored already.
    if request.method == "GET", wantsStored(response),
      StorageRules.mayStore(method: request.method, fields: sent.fields, head: response.head)
    {
      return true
    }
    return caching.mayHold(request) && !request.forbidsStoring
  }

  /// Whether a response could be used again: it says how long it is good, or how to validate it, or the user says that
  /// any will do.
  private func wantsStored(_ response: WireResponse) -> Bool {
    if response.head.block.marks.contains(.reusable) || core.decidesAboutStoring { return true }
    return switch core.session.caching.policy(of: urlRequest) {
    case .returnCacheDataElseLoad, .returnCacheDataDontLoad: true
    case .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData,
      .reloadRevalidatingCacheData:
      false
    @unknown default: false
    }
  }
}

extension RequestCore {
  /// Whether somebody is there to decide about storing.
  var decidesAboutStoring: Bool {
    session.watching.decidesAboutStoring
      || (has(.events)
        && state.withLock { $0.extras.cachedResponseHandler != nil })
  }
}

extension SessionCore {
  /// Does with a response what HTTP says. Returns whether it is to be stored once somebody has been asked.
  func take(_ offer: CacheCandidate, asks: Bool) -> Bool {
    guard let store = caching.store else { return false }
    let (request, key) = (offer.request, offer.key)
    guard Invalidation.isSafe(request.method) else {
      let named = Invalidation.keys(
        method: request.method, url: request.url, origin: request.origin, head: offer.head)
      for key in named.flatMap({ caching.keys(of: $0, for: request.profile) }) { store.remove(key) }
      return false
    }
    if request.method == "HEAD" || offer.head.status == 304 {
      update(key, by: offer)
      return false
    }
    if StorageRules.mayStore(method: request.method, fields: request.fields, head: offer.head) {
      // A part is combined with others, which delegates and handlers do not expect.
      if offer.head.status == 206 { return asks ? false : keepPart(offer) }
      if !asks { keep(offer) }
      return asks
    }
    // What is stored is older than this, which may not be. An answer to a range says nothing of the whole.
    let replaces = (200..<300).contains(offer.head.status) && !request.fields.contains("Range")
    if replaces || offer.head.status == 404 || offer.head.status == 410 { store.remove(key) }
    return false
  }

  /// A HEAD, or the answer to a condition that the user himself made (RFC 9111 §4.3.4, §4.3.5).
  private func update(_ key: CacheKey, by offer: CacheCandidate) {
    guard let store = caching.store,
      let stored = CacheDecision.choice(of: store.read(key), for: FieldDigests(of: offer.request.fields))
    else { return }
    if offer.head.status == 304 {
      guard offer.head.block.contains("ETag") || offer.head.block.contains("Last-Modified"),
        Validation.confirms(offer.head, stored)
      else { return }
      store.putConfirmed(
        Validation.freshened(
          stored, by: offer.head, fields: FieldDigests(of: offer.request.fields),
          requestTime: offer.requestTime,
          responseTime: offer.responseTime), askedAfter: offer.removalCount)
    } else if offer.head.status < 500 {
      let updated = Validation.updated(
        stored, byHead: offer.head, fields: FieldDigests(of: offer.request.fields),
        requestTime: offer.requestTime,
        responseTime: offer.responseTime)
      guard let updated else { return store.remove(key) }
      store.putConfirmed(updated, askedAfter: offer.removalCount)
    }
  }

  private func keep(_ offer: CacheCandidate) {
    caching.store?.put(offer.stored, askedAfter: offer.removalCount)
  }

  /// Stores a part, with what is stored of the same version (RFC 9111 §3.4). Returns false.
  private func keepPart(_ offer: CacheCandidate) -> Bool {
    guard let store = caching.store,
      let stored = PartialContent.combined(offer.stored, with: store.read(offer.key))
    else { return false }
    store.put(stored, askedAfter: offer.removalCount)
    return false
  }

  /// Stores what somebody made of an offer; `nil` is nothing, and then nothing older stays either.
  func keep(_ answer: CachedURLResponse?, as offer: CacheCandidate, head: ResponseHead?) {
    let key = offer.key
    let stored = answer.flatMap { answer in
      StoredResponse(
        answer, key: key, fields: offer.request.fields, head: head, requestTime: offer.requestTime,
        responseTime: offer.responseTime, staysInMemory: !offer.request.profile.isUsual)
    }
    if let stored {
      caching.store?.put(stored, askedAfter: offer.removalCount)
    } else {
      caching.store?.remove(key)
    }
  }

  /// Asks for a response again after it has been the answer (RFC 5861 §3): once at a time, and no request waits for it.
  ///
  /// - Parameter takeCookies: Hears the head.
  func refresh(
    _ stored: StoredResponse, by request: WireRequest, _ conditions: [HTTPHeader],
    takeCookies: @escaping @Sendable (ResponseHead) -> Void
  ) {
    guard let store = caching.store, caching.beginRefreshing(stored.key) else { return }
    let removalCount = store.removalCount
    let run: @Sendable () async -> Void = { [self] in
      defer { caching.endRefreshing(stored.key) }
      // Into memory: the sink of the request takes the answer.
      let again = request.collecting(adding: conditions)
      guard let response = try? await transport.send(again, observer: SilentObserver(takeCookies)) else {
        return
      }
      let now = store.now
      // What it may stand in for does not take its place either (RFC 5861 §4).
      guard !CacheDecision.mayServeInstead(stored, of: response.head.status, fields: request.fields, now: now)
      else { return }
      let offer = CacheCandidate(
        key: stored.key, request: request, head: response.head, body: response.body ?? Data(),
        requestTime: response.requestTime(now), responseTime: now, removalCount: removalCount)
      await withTaskExecutorPreference(globalConcurrentExecutor) {
        take(offer, refreshing: stored, isConditional: !conditions.isEmpty)
      }
    }
    Task(executorPreference: executor, operation: run)
  }

  private func take(_ offer: CacheCandidate, refreshing stored: StoredResponse, isConditional: Bool) {
    guard offer.head.status == 304, isConditional else {
      _ = take(offer, asks: false)
      return
    }
    guard Validation.confirms(offer.head, stored) else {
      caching.store?.remove(stored.key)
      return
    }
    caching.store?.putConfirmed(
      Validation.freshened(
        stored, by: offer.head, fields: FieldDigests(of: offer.request.fields),
        requestTime: offer.requestTime,
        responseTime: offer.responseTime), askedAfter: offer.removalCount)
  }
}

extension CacheCandidate {
  /// The response as it is stored.
  fileprivate var stored: StoredResponse {
    StoredResponse(
      key: key, fields: FieldDigests(of: request.fields), head: head, body: body, requestTime: requestTime,
      responseTime: responseTime, staysInMemory: !request.profile.isUsual)
  }
}
