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
