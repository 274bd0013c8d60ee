import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The cache stores a response, or invalidates stored ones because of it.
extension AttemptDriver {
  /// Whether the cache has to see the response. A response that can never be used again need not be seen, unless an
  /// observer decides about storing or the policy of the request takes responses of any age.
  @inline(never)
  func concernsCache(_ response: WireResponse) -> Bool {
    let cache = core.session.cache
    guard cache.isThere, values.handler.isEngine, response.head.role == .hop else { return false }
    // Also if nothing is stored, because the response to an earlier request may be on its way.
    guard Invalidation.isSafe(values.request.method) else {
      return (200..<400).contains(response.head.status)
    }
    guard isAnsweredFromCache, !core.hasBodySink else { return false }
    // A response that must not be stored still replaces stored ones.
    if values.request.method == "GET", canBeReused(response),
      StorageRules.mayStore(method: "GET", fields: values.outgoing.fields, head: response.head)
    {
      return true
    }
    return mayUseStoredResponse
  }

  /// Whether the response says how long it is fresh or how to validate it, or the caller accepts any.
  private func canBeReused(_ response: WireResponse) -> Bool {
    if response.head.block.marks.contains(.reusable) || core.observers.contains(.storing) { return true }
    return switch core.session.cache.policy(of: values.urlRequest) {
    case .returnCacheDataElseLoad, .returnCacheDataDontLoad: true
    case .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData,
      .reloadRevalidatingCacheData:
      false
    @unknown default: false
    }
  }

  func updateCacheAtOnce() -> AttemptEvent? {
    guard let store = core.session.cache.store else { return .done }
    // A store that is not open yet, or has to read files, would block the loop's thread.
    guard !store.waits, store.find(core.session.cache.key(of: values.outgoing)) != nil else { return nil }
    guard let candidate = cacheCandidate(store) else { return .done }
    propose(candidate, if: core.session.cache.update(with: candidate, asksFirst: asksObservers))
    return .done
  }

  @inline(never)
  nonisolated(nonsending) func updateCache() async -> AttemptEvent {
    guard let store = core.session.cache.store, let candidate = cacheCandidate(store) else { return .done }
    let (session, asks) = (core.session, asksObservers)
    propose(
      candidate, if: await session.offLoop { session.cache.update(with: candidate, asksFirst: asks) })
    return .done
  }

  /// Whether observers decide about storing. If one was added after the task was announced, nothing is stored, because it
  /// can no longer be asked.
  private var asksObservers: Bool { attempt.taskIsAnnounced || core.observers.contains(.storing) }

  private func propose(_ candidate: CacheCandidate, if isProposed: Bool) {
    guard isProposed, attempt.taskIsAnnounced else { return }
    core.state.withLock { $0.extras.cacheCandidates.append(candidate) }
  }

  private func cacheCandidate(_ store: any ResponseStore) -> CacheCandidate? {
    guard let response = values.response else { return nil }
    let now = store.now
    let request = values.outgoing
    return CacheCandidate(
      key: core.session.cache.key(of: request), request: request, head: response.head,
      body: response.body ?? (request.sink as? ObservedBody)?.data ?? Data(),
      requestTime: response.requestTime(now), responseTime: now, removalCount: values.removalCount)
  }

  /// Stores the responses of the attempt, as far as the delegate and the handlers allow.
  nonisolated(nonsending) func storeCandidates(_ exchange: Exchange) async {
    let candidates = core.state.withLock { state in
      defer { if state.hasExtras { state.extras.cacheCandidates = [] } }
      return state.extras.cacheCandidates
    }
    for candidate in candidates { await store(candidate, exchange) }
  }

  nonisolated(nonsending) private func store(_ candidate: CacheCandidate, _ exchange: Exchange) async {
    guard let task = core.tasks(of: request).last as? URLSessionDataTask,
      let response = exchange.hops.last?.request === candidate.request
        ? exchange.httpResponse
        : Exchange(url: URL(string: candidate.request.url), head: candidate.head).httpResponse
    else { return }
    let proposed = CachedURLResponse(response: response, data: candidate.body)
    let session = core.session
    await session.offLoop {
      let answer = await SingleCompletion.answer(whenForgotten: proposed, whenCancelled: nil) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(facade, dataTask: task, willCacheResponse: proposed) { completion($0) }
        }
      }
      // The head of the server, unless an observer has made another one.
      session.cache.store(answer, as: candidate, head: answer?.response === response ? candidate.head : nil)
    }
  }
}
