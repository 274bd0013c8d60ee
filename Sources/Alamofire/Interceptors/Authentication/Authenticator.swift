import Foundation
public import FoundationNetworking

/// A credential that an ``Authenticator`` applies, such as a token, with the data needed to refresh it.
@preconcurrency
public protocol AuthenticationCredential: Sendable {
  /// Whether the credential has to be refreshed before it is used. Return `true` some time before it expires, so that
  /// it is still valid when it reaches the server. Read once for each request, on any thread.
  var requiresRefresh: Bool { get }
}

/// Applies credentials to requests, detects that a server refused one, and refreshes it.
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
/// All methods may be called on any thread except the engine's. An ``AuthenticationInterceptor`` never runs two calls
/// of ``refresh(_:for:completion:)`` at the same time.
@preconcurrency
public protocol Authenticator: AnyObject, Sendable {
  /// The type of the credential.
  associatedtype Credential: AuthenticationCredential

  /// Applies `credential` to a request, as a header field for example.
  func apply(_ credential: Credential, to urlRequest: inout URLRequest)

  /// Refreshes a credential.
  ///
  /// Called on a serial queue of the interceptor. If the interceptor also adapts requests of `session`, do not wait
  /// for one of them here, because it may wait for this refresh.
  ///
  /// - Parameters:
  ///   - credential: The expired or refused credential.
  ///   - session: The session of the first request that needs the refresh.
  ///   - completion: Call it once, from any thread; further calls are ignored. Its release without a call is a
  ///     failure.
  @preconcurrency
  func refresh(
    _ credential: Credential, for session: Session,
    completion: @escaping @Sendable (_ result: Result<Credential, any Error>) -> Void)

  /// Whether the server refused a request because of its credential: mostly status 401 (RFC 9110 §15.5.2). A status
  /// code is a failure only if the request has `validate()`.
  func didRequest(
    _ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error
  ) -> Bool

  /// Whether `urlRequest` was sent with `credential`. If not, the credential has changed since, and the request is
  /// retried with the new one without a refresh.
  func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Credential) -> Bool
}
