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
  /// Returns the request as it is to be sent.
  ///
  /// Called on the thread that makes a request, before the factory returns, and again for each retry, then on
  /// any thread. Several may call at once.
  ///
  /// - Throws: Why it cannot be sent. The error reaches the handlers untouched. The retrier is asked about it before the
  ///   first attempt; a retry that cannot be sent ends the request.
  func adapt(_ urlRequest: URLRequest) throws -> URLRequest
}

/// Says whether a request is sent again, and after how many seconds.
public typealias RequestRetryCompletion = (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides about requests that failed.
public protocol RequestRetrier {
  /// Decides whether `request` is sent again, and says so by `completion`: at once or later, from any thread. Only
  /// the first call counts; a completion that is released without one stands for no.
  ///
  /// Asked once for each attempt that failed, after its validation, on any thread, and about several requests at
  /// once; not about those that were cancelled, nor about serializers that failed. A retry begins with the request as
  /// it first was, which the adapter then changes anew; routers and encodings are not asked again. Requests that are
  /// to be sent again at once are adapted in the order in which that was said.
  ///
  /// - Parameters:
  ///   - manager:    Who sends the request.
  ///   - request:    The request; its `response` and its `task` show what came.
  ///   - error:      What went wrong, as the handlers would get it.
  ///   - completion: Takes the answer.
  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion)
}
