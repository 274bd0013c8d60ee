public import Foundation

/// Why an ``AuthenticationInterceptor`` could not authenticate a request.
public enum AuthenticationError: Error, Sendable {
  /// It has no credential; set ``AuthenticationInterceptor/credential``.
  case missingCredential
  /// The credential was refreshed too often within the ``AuthenticationInterceptor/refreshWindow``.
  case excessiveRefresh
}

extension AuthenticationError: LocalizedError {
  /// What is wrong, and what to do.
  public var errorDescription: String? {
    switch self {
    case .missingCredential:
      "The request needs a credential and there is none; set the interceptor's credential first."
    case .excessiveRefresh:
      "The credential was refreshed too often in a short time; the server may refuse every new one."
    }
  }
}

/// An authenticator released its completion without calling it, so that nobody can know what it wanted.
struct ForgottenRefresh: LocalizedError {
  var errorDescription: String? {
    "An Authenticator released the completion of refresh without calling it; call it exactly once on every path."
  }
}
