import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stores a response in the cache of the session's configuration, as far as RFC 9111 lets it, and the delegate
  /// and the handlers do. Foundation's cache knows no queries: what was asked with one is not stored.
  nonisolated(nonsending) func storeInCache(_ exchange: Exchange, _ data: Data) async {
    guard core.mayStoreResponses, let cache = core.session.configuration.urlCache, request is DataRequest,
      let head = exchange.head,
      let hop = exchange.hops.last, let response = exchange.httpResponse,
      let urlRequest = core.state.withLock({ $0.request }), urlRequest.url?.query == nil,
      urlRequest.cachePolicy != .reloadIgnoringLocalAndRemoteCacheData,
      StorageRules.mayStore(method: hop.method, fields: hop.fields, head: head),
      let task = core.tasks(of: request).last as? URLSessionDataTask
    else { return }
    let proposed = CachedURLResponse(response: response, data: data)
    let session = core.session
    let answer = await offLoop { () -> CachedURLResponse? in
      await CompletionOnce.answer(whenForgotten: proposed, whenCancelled: nil) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(facade, dataTask: task, willCacheResponse: proposed) { completion($0) }
        }
      }
    }
    if let answer { cache.storeCachedResponse(answer, for: urlRequest) }
  }
}

extension RequestCore {
  /// Whether somebody is there to decide about storing: being watched alone must not write to a disk.
  fileprivate var mayStoreResponses: Bool {
    session.hasOwnDelegate || session.cachedResponseHandler != nil
      || state.withLock { $0.cachedResponseHandler != nil }
  }
}
