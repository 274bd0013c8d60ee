import Foundation
public import FoundationNetworking

/// What proves to a server who asks: a token, and whatever is needed to get another.
@preconcurrency
public protocol AuthenticationCredential: Sendable {
  /// Whether the credential has to be refreshed before it is used; say so a little before it expires, so
  /// that it is still good when it arrives. Read once for each request, from any thread.
  var requiresRefresh: Bool { get }
}

/// Puts credentials on requests, sees when a server refuses one, and gets a new one.
///
/// ```swift
/// struct OAuthCredential: AuthenticationCredential, Decodable {
///   let accessToken: String
///   let refreshToken: String
///   let expiration: Date
///
///   var requiresRefresh: Bool { Date(timeIntervalSinceNow: 60) > expiration }
/// }
///
/// final class OAuthAuthenticator: Authenticator {
///   // Not the session that the interceptor belongs to: its requests wait for the refresh.
///   let tokens = Session()
///
///   func apply(_ credential: OAuthCredential, to urlRequest: inout URLRequest) {
///     urlRequest.headers.add(.authorization(bearerToken: credential.accessToken))
///   }
///
///   func refresh(
///     _ credential: OAuthCredential, for session: Session,
///     completion: @escaping @Sendable (Result<OAuthCredential, any Error>) -> Void
///   ) {
///     let parameters = ["refresh_token": credential.refreshToken]
///     tokens.request("https://example.com/token", method: .post, parameters: parameters)
///       .validate()
///       .responseDecodable(of: OAuthCredential.self, queue: .global()) { response in
///         completion(response.result.mapError { $0 })
///       }
///   }
///
///   func didRequest(
///     _ urlRequest: URLRequest, with response: HTTPURLResponse,
///     failDueToAuthenticationError error: any Error
///   ) -> Bool {
///     response.statusCode == 401
///   }
///
///   func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: OAuthCredential) -> Bool {
///     urlRequest.headers["Authorization"] == "Bearer \(credential.accessToken)"
///   }
/// }
/// ```
///
/// All methods may be called from any thread, but never on the engine's, and ``refresh(_:for:completion:)``
/// never twice at a time by one ``AuthenticationInterceptor``.
@preconcurrency
public protocol Authenticator: AnyObject, Sendable {
  /// What is put on requests.
  associatedtype Credential: AuthenticationCredential

  /// Puts `credential` on a request, as a header field for example.
  func apply(_ credential: Credential, to urlRequest: inout URLRequest)

  /// Gets a new credential.
  ///
  /// Called on a queue of the interceptor. Do not send a request through `session` and wait for it when
  /// the interceptor adapts that one too: it may wait for this very refresh.
  ///
  /// - Parameters:
  ///   - credential: The one that is out of date or was refused.
  ///   - session: The session of the first request that needs the refresh.
  ///   - completion: May be called from any thread, at once or later; the first call counts. Released
  ///     without a call, it counts as a failure that says so.
  @preconcurrency
  func refresh(
    _ credential: Credential, for session: Session,
    completion: @escaping @Sendable (_ result: Result<Credential, any Error>) -> Void)

  /// Whether the server refused a request because of its credential: mostly status 401 (RFC 9110 §15.5.2).
  /// A response is a failure only with `validate()`.
  func didRequest(
    _ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error
  ) -> Bool

  /// Whether `urlRequest` carries `credential`. If not, a newer one is there, and the request is sent again
  /// with that instead of refreshing it.
  func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Credential) -> Bool
}
