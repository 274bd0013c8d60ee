package import FoundationNetworking
import HTTPWire
import Synchronization

/// What the requests of a session need of its cache.
package final class SessionCaching: Sendable {
  /// `nil` without a cache.
  package let store: (any ResponseStore)?
  /// Whether there is a cache.
  let isThere: Bool
  /// What requests that say nothing themselves want of the cache.
  private let policy: URLRequest.CachePolicy
  /// Tells sessions apart, where a response is for one alone.
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

  /// Foundation's shared cache stands for ours; a subclass that somebody has put in its place is that one.
  static func inPlace(of cache: URLCache?) -> URLCache? {
    guard let cache, cache === URLCache.shared, type(of: cache) == URLCache.self else { return nil }
    return HTTPCache.default
  }

  /// Whether something may be stored for a request. Looks into memory.
  func mayHold(_ request: WireRequest) -> Bool {
    store?.mayHold(CacheKey.hash(of: request.url, request.origin)) == true
  }

  /// Under what responses to a request are stored.
  func key(of request: WireRequest) -> CacheKey {
    CacheKey(request.url, request.origin, partition: partition(of: request.profile))
  }

  /// Under what a response is stored that `key` names for everybody: there, and where it is for this session alone.
  func keys(of key: CacheKey, for profile: ConnectionProfile) -> [CacheKey] {
    guard let target = profile.isUsual ? nil : WireTarget(key.url) else { return [key] }
    return [key, CacheKey(target.url, target.origin, partition: partition(of: profile))]
  }

  private func partition(of profile: ConnectionProfile) -> String {
    profile.isUsual ? "" : "\(number).\(profile.cachePartition)"
  }

  /// Whether somebody has to refresh a response: no one else is at it.
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
