public import FoundationNetworking
import Synchronization

/// Decides about redirects, for a session or for one request: ``Session/redirectHandler``,
/// ``Request/redirect(using:)``. Without one every redirect is followed that RFC 9110 §15.4 allows.
@preconcurrency
public protocol RedirectHandler: Sendable {
  /// Called before a redirect is followed. Call `completion` exactly once, from any thread: with `request`, with
  /// another one, or with `nil`, which makes the redirect the response, without its body. If `completion` is released
  /// without a call, the redirect is followed.
  ///
  /// Credentials and cookies that must not reach another origin are removed from `request`. Fields that a handler
  /// adds are sent unchanged.
  ///
  /// - Parameters:
  ///   - task:       The redirected task.
  ///   - request:    The request that would follow.
  ///   - response:   The redirect.
  ///   - completion: Takes the decision.
  @preconcurrency
  func task(
    _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
    completion: @escaping @Sendable (URLRequest?) -> Void)
}

/// A ``RedirectHandler`` that always follows, never does, or does as a closure says.
///
/// ```swift
/// let redirector = Redirector(
///   behavior: .modify { task, request, response in
///     var request = request
///     request.setValue("1", forHTTPHeaderField: "X-Redirected")
///     return request
///   })
/// AF.request("https://example.com/old").redirect(using: redirector)
/// ```
public struct Redirector: RedirectHandler {
  /// The handling of redirects.
  public enum Behavior: Sendable {
    /// The redirect is followed.
    case follow
    /// The redirect is the response, without its body.
    case doNotFollow
    /// The closure returns the request to follow, or `nil` for none. It is not called on the engine's thread.
    @preconcurrency
    case modify(
      @Sendable (_ task: URLSessionTask, _ request: URLRequest, _ response: HTTPURLResponse) -> URLRequest?)
  }

  /// Follows redirects.
  public static let follow = Redirector(behavior: .follow)
  /// Does not follow redirects: the redirect is the response, without its page; a download gives an empty file.
  public static let doNotFollow = Redirector(behavior: .doNotFollow)

  /// The handling of redirects.
  public let behavior: Behavior

  /// Makes a handler.
  ///
  /// - Parameter behavior: The handling of redirects.
  public init(behavior: Behavior) {
    self.behavior = behavior
  }

  /// Applies ``behavior``.
  @preconcurrency
  public func task(
    _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
    completion: @escaping @Sendable (URLRequest?) -> Void
  ) {
    switch behavior {
    case .follow: completion(request)
    case .doNotFollow: completion(nil)
    case .modify(let closure): completion(closure(task, request, response))
    }
  }
}

extension RedirectHandler where Self == Redirector {
  /// Follows redirects.
  public static var follow: Redirector { .init(behavior: .follow) }
  /// Does not follow redirects: the redirect is the response, without its page; a download gives an empty file.
  public static var doNotFollow: Redirector { .init(behavior: .doNotFollow) }

  /// Lets `closure` make the request that follows, or `nil` for none.
  @preconcurrency
  public static func modify(
    using closure: @escaping @Sendable (URLSessionTask, URLRequest, HTTPURLResponse) -> URLRequest?
  ) -> Redirector {
    .init(behavior: .modify(closure))
  }
}

extension Request {
  /// The handler that decides about redirects of this request; `nil` for the session's.
  public var redirectHandler: (any RedirectHandler)? { additions.withLock { $0.value.redirectHandler } }

  /// Sets the handler that decides about redirects, instead of the session's. The last handler set is used.
  @discardableResult
  public func redirect(using handler: any RedirectHandler) -> Self {
    _ = additions.withLock { replace(&$0.value.redirectHandler, with: handler) }
    core.add(.redirects)
    return self
  }
}

/// Decides about storing responses in the `urlCache` of a session's configuration, for a session or for one request:
/// ``Session/cachedResponseHandler``, ``Request/cacheResponse(using:)``.
///
/// The handler is called before a response is stored, also for followed redirects, if RFC 9111 §3 allows a private
/// cache to store it. The handler is called for responses to data requests only. Without a handler, a response is
/// stored if it has a freshness lifetime or a validator; a handler is called for the others as well. The handler is not
/// called for a 304, because that response is already stored.
///
/// `stale-while-revalidate` needs a validation after the response was delivered, for which no handler could be
/// called. Therefore, with a handler or a delegate subclass, a stale response is validated before it is delivered.
@preconcurrency
public protocol CachedResponseHandler: Sendable {
  /// Called before a response is stored. Call `completion` exactly once, from any thread: with `response`, with
  /// another one, or with `nil` to store none. If `completion` is released without a call, `response` is stored.
  ///
  /// - Parameters:
  ///   - task:       The task of the response.
  ///   - response:   The response that would be stored.
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
  /// The handling of responses that may be stored.
  public enum Behavior: Sendable {
    /// The response is stored.
    case cache
    /// The response is not stored.
    case doNotCache
    /// The closure returns the response to store, or `nil` for none. It is not called on the engine's thread.
    @preconcurrency
    case modify(@Sendable (_ task: URLSessionDataTask, _ response: CachedURLResponse) -> CachedURLResponse?)
  }

  /// Stores responses.
  public static let cache = ResponseCacher(behavior: .cache)
  /// Does not store responses.
  public static let doNotCache = ResponseCacher(behavior: .doNotCache)

  /// The handling of responses that may be stored.
  public let behavior: Behavior

  /// Makes a handler.
  ///
  /// - Parameter behavior: The handling of responses that may be stored.
  public init(behavior: Behavior) {
    self.behavior = behavior
  }

  /// Applies ``behavior``.
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

  /// Stores the response that `closure` returns, or none for `nil`.
  @preconcurrency
  public static func modify(
    using closure: @escaping @Sendable (URLSessionDataTask, CachedURLResponse) -> CachedURLResponse?
  ) -> ResponseCacher {
    .init(behavior: .modify(closure))
  }
}

extension Request {
  /// The handler that decides about storing the response of this request; `nil` for the session's.
  public var cachedResponseHandler: (any CachedResponseHandler)? {
    additions.withLock { $0.value.cachedResponseHandler }
  }

  /// Sets the handler that decides about storing, instead of the session's. The last handler set is used.
  @discardableResult
  public func cacheResponse(using handler: any CachedResponseHandler) -> Self {
    _ = additions.withLock { replace(&$0.value.cachedResponseHandler, with: handler) }
    watch(for: .storing) { _ in }
    return self
  }
}
