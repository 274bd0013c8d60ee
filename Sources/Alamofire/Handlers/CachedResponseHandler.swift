public import FoundationNetworking
import Synchronization

/// Decides what is stored in the `urlCache` of a session's configuration, for a session or for one request:
/// ``Session/cachedResponseHandler``, ``Request/cacheResponse(using:)``.
///
/// It is asked for responses of data requests that RFC 9111 §3 lets a private cache store, those of redirects that are
/// followed among them, before they are stored. Without a handler, a response is stored that could answer another
/// request: it says how long it is good for, or has a validator; with one, it is asked for the others as well. What a
/// server confirms (304) is stored already, and not asked about. Nobody is asked about responses to validations that
/// `stale-while-revalidate` would run after the answer: with a handler, or a delegate of one's own, the server is asked
/// before the answer instead.
@preconcurrency
public protocol CachedResponseHandler: Sendable {
  /// A response may be stored. Call `completion` exactly once, from any thread: with `response`, with another
  /// one, or with `nil`, and nothing is stored. Released without a call, it is stored.
  ///
  /// - Parameters:
  ///   - task:       The task whose response it is.
  ///   - response:   What would be stored.
  ///   - completion: Takes the decision.
  @preconcurrency
  func dataTask(
    _ task: URLSessionDataTask, willCacheResponse response: CachedURLResponse,
    completion: @escaping @Sendable (CachedURLResponse?) -> Void)
}

/// A ``CachedResponseHandler`` that stores, does not, or does as a closure says.
///
/// ```swift
/// let cacher = ResponseCacher(
///   behavior: .modify { task, response in
///     response.data.count < 10_000 ? response : nil
///   })
/// AF.request("https://example.com/").cacheResponse(using: cacher)
/// ```
public struct ResponseCacher: CachedResponseHandler {
  /// What is done with responses that may be stored.
  public enum Behavior: Sendable {
    /// They are stored.
    case cache
    /// They are not stored.
    case doNotCache
    /// The closure makes what is stored, or `nil` for nothing. Not called on the engine's thread.
    @preconcurrency
    case modify(@Sendable (_ task: URLSessionDataTask, _ response: CachedURLResponse) -> CachedURLResponse?)
  }

  /// Stores responses.
  public static let cache = ResponseCacher(behavior: .cache)
  /// Does not store responses.
  public static let doNotCache = ResponseCacher(behavior: .doNotCache)

  /// What is done with responses that may be stored.
  public let behavior: Behavior

  /// - Parameter behavior: What is done with responses that may be stored.
  public init(behavior: Behavior) {
    self.behavior = behavior
  }

  /// Does what ``behavior`` says.
  @preconcurrency
  public func dataTask(
    _ task: URLSessionDataTask, willCacheResponse response: CachedURLResponse,
    completion: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    switch behavior {
    case .cache: completion(response)
    case .doNotCache: completion(nil)
    case .modify(let closure): completion(closure(task, response))
    }
  }
}

extension CachedResponseHandler where Self == ResponseCacher {
  /// Stores responses.
  public static var cache: ResponseCacher { .init(behavior: .cache) }
  /// Does not store responses.
  public static var doNotCache: ResponseCacher { .init(behavior: .doNotCache) }

  /// Lets `closure` make what is stored, or `nil` for nothing.
  @preconcurrency
  public static func modify(
    using closure: @escaping @Sendable (URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?
  ) -> ResponseCacher {
    .init(behavior: .modify(closure))
  }
}

extension Request {
  /// Who decides about storing the response of this request; `nil` leaves it to the session's.
  public var cachedResponseHandler: (any CachedResponseHandler)? {
    core.state.withLock { $0.extras.cachedResponseHandler }
  }

  /// Lets `handler` decide about storing, in place of the session's. The last handler given counts.
  @discardableResult
  public func cacheResponse(using handler: any CachedResponseHandler) -> Self {
    watch { $0.extras.cachedResponseHandler = handler }
    return self
  }
}
