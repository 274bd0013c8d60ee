import Alamofire
public import Foundation
public import FoundationNetworking

/// Changes requests before they are sent, for a token or a signature.
///
/// ```swift
/// final class AccessTokenAdapter: RequestAdapter {
///   private let accessToken: String
///   init(accessToken: String) { self.accessToken = accessToken }
///
///   func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
///     var urlRequest = urlRequest
///     urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
///     return urlRequest
///   }
/// }
/// ```
public protocol RequestAdapter {
  /// Returns the adapted request.
  ///
  /// Called on the thread that makes a request, before the function returns, and again for each retry on any thread.
  /// Calls may be concurrent.
  ///
  /// - Throws: Any error; the handlers get it unchanged. Before the first attempt, the retrier is called for it;
  ///   during a retry, it ends the request.
  func adapt(_ urlRequest: URLRequest) throws -> URLRequest
}

/// Says whether a request is sent again, and after how many seconds.
public typealias RequestRetryCompletion = (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides about requests that failed.
public protocol RequestRetrier {
  /// Decides whether `request` is retried. Call `completion` once, on any thread; further calls are ignored. Its
  /// release without a call means no.
  ///
  /// Called once for each failed attempt, after its validation, on any thread; calls for several requests may be
  /// concurrent. It is not called for cancelled requests, nor for failures of serializers, nor if the request could not
  /// be created. A retry begins with the original request, which is adapted again; routers and encodings are not called
  /// again. Requests that are retried at once are adapted in the order of their completions.
  ///
  /// - Parameters:
  ///   - manager:    The manager of the request.
  ///   - request:    The request; `response` and `task` belong to the failed attempt.
  ///   - error:      The error, as the handlers would get it.
  ///   - completion: Takes the decision.
  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion)
}
