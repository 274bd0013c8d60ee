import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// The request to which a challenge belongs, and the credentials that may answer it.
struct ChallengeContext {
  let request: WireRequest
  /// The origin of the caller's request. Challenges of other origins are not answered.
  let initialOrigin: Origin
  /// The credential of the request itself.
  let credential: PasswordCredential?
  let authentication: Authentication?
  /// Whether the request opens a WebSocket connection, which NTLM and Negotiate cannot authenticate.
  let isOfWebSocket: Bool
}

/// Answers challenges without a delegate: from the credential of the request, the session's storage and the netrc file.
struct AuthenticationService {
  /// The hashes that OpenSSL does not refuse on this machine.
  private static let algorithms = Set(
    DigestChallenge.Algorithm.allCases.filter { OpenSSLHashes().hash($0, []) != nil })

  let storage: URLCredentialStorage?

  /// Returns the answer to a challenge. `nil` without a credential, for a refused one, for an unknown scheme and for
  /// another origin. Also `nil` if the request has its own `Authorization` field, or is repeated in its response.
  func answer(_ head: ResponseHead, _ context: ChallengeContext) -> ChallengeAnswer? {
    let offers = offers(head, context)
    var refused = context.authentication?.history
    refused?.recordRefusal(offers)
    let history = refused
    return offers.lazy
      .compactMap { offer in
        guard history?.failureCount(for: offer) ?? 0 == 0,
          let (credential, source) = credential(for: offer, context),
          history?.mayAnswer(offer, with: credential) ?? true, offer.takes(credential)
        else { return nil }
        return ChallengeAnswer(offer: offer, credential: credential, source: source)
      }
      .first
  }

  /// Returns the offers of a server that may be answered, the strongest first.
  func offers(_ head: ResponseHead, _ context: ChallengeContext) -> [AuthenticationOffer] {
    guard head.status == 401, !context.request.isTRACE, context.request.origin == context.initialOrigin,
      context.request.authorization == context.authentication?.history.proof?.field
    else { return [] }
    let challenges = head.block.challenges()
    guard context.isOfWebSocket || !context.request.isForwarded || head.supportsConnectionLogins else {
      return Self.offers(challenges, connectionSchemes: [])
    }
    let others = context.isOfWebSocket ? Self.offers(challenges, connectionSchemes: []) : []
    // Without another offer, the error of the connection says what is wrong.
    return others.isEmpty ? Self.offers(challenges, connectionSchemes: Engine.connectionSchemes) : others
  }

  private static func offers(_ challenges: [Challenge], connectionSchemes: Set<AuthenticationScheme>)
    -> [AuthenticationOffer]
  {
    AuthenticationOffer.ranked(
      challenges, connectionSchemes: connectionSchemes, knows: { algorithms.contains($0) })
  }

  private func credential(
    for offer: AuthenticationOffer, _ context: ChallengeContext
  ) -> (PasswordCredential, AuthenticationProof.Source)? {
    if let own = context.credential { return (own, .request) }
    // These schemes authenticate a whole connection, for which only the credential of the request itself is used.
    guard !offer.scheme.isOfConnection else { return nil }
    if let stored = storedCredential(for: context.request, realm: offer.realm, offer.scheme) {
      return (stored, .storage)
    }
    return context.authentication?.netrc?.credential(host: context.request.origin.host).map { ($0, .file) }
  }

  /// Returns the default credential of the storage for the protection space of a challenge.
  func storedCredential(for request: WireRequest, realm: String?, _ scheme: AuthenticationScheme)
    -> PasswordCredential?
  {
    guard let storage, let space = URLProtectionSpace(challengeTo: request, realm: realm, scheme: scheme)
    else { return nil }
    return storage.defaultCredential(like: space).flatMap { PasswordCredential($0) }
  }
}

extension WireRequest {
  /// Whether a proxy reads the request and sends it to the server on a connection of its own.
  fileprivate var isForwarded: Bool {
    guard origin.scheme == "http", profile.isDirect != true,
      case .server(let proxy) = ProxyEnvironment.shared.choice(for: origin, in: profile.proxies)
    else { return false }
    let route = try? Route(
      to: origin, profile.options, alternative: alternative, proxy: proxy, mayForward: true)
    return route?.forwards == true
  }
}

extension ResponseHead {
  /// Whether the proxy keeps a connection to the server for this client alone, as NTLM and Negotiate need it. Without
  /// it, the requests of other clients might be sent on the connection that was authenticated (RFC 4559 §6).
  fileprivate var supportsConnectionLogins: Bool {
    block.lists("session-based-authentication", in: "Proxy-Support")
  }
}

extension AuthenticationOffer {
  /// Whether the scheme can carry the credential.
  func takes(_ credential: PasswordCredential) -> Bool {
    scheme == .basic ? credential.basicField != nil : credential.isSendable
  }
}

extension WireRequest {
  /// The value of `Authorization`.
  var authorization: String? {
    fields.first { FieldName.equal($0.name, "Authorization") }?.value
  }

  /// Returns the request with `proof` instead of its credentials.
  func adding(_ proof: AuthenticationProof) -> WireRequest {
    changing { parts in
      parts.fields.removeAll { FieldName.equal($0.name, "Authorization") }
      guard proof.scheme.isOfConnection else {
        parts.login = nil
        if let field = proof.field { parts.fields.append(.authorization(field)) }
        return
      }
      parts.login = ConnectionLogin(scheme: proof.scheme, credential: proof.credential)
    }
  }
}

/// The answered challenges of an attempt, and its netrc file. Immutable, because the thread that reads the response
/// uses it as well.
final class Authentication: Sendable {
  let history: AuthenticationHistory
  let netrc: Netrc?

  init(history: AuthenticationHistory = AuthenticationHistory(), netrc: Netrc? = nil) {
    self.history = history
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

// On Linux two equal protection spaces compare as different objects, so that Foundation finds credentials only for
// the same object. These methods compare the properties of the spaces.
extension URLCredentialStorage {
  /// Returns all credentials for a space.
  func credentials(like space: URLProtectionSpace) -> [URLCredential] {
    stored(like: space).flatMap { allCredentials[$0]?.values.map { $0 } ?? [] }
  }

  /// Returns the default credential of a space.
  func defaultCredential(like space: URLProtectionSpace) -> URLCredential? {
    for stored in stored(like: space) {
      if let credential = defaultCredential(for: stored) { return credential }
    }
    return nil
  }

  private func stored(like space: URLProtectionSpace) -> [URLProtectionSpace] {
    allCredentials.keys.filter { $0.says(what: space) }
  }
}

extension URLProtectionSpace {
  fileprivate func says(what other: URLProtectionSpace) -> Bool {
    host.lowercased() == other.host.lowercased() && port == other.port && self.protocol == other.protocol
      && realm.hasBytes(of: other.realm) && isProxy() == other.isProxy() && means(other.authenticationMethod)
  }

  /// Returns whether the space is for a method. A space that was created without a method matches any method.
  private func means(_ method: String) -> Bool {
    authenticationMethod == method || authenticationMethod == NSURLAuthenticationMethodDefault
  }
}
