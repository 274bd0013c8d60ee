import Foundation
public import FoundationNetworking

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
