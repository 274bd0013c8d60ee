package import FoundationNetworking
import HTTPWire
import Synchronization

/// The cache of a session. Knows no request, delegate, task or cookie.
package final class SessionCache: Sendable {
  /// `nil` without a cache.
  package let store: (any ResponseStore)?
  /// Whether there is a cache.
  let isThere: Bool
  /// The policy of requests that have the default policy.
  private let policy: URLRequest.CachePolicy
  /// Identifies the session in the keys of responses that belong to it alone.
  private let number: UInt64
  private let refreshing = Mutex<Set<CacheKey>>([])

  private static let lastNumber = Atomic<UInt64>(0)

  package init(_ configuration: URLSessionConfiguration) {
    store = Self.store(of: configuration.urlCache)
    isThere = store != nil
    policy = configuration.requestCachePolicy
    number = Self.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  }

  private static func store(of cache: URLCache?) -> (any ResponseStore)? {
    guard let cache = inPlace(of: cache) ?? cache else { return nil }
    return cache as? HTTPCache ?? URLCacheStorage(cache: cache)
  }

  /// Returns the cache that replaces Foundation's shared one. A subclass that was set as the shared cache is used
  /// itself.
  static func inPlace(of cache: URLCache?) -> URLCache? {
    guard let cache, cache === URLCache.shared, type(of: cache) == URLCache.self else { return nil }
    return HTTPCache.default
  }

  /// Whether a response may be stored for a request. Reads memory only.
  func mayHold(_ request: WireRequest) -> Bool {
    store?.mayHold(CacheKey.hash(of: request.url, request.origin)) == true
  }

  /// The key of the responses to a request.
  func key(of request: WireRequest) -> CacheKey {
    CacheKey(request.url, request.origin, partition: partition(of: request.profile))
  }

  /// The keys of a response that `key` names: for every session, and for this session alone.
  func keys(of key: CacheKey, for profile: ConnectionProfile) -> [CacheKey] {
    guard let target = profile.isUsual ? nil : WireTarget(key.url) else { return [key] }
    return [key, CacheKey(target.url, target.origin, partition: partition(of: profile))]
  }

  private func partition(of profile: ConnectionProfile) -> String {
    profile.isUsual ? "" : "\(number).\(profile.cachePartition)"
  }

  /// Begins to revalidate a response in the background. Returns false if that is under way already.
  func beginRefreshing(_ key: CacheKey) -> Bool { refreshing.withLock { $0.insert(key).inserted } }

  func endRefreshing(_ key: CacheKey) {
    refreshing.withLock { keys in
      _ = keys.remove(key)
    }
  }

  /// A request's own policy counts when it is not the default one.
  func policy(of request: URLRequest) -> URLRequest.CachePolicy {
    request.cachePolicy == .useProtocolCachePolicy ? policy : request.cachePolicy
  }
}
