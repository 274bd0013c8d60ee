import Foundation
import FoundationNetworking
import HTTPWire

/// The answered challenges of an attempt, and its netrc file. Immutable, because the thread that reads the response
/// uses it as well.
final class Authentication: Sendable {
  let trail: AuthenticationTrail
  let netrc: Netrc?

  init(trail: AuthenticationTrail = AuthenticationTrail(), netrc: Netrc? = nil) {
    self.trail = trail
    self.netrc = netrc
  }
}

/// An offer of a challenge, and the credential that will answer it.
struct ChallengeAnswer: Sendable {
  let offer: AuthenticationOffer
  let credential: PasswordCredential
  let source: AuthenticationProof.Source
}

extension PasswordCredential {
  /// Makes the credential of a user and a password; `nil` without a user.
  init?(_ credential: URLCredential) {
    guard let user = credential.user else { return nil }
    self.init(user: user, password: credential.password ?? "")
  }

  /// In the form in which servers that name a charset expect it (RFC 7616 §4).
  var normalized: PasswordCredential {
    PasswordCredential(
      user: user.precomposedStringWithCanonicalMapping,
      password: password.precomposedStringWithCanonicalMapping)
  }
}

extension URLProtectionSpace {
  /// Makes the protection space of a challenge to a request; `nil` for a URL that Foundation cannot parse.
  convenience init?(challengeTo request: WireRequest, realm: String?, scheme: AuthenticationScheme) {
    guard let url = URL(wire: request.url), let host = url.host else { return nil }
    let origin = request.origin
    self.init(
      host: host, port: origin.port, protocol: origin.scheme, realm: realm,
      authenticationMethod: scheme.method)
  }
}

extension AuthenticationScheme {
  /// Foundation's name.
  var method: String {
    switch self {
    case .basic: NSURLAuthenticationMethodHTTPBasic
    case .digest: NSURLAuthenticationMethodHTTPDigest
    case .ntlm: NSURLAuthenticationMethodNTLM
    case .negotiate: NSURLAuthenticationMethodNegotiate
    }
  }
}
