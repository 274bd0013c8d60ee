import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A response that may be stored, if whoever watches the request lets it.
struct StorageOffer: Sendable {
  /// Under what it is stored.
  let key: CacheKey
  let request: WireRequest
  let head: ResponseHead
  let body: Data
  let requestTime: Int64
  let responseTime: Int64
}

extension Pipeline {
  /// Takes from a response what the cache has to know: it is stored, or makes something else invalid.
  @inline(never)
  nonisolated(nonsending) func learn(from response: WireResponse, _ journey: Journey) async {
    guard let store = core.session.caching.store else { return }
    let now = store.now
    let key = core.session.caching.key(of: journey.sent)
    let offer = StorageOffer(
      key: key, request: journey.sent, head: response.head,
      body: response.body ?? (journey.sent.sink as? WatchedBody)?.data ?? Data(),
      requestTime: response.requestTime(now), responseTime: now)
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
    if isKept, journey.isWatched { core.state.withLock { $0.extras.storageOffers.append(offer) } }
  }

  /// Stores what came on the way to an exchange, as far as the delegate and the handlers let it.
  nonisolated(nonsending) func storeWhatIsOffered(_ exchange: Exchange) async {
    let offers = core.state.withLock { state in
      defer { if state.hasExtras { state.extras.storageOffers = [] } }
      return state.extras.storageOffers
    }
    for offer in offers { await store(offer, exchange) }
  }

  nonisolated(nonsending) private func store(_ offer: StorageOffer, _ exchange: Exchange) async {
    guard let task = core.tasks(of: request).last as? URLSessionDataTask,
      let response = exchange.hops.last?.request === offer.request
        ? exchange.httpResponse : Exchange(url: URL(string: offer.request.url), head: offer.head).httpResponse
    else { return }
    let proposed = CachedURLResponse(response: response, data: offer.body)
    let session = core.session
    await offLoop {
      let answer = await CompletionOnce.answer(whenForgotten: proposed, whenCancelled: nil) { completion in
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
    guard caching.isThere, carrier.isEngine, response.head.role == .hop else { return false }
    // Also where nothing is stored: the answer to an earlier request may be on its way.
    guard Invalidation.isSafe(request.method) else { return (200..<400).contains(response.head.status) }
    guard isAnsweredFromCache else { return false }
    if request.method == "GET" {
      if response.head.block.marks.contains(.reusable) || core.decidesAboutStoring { return true }
      switch caching.policy(of: urlRequest) {
      case .returnCacheDataElseLoad, .returnCacheDataDontLoad: return true
      case .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData,
        .reloadRevalidatingCacheData:
        break
      @unknown default: break
      }
    }
    return caching.mayHold(request)
  }
}

extension RequestCore {
  /// Whether somebody is there to decide about storing.
  var decidesAboutStoring: Bool {
    session.watching.decidesAboutStoring
      || (isWatchedItself.load(ordering: .relaxed)
        && state.withLock { $0.extras.cachedResponseHandler != nil })
  }
}

extension SessionCore {
  /// Does with a response what HTTP says. Returns whether it is to be stored once somebody has been asked.
  func take(_ offer: StorageOffer, asks: Bool) -> Bool {
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
      if !asks { keep(offer) }
      return asks
    }
    // What is stored is older than this, which may not be.
    let replaces = (200..<300).contains(offer.head.status) && offer.head.status != 206
    if replaces || offer.head.status == 404 || offer.head.status == 410 { store.remove(key) }
    return false
  }

  /// A HEAD, or the answer to a condition that the user himself made (RFC 9111 §4.3.4, §4.3.5).
  private func update(_ key: CacheKey, by offer: StorageOffer) {
    guard let store = caching.store,
      let stored = CacheDecision.choice(of: store.read(key), for: offer.request.fields)
    else { return }
    if offer.head.status == 304 {
      guard offer.head.block.contains("ETag") || offer.head.block.contains("Last-Modified"),
        Validation.confirms(offer.head, stored)
      else { return }
      store.putConfirmed(
        Validation.freshened(
          stored, by: offer.head, fields: offer.request.fields, requestTime: offer.requestTime,
          responseTime: offer.responseTime))
    } else if offer.head.status < 500 {
      let updated = Validation.updated(
        stored, byHead: offer.head, fields: offer.request.fields, requestTime: offer.requestTime,
        responseTime: offer.responseTime)
      if let updated { store.putConfirmed(updated) } else { store.remove(key) }
    }
  }

  private func keep(_ offer: StorageOffer) {
    caching.store?.put(
      StoredResponse(
        key: offer.key, fields: offer.request.fields, head: offer.head, body: offer.body,
        requestTime: offer.requestTime, responseTime: offer.responseTime,
        staysInMemory: !offer.request.profile.isUsual))
  }

  /// Stores what somebody made of an offer; `nil` is nothing, and then nothing older stays either.
  func keep(_ answer: CachedURLResponse?, as offer: StorageOffer, head: ResponseHead?) {
    let key = offer.key
    let stored = answer.flatMap { answer in
      StoredResponse(
        answer, key: key, fields: offer.request.fields, head: head, requestTime: offer.requestTime,
        responseTime: offer.responseTime, staysInMemory: !offer.request.profile.isUsual)
    }
    if let stored { caching.store?.put(stored) } else { caching.store?.remove(key) }
  }

  /// Validates a response after it has been the answer (RFC 5861 §3): once at a time, and nobody waits for it.
  ///
  /// - Parameter takeCookies: Hears the head.
  func refresh(
    _ stored: StoredResponse, by request: WireRequest, _ conditions: [HTTPHeader],
    takeCookies: @escaping @Sendable (ResponseHead) -> Void
  ) {
    guard caching.beginRefreshing(stored.key) else { return }
    let run: @Sendable () async -> Void = { [self] in
      defer { caching.endRefreshing(stored.key) }
      let conditional = request.with(fields: request.fields + conditions)
      let observer = SilentObserver(takeCookies)
      guard let response = try? await transport.send(conditional, observer: observer),
        let store = caching.store
      else { return }
      let now = store.now
      // What it may stand in for does not take its place either (RFC 5861 §4).
      guard !CacheDecision.mayServeInstead(stored, of: response.head.status, fields: request.fields, now: now)
      else { return }
      let offer = StorageOffer(
        key: stored.key, request: request, head: response.head, body: response.body ?? Data(),
        requestTime: response.requestTime(now), responseTime: now)
      await withTaskExecutorPreference(globalConcurrentExecutor) {
        guard response.head.status == 304 else {
          _ = take(offer, asks: false)
          return
        }
        if Validation.confirms(response.head, stored) {
          store.putConfirmed(
            Validation.freshened(
              stored, by: response.head, fields: request.fields, requestTime: offer.requestTime,
              responseTime: now))
        } else {
          store.remove(stored.key)
        }
      }
    }
    Task(executorPreference: executor, operation: run)
  }
}
