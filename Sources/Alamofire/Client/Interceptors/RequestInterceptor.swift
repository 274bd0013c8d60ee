public import Foundation
public import FoundationNetworking

/// The context of an adaptation.
public struct RequestAdapterState: Sendable {
  private enum Identity: Sendable {
    case given(UUID)
    /// The identifier is created when it is first asked for.
    case ofRequest(RequestCore)
  }

  /// The `id` of the ``Request``.
  public var requestID: UUID {
    switch identity {
    case .given(let id): id
    case .ofRequest(let core): core.id
    }
  }
  /// The session that performs it.
  public let session: Session
  private let identity: Identity

  /// Makes a state; useful to call an adapter by hand, in a test for example.
  public init(requestID: UUID, session: Session) {
    identity = .given(requestID)
    self.session = session
  }

  init(of core: RequestCore, in session: Session) {
    self.init(.ofRequest(core), in: session)
  }

  private init(_ identity: Identity, in session: Session) {
    self.identity = identity
    self.session = session
  }

  /// A function that makes the state again for a later call, and throws if the request or its session has ended. It
  /// does not retain the session, because what waits for the call may be retained by an adapter that never answers.
  fileprivate var renewal: @Sendable () throws(AFError) -> RequestAdapterState {
    { [weak session = self.session, identity = self.identity] () throws(AFError) -> RequestAdapterState in
      guard let session else { throw .sessionDeinitialized }
      if case .ofRequest(let core) = identity { try core.checkAlive() }
      return RequestAdapterState(identity, in: session)
    }
  }
}

/// Changes requests before they are sent: adds a token, a signature, another host.
///
/// An adapter is called once for each attempt, after the request has been created and validated, and never on the
/// engine's thread. The completion may be called from any thread, at once or later; only the first call counts. A
/// completion that is released without a call fails the request.
///
/// ```swift
/// struct TokenAdapter: RequestInterceptor {
///   let token: String
///   func adapt(
///     _ urlRequest: URLRequest, for session: Session,
///     completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
///   ) {
///     var urlRequest = urlRequest
///     urlRequest.headers.add(.authorization(bearerToken: token))
///     completion(.success(urlRequest))
///   }
/// }
/// ```
@preconcurrency
public protocol RequestAdapter: Sendable {
  /// Adapts `urlRequest`; a failure ends the attempt with `AFError.requestAdaptationFailed`.
  @preconcurrency
  func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void)

  /// Adapts `urlRequest` with the state of its request; the library calls this form. The default implementation calls
  /// ``adapt(_:for:completion:)``.
  @preconcurrency
  func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void)
}

extension RequestAdapter {
  /// Forwards to ``adapt(_:for:completion:)`` with the session of `state`.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    adapt(urlRequest, for: state.session, completion: completion)
  }
}

/// The error of an adapter that released its completion without calling it.
struct ForgottenCompletion: LocalizedError, NSErrorConvertible {
  var errorDescription: String? {
    "A RequestAdapter released its completion without calling it; call it exactly once on every path."
  }
}

/// The decision of a retrier about a failed request.
public enum RetryResult: Sendable {
  /// The request is sent again at once.
  case retry
  /// The request is sent again after this many seconds.
  case retryWithDelay(TimeInterval)
  /// The next retrier is asked; without a further one, the request fails with its error.
  case doNotRetry
  /// Replace the error: the request ends with `AFError.requestRetryFailed`.
  case doNotRetryWithError(any Error)
}

/// Decides whether a failed request is sent again.
///
/// A retrier is called if the creation of the request, an adapter, the transfer or a validator failed. It is also
/// called once for each handler whose serialization failed. The retrier is never called after a cancellation, even if
/// an earlier retrier was called before, and never on the engine's thread. Of several retriers, the first result other
/// than ``RetryResult/doNotRetry`` is used.
/// Releasing the completion without a call counts as ``RetryResult/doNotRetry``.
@preconcurrency
public protocol RequestRetrier: Sendable {
  /// Decides about `request`, which failed with `error`; `completion` may be called from any thread.
  @preconcurrency
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void)
}

/// An adapter and a retrier; the default implementations have no effect.
@preconcurrency
public protocol RequestInterceptor: RequestAdapter, RequestRetrier {}

extension RequestInterceptor {
  /// Returns the request unchanged.
  @preconcurrency
  public func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    completion(.success(urlRequest))
  }

  /// Does not retry.
  @preconcurrency
  public func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    completion(.doNotRetry)
  }
}

