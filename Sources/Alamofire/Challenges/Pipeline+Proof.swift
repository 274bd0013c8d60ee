import Foundation
import FoundationNetworking
import HTTPWire

// What lets a request in: made, and remembered.
extension Pipeline {
  /// Before a hop: what is known to be good where it goes is sent unasked (RFC 7617 §2.2, RFC 7616 §3.6).
  nonisolated(nonsending) func bringCredentials(_ journey: Journey) async throws(AFError) {
    guard journey.hopHandler.isEngine, !journey.hasLeftHome, journey.request.authorization == nil else {
      return
    }
    if journey.authentication?.netrc == nil, let path = journey.request.profile.options.netrcFile {
      let url = journey.request.url
      let netrc = try await offLoop { NetrcFile.read(path, for: url) }.get()
      journey.authentication = Authentication(trail: journey.trail, netrc: netrc)
    }
    if try await bringsRemembered(journey) { return }
    let request = journey.request
    guard request.profile.options.preemptiveBasicAuthentication,
      let credential = core.passwordCredential
        ?? journey.authentication?.netrc?.credential(host: request.origin.host),
      let field = credential.basicField
    else { return }
    journey.brings(
      AuthenticationProof(
        scheme: .basic, realm: nil, credential: credential, source: .request, field: field, isAnswer: false))
  }

  /// Returns whether there was something that may be used.
  nonisolated(nonsending) private func bringsRemembered(_ journey: Journey) async throws(AFError) -> Bool {
    let request = journey.request
    let memory = core.session.credentials
    let own =
      core.passwordCredential ?? journey.authentication?.netrc?.credential(host: request.origin.host)
    let match = memory.matches(request.origin, target: ProtectionDomain.target(of: request.url))
      .first { match in
        switch match.source {
        case .request, .file: return match.credential == own
        case .session: return own == nil || match.credential == own
        case .storage:
          guard own == nil else { return match.credential == own }
          // What the user has taken out of the storage is not used any more.
          return core.storedCredential(for: request, realm: match.realm, match.scheme) == match.credential
        }
      }
    guard let match else { return false }
    let ticket = match.digest == nil ? nil : memory.ticket(match, origin: request.origin)
    if match.digest != nil, ticket == nil { return false }
    // A body that cannot be looked at before it is sent waits for the challenge.
    if let digest = match.digest, digest.choice(for: request.body) == .needsStoredBody { return false }
    let field = try await field(match.scheme, match.credential, match.digest, ticket, for: request)
    guard let field else { return false }
    journey.brings(
      AuthenticationProof(
        scheme: match.scheme, realm: match.realm, credential: match.credential, source: match.source,
        field: field, digest: match.digest, ticket: ticket, isAnswer: false))
    return true
  }

  /// Sends the request again with an answer. Returns whether there is one.
  nonisolated(nonsending) func brings(_ answer: ChallengeAnswer, _ journey: Journey) async throws(AFError)
    -> Bool
  {
    let (offer, credential) = (answer.offer, answer.credential)
    let ticket = offer.digest.map { DigestTicket.first(for: $0) }
    let field = try await field(offer.scheme, credential, offer.digest, ticket, for: journey.request)
    guard field != nil || offer.scheme.isOfConnection else { return false }
    journey.brings(
      AuthenticationProof(
        scheme: offer.scheme, realm: offer.realm, credential: credential, source: answer.source,
        field: field, digest: offer.digest, ticket: ticket, isAnswer: true))
    return true
  }

  /// The value of `Authorization`; `nil` for schemes that have none, and when it cannot be made.
  nonisolated(nonsending) private func field(
    _ scheme: AuthenticationScheme, _ credential: PasswordCredential, _ digest: DigestChallenge?,
    _ ticket: DigestTicket?, for request: WireRequest
  ) async throws(AFError) -> String? {
    guard scheme == .digest, let digest, let ticket else {
      return scheme == .basic ? credential.basicField : nil
    }
    let quality: DigestChallenge.Quality?
    switch digest.choice(for: request.body) {
    case .use(let choice): quality = choice
    case .needsStoredBody:
      throw .sessionTaskFailed(
        error: URLError.made(
          .requestBodyStreamExhausted,
          "\(request.origin.host) wants the body to be signed (Digest, auth-int), and a stream can be read only once; use Data or a file.",
          url: request.url))
    }
    let hashes = AuthenticationFeatures.hashes
    var bodyHash: String?
    if quality == .authInt {
      let body = request.body
      let isShort = body.count <= 16_384 && !body.isSource
      bodyHash =
        isShort
        ? hashes.text(digest.algorithm, of: body) : await offLoop { hashes.text(digest.algorithm, of: body) }
      try checkAlive()
    }
    let answer = DigestAnswer(
      challenge: digest, credential: digest.isUTF8 ? credential.normalized : credential, ticket: ticket,
      method: request.method, target: ProtectionDomain.target(of: request.url), quality: quality)
    return answer.field(with: hashes, bodyHash: bodyHash)
  }
}

extension RequestBody {
  fileprivate var isSource: Bool {
    if case .source = self { return true }
    return false
  }
}
