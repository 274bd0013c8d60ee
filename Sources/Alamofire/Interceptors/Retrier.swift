import Foundation

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