/// Several adapters and retriers as one interceptor.
///
/// Adapters run in their order, each on the request of the previous one, until the first failure. Retriers are called
/// in their order, until the first result other than ``RetryResult/doNotRetry``. An adapter that releases its
/// completion without calling it fails the request; such a retrier counts as ``RetryResult/doNotRetry``. Only the
/// first call of a completion has an effect. If the request is cancelled or its session is released, no further adapter
/// or retrier is called. Calls do not retain the session after they have returned.
///
/// ```swift
/// let interceptor = Interceptor(
///   adapters: [TokenAdapter(token: token)], retriers: [RetryPolicy(retryLimit: 3)])
/// let session = Session(interceptor: interceptor)
/// ```
open class Interceptor: RequestInterceptor, @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  /// The adapters in the order of their calls: the given adapters, then the interceptors.
  public let adapters: [any RequestAdapter]
  /// The retriers in the order of their calls: the given retriers, then the interceptors.
  public let retriers: [any RequestRetrier]

  /// Makes an interceptor of two closures.
  @preconcurrency
  public init(adaptHandler: @escaping AdaptHandler, retryHandler: @escaping RetryHandler) {
    adapters = [Adapter(adaptHandler)]
    retriers = [Retrier(retryHandler)]
  }

  /// Makes an interceptor of an adapter and a retrier.
  public init(adapter: any RequestAdapter, retrier: any RequestRetrier) {
    adapters = [adapter]
    retriers = [retrier]
  }

  /// Makes an interceptor of any number of them; of none, it changes nothing and never retries.
  ///
  /// - Parameters:
  ///   - adapters: Run before `interceptors`. Default: none.
  ///   - retriers: Asked before `interceptors`. Default: none.
  ///   - interceptors: Run after `adapters`, and asked after `retriers`. Default: none.
  public init(
    adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [],
    interceptors: [any RequestInterceptor] = []
  ) {
    self.adapters = adapters + interceptors
    self.retriers = retriers + interceptors
  }

  /// Runs the adapters, each in its form without the request's state.
  @preconcurrency
  open func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    Self.adapt(urlRequest, by: adapters[...], completion: completion) {
      [weak session] adapter, urlRequest, completion in
      guard let session else { return completion(.failure(AFError.sessionDeinitialized)) }
      adapter.adapt(urlRequest, for: session, completion: completion)
    }
  }

  /// Runs the adapters. The form that the library calls, and the one to override.
  @preconcurrency
  open func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    let renewal = state.renewal
    Self.adapt(urlRequest, by: adapters[...], completion: completion) { adapter, urlRequest, completion in
      do throws(AFError) {
        adapter.adapt(urlRequest, using: try renewal(), completion: completion)
      } catch {
        completion(.failure(error))
      }
    }
  }

  /// Asks the retriers.
  @preconcurrency
  open func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    Self.ask(retriers[...], completion: completion) { [weak request, weak session] retrier, completion in
      guard let request, let session, request.core.mayAttemptAgain else { return completion(.doNotRetry) }
      retrier.retry(request, for: session, dueTo: error, completion: completion)
    }
  }

  private typealias Adapted = @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  private typealias Answered = @Sendable (RetryResult) -> Void

  private static func adapt(
    _ urlRequest: URLRequest, by adapters: ArraySlice<any RequestAdapter>, completion: @escaping Adapted,
    calling call: @escaping @Sendable (any RequestAdapter, URLRequest, @escaping Adapted) -> Void
  ) {
    guard let adapter = adapters.first else { return completion(.success(urlRequest)) }
    let rest = adapters.dropFirst()
    let next = GuardedCompletion(
      whenForgotten: Result<URLRequest, any Error>.failure(ForgottenCompletion())
    ) { result in
      switch result {
      case .success(let adapted): Self.adapt(adapted, by: rest, completion: completion, calling: call)
      case .failure: completion(result)
      }
    }
    call(adapter, urlRequest) { next($0) }
  }

  private static func ask(
    _ retriers: ArraySlice<any RequestRetrier>, completion: @escaping Answered,
    calling call: @escaping @Sendable (any RequestRetrier, @escaping Answered) -> Void
  ) {
    guard let retrier = retriers.first else { return completion(.doNotRetry) }
    let rest = retriers.dropFirst()
    let next = GuardedCompletion(whenForgotten: RetryResult.doNotRetry) { result in
      switch result {
      case .doNotRetry: Self.ask(rest, completion: completion, calling: call)
      case .retry, .retryWithDelay, .doNotRetryWithError: completion(result)
      }
    }
    call(retrier) { next($0) }
  }
}

extension RequestInterceptor where Self == Interceptor {
  /// Makes an ``Interceptor`` of two closures.
  @preconcurrency
  public static func interceptor(
    adapter: @escaping AdaptHandler, retrier: @escaping RetryHandler
  ) -> Interceptor {
    Interceptor(adaptHandler: adapter, retryHandler: retrier)
  }

