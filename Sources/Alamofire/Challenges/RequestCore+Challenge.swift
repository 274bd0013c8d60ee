import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// What a request has to answer challenges with, without asking anybody.
extension RequestCore {
  /// The answer to a challenge, or `nil` when there is none to give: no credential, one that has been refused, no
  /// scheme that we know, a field of the user's own, another origin than that of the user's own request.
  func answer(
    to head: ResponseHead, of request: WireRequest, home: Origin, _ authentication: Authentication?
  ) -> ChallengeAnswer? {
    offers(head, to: request, home: home, authentication).lazy
      .compactMap { offer in
        let trail = authentication?.trail
        guard trail?.failureCount(for: offer) ?? 0 == 0,
          let (credential, source) = self.credential(for: offer, of: request, authentication),
          trail?.mayAnswer(offer, with: credential) ?? true, offer.takes(credential)
        else { return nil }
        return ChallengeAnswer(offer: offer, credential: credential, source: source)
      }
      .first
  }

  /// What a server offers that may be answered, the strongest first.
  func offers(
    _ head: ResponseHead, to request: WireRequest, home: Origin, _ authentication: Authentication?
  ) -> [AuthenticationOffer] {
    guard head.status == 401, request.origin == home,
      request.authorization == authentication?.trail.proof?.field
    else { return [] }
    return AuthenticationOffer.ranked(
      head.block.challenges(), connectionSchemes: AuthenticationFeatures.connectionSchemes,
      knows: { AuthenticationFeatures.algorithms.contains($0) })
  }

  private func credential(
    for offer: AuthenticationOffer, of request: WireRequest, _ authentication: Authentication?
  ) -> (PasswordCredential, AuthenticationProof.Source)? {
    if let own = passwordCredential { return (own, .request) }
    // In these, a whole connection speaks in a name: only in one that the request was given.
    guard !offer.scheme.isOfConnection else { return nil }
    if let stored = storedCredential(for: request, realm: offer.realm, offer.scheme) {
      return (stored, .storage)
    }
    return authentication?.netrc?.credential(host: request.origin.host).map { ($0, .file) }
  }

  /// The one that the session's storage has by default for where the challenge comes from.
  func storedCredential(for request: WireRequest, realm: String?, _ scheme: AuthenticationScheme)
    -> PasswordCredential?
  {
    guard let storage = session.configuration.urlCredentialStorage,
      let space = URLProtectionSpace(challengeTo: request, realm: realm, scheme: scheme)
    else { return nil }
    return storage.defaultCredential(like: space).flatMap { PasswordCredential($0) }
  }
}

extension AuthenticationOffer {
  /// Whether the scheme can carry the credential at all.
  func takes(_ credential: PasswordCredential) -> Bool {
    scheme == .basic ? credential.basicField != nil : credential.isSendable
  }
}

extension WireRequest {
  /// The credentials that it brings.
  var authorization: String? {
    fields.first { FieldName.equal($0.name, "Authorization") }?.value
  }

  /// Returns the request with `proof` in place of its credentials.
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