  /// Makes an ``Interceptor`` of an adapter and a retrier.
  public static func interceptor(
    adapter: any RequestAdapter, retrier: any RequestRetrier
  ) -> Interceptor {
    Interceptor(adapter: adapter, retrier: retrier)
  }

  /// Makes an ``Interceptor`` of any number of adapters, retriers and interceptors, in that order.
  public static func interceptor(
    adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [],
    interceptors: [any RequestInterceptor] = []
  ) -> Interceptor {
    Interceptor(adapters: adapters, retriers: retriers, interceptors: interceptors)
  }
}

/// Adapts a request; calls its completion once, from any thread, at once or later.
public typealias AdaptHandler =
  @Sendable (
    _ urlRequest: URLRequest, _ session: Session,
    _ completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) -> Void

/// An adapter that is a closure. It never retries.
///
/// ```swift
/// let adapter = Adapter { urlRequest, session, completion in
///   var urlRequest = urlRequest
///   urlRequest.headers.add(.userAgent("Weather/2.0"))
///   completion(.success(urlRequest))
/// }
/// let session = Session(interceptor: adapter)
/// ```
open class Adapter: RequestInterceptor, @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  private let adaptHandler: AdaptHandler

  /// Makes an adapter of a closure, which is called once for each attempt and not on the engine's thread.
  @preconcurrency
  public init(_ adaptHandler: @escaping AdaptHandler) {
    self.adaptHandler = adaptHandler
  }

  /// Calls the closure.
  @preconcurrency
  open func adapt(
    _ urlRequest: URLRequest, for session: Session,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    adaptHandler(urlRequest, session, completion)
  }

  /// Forwards to ``adapt(_:for:completion:)``. The library calls this method.
  @preconcurrency
  open func adapt(
    _ urlRequest: URLRequest, using state: RequestAdapterState,
    completion: @escaping @Sendable (_ result: Result<URLRequest, any Error>) -> Void
  ) {
    adapt(urlRequest, for: state.session, completion: completion)
  }
}

extension RequestAdapter where Self == Adapter {
  /// Makes an ``Adapter`` of a closure.
  @preconcurrency
  public static func adapter(using closure: @escaping AdaptHandler) -> Adapter {
    Adapter(closure)
  }
}

/// Decides about a failed request; calls its completion once, from any thread, at once or later.
public typealias RetryHandler =
  @Sendable (
    _ request: Request, _ session: Session, _ error: any Error,
    _ completion: @escaping @Sendable (RetryResult) -> Void
  ) -> Void

/// A retrier that is a closure. It adapts nothing.
///
/// ```swift
/// let retrier = Retrier { request, session, error, completion in
///   completion(request.retryCount < 3 ? .retryWithDelay(1) : .doNotRetry)
/// }
/// let session = Session(interceptor: retrier)
/// ```
open class Retrier: RequestInterceptor, @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  private let retryHandler: RetryHandler

  /// Makes a retrier of a closure, which is called once for each failure and not on the engine's thread.
  @preconcurrency
  public init(_ retryHandler: @escaping RetryHandler) {
    self.retryHandler = retryHandler
  }

  /// Calls the closure.
  @preconcurrency
  open func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    retryHandler(request, session, error, completion)
  }
}

extension RequestRetrier where Self == Retrier {
  /// Makes a ``Retrier`` of a closure.
  @preconcurrency
  public static func retrier(using closure: @escaping RetryHandler) -> Retrier {
    Retrier(closure)
  }
}

/// Interceptors that are added to a request.
///
/// They run in the order in which they were added, after the session's interceptors and the one that the request was
/// created with. Add them before the request starts. An adapter that is added later applies to the next attempt, a
/// retrier to later failures. After the end, only handlers that are added even later can still fail.
extension Request {
  /// Adapts and retries the request with `interceptor`, after all that do so already.
  @discardableResult
  public func interceptor(_ interceptor: any RequestInterceptor) -> Self {
    add(interceptor)
    return self
  }

  /// Adapts the request with `adapter`, after all adapters that it has already.
  ///
  /// ```swift
  /// AF.request("https://example.com/user")
  ///   .adapt(using: TokenAdapter(token: token))
  ///   .retry(using: .retryPolicy)
  ///   .responseDecodable(of: User.self) { response in print(response.result) }
  /// ```
  @discardableResult
  public func adapt(using adapter: any RequestAdapter) -> Self {
    add(Interceptor(adapters: [adapter]))
    return self
  }

  /// Asks `retrier` about failures, after all retriers that the request has already.
  @discardableResult
  public func retry(using retrier: any RequestRetrier) -> Self {
    add(Interceptor(retriers: [retrier]))
    return self
  }
}
