/// The challenges and answers of one request. Their number is limited, whatever the server does.
package struct AuthenticationHistory: Sendable {
  /// The credentials of the current hop.
  package private(set) var proof: AuthenticationProof?
  /// The number of credentials that were refused before the current hop.
  private var failures = 0
  private var answers = 0
  private var staleAnswers = 0
  /// Whether Digest has shown that the credential of ``proof`` is wrong, although it was sent preemptively.
  private var isProofWrong = false
  private var refused: [AuthenticationProof] = []
  /// The proofs of connection-based schemes that were refused.
  private var refusedLogins: [AuthenticationProof] = []

  package init() {}

  /// More than any honest server asks for.
  private static let mostAnswers = 64
  /// The most stale nonces, one after the other.
  private static let mostStaleAnswers = 4

  /// Whether a credential may answer an offer. A refused one may not, unless the nonce had expired (RFC 7616 §3.3) or
  /// came from an earlier request.
  package func mayAnswer(_ offer: AuthenticationOffer, with credential: PasswordCredential) -> Bool {
    guard answers < Self.mostAnswers,
      !refused.contains(where: { $0.credential == credential && $0.realm.hasBytes(of: offer.realm) })
    else { return false }
    if refusedLogins.contains(where: { $0.credential == credential && $0.scheme == offer.scheme }) {
      return false
    }
    guard let proof, proof.credential == credential, proof.mayBelong(to: offer.realm) else { return true }
    guard proof.scheme == offer.scheme else {
      // Do not use a weaker scheme for a credential that Digest has shown to be wrong. A refused login of the
      // connection shows nothing: a ticket, a domain or a common version of NTLM may have been missing.
      return !proof.isAnswer && !isProofWrong || proof.scheme.isOfConnection
    }
    guard let digest = offer.digest, let ticket = proof.ticket, !digest.nonce.hasBytes(of: ticket.nonce)
    else { return false }
    return !proof.isAnswer || (digest.isStale && staleAnswers < Self.mostStaleAnswers)
  }

  /// Records the offers of a response that refuses the credentials of the current hop.
  package mutating func recordRefusal(_ offers: [AuthenticationOffer]) {
    guard let proof, let ticket = proof.ticket else { return }
    // A nonce that is offered again has not expired, so the credential is wrong (RFC 7616 §3.3).
    let isRepeated = offers.contains { offer in
      guard let digest = offer.digest, offer.realm.hasBytes(of: proof.realm) else { return false }
      return digest.nonce.hasBytes(of: ticket.nonce) && !digest.isStale
    }
    if isRepeated { isProofWrong = true }
  }

  /// Returns the number of failed credentials, for the next challenge of the delegate.
  package func failureCount(for offer: AuthenticationOffer) -> Int {
    guard let proof else { return failures }
    return failures + (mayAnswer(offer, with: proof.credential) ? 0 : 1)
  }

  /// Records the credentials of the next hop.
  package mutating func recordSent(_ next: AuthenticationProof) {
    if next.isAnswer { answers += 1 }
    if let proof {
      if proof.scheme.isOfConnection { refusedLogins.append(proof) }
      if proof.credential == next.credential, proof.mayBelong(to: next.realm) {
        if proof.isAnswer, proof.scheme == next.scheme { staleAnswers += 1 }
      } else {
        failures += 1
        refused.append(proof)
      }
    }
    proof = next
    isProofWrong = false
  }

  /// Records the credentials of the current hop, which is sent again.
  package mutating func recordRepetition(_ repeated: AuthenticationProof) { proof = repeated }

  /// Forgets the proof, because the next hop goes to another origin or target.
  package mutating func recordRedirect() { proof = nil }
}

/// The credentials that are attached to a request.
package struct AuthenticationProof: Sendable, Equatable {
  /// The source of the credential, which decides which other requests may use it.
  package enum Source: Sendable, Equatable {
    /// The request itself, or its URL: no other request uses it.
    case request
    /// The delegate of the session, for all of its requests.
    case session
    /// The credential storage of the session.
    case storage
    /// A netrc file.
    case file
  }

  package let scheme: AuthenticationScheme
  /// `nil` for preemptive credentials before any challenge, and for schemes without realms.
  package let realm: String?
  package let credential: PasswordCredential
  package let source: Source
  /// The value of `Authorization`; `nil` for schemes of connections.
  package let field: String?
  package let digest: DigestChallenge?
  package let ticket: DigestTicket?
  /// Whether it answers a challenge of this very request.
  package let isAnswer: Bool

  package init(
    scheme: AuthenticationScheme, realm: String?, credential: PasswordCredential, source: Source,
    field: String?, digest: DigestChallenge? = nil, ticket: DigestTicket? = nil, isAnswer: Bool
  ) {
    self.scheme = scheme
    self.realm = realm
    self.credential = credential
    self.source = source
    self.field = field
    self.digest = digest
    self.ticket = ticket
    self.isAnswer = isAnswer
  }

  /// Whether it may be for a realm. Realms are compared by bytes, as servers do.
  fileprivate func mayBelong(to realm: String?) -> Bool {
    self.realm == nil || self.realm.hasBytes(of: realm)
  }

  /// Returns the proof after one more use of its nonce, if it has one.
  fileprivate func counted() -> AuthenticationProof { ticket?.next.map(with) ?? self }

  /// Returns the proof with another use of its nonce, and with the field that was computed for that.
  package func repeated(_ field: String, _ ticket: DigestTicket) -> AuthenticationProof {
    AuthenticationProof(
      scheme: scheme, realm: realm, credential: credential, source: source, field: field, digest: digest,
      ticket: ticket, isAnswer: isAnswer)
  }

  fileprivate func with(_ ticket: DigestTicket) -> AuthenticationProof {
    AuthenticationProof(
      scheme: scheme, realm: realm, credential: credential, source: source, field: field, digest: digest,
      ticket: ticket, isAnswer: isAnswer)
  }
}

/// The proof that several requests to one server share. Each gets another count of the nonce (RFC 7616 §3.4).
package struct SharedProof: Sendable {
  private var proof: AuthenticationProof?

  package init() {}

  /// Returns the proof for one request; `nil` if there is none.
  package mutating func take() -> AuthenticationProof? {
    defer { proof = proof?.counted() }
    return proof
  }

  /// Returns the ticket of an answer to a challenge of `server`, whose count follows the last one of the shared proof.
  package mutating func ticket(
    answering challenge: DigestChallenge, from server: Origin, _ counts: inout NonceCounts
  ) -> DigestTicket {
    guard let proof, let known = proof.ticket, known.nonce.hasBytes(of: challenge.nonce) else {
      return counts.ticket(answering: challenge, from: server)
    }
    let ticket = counts.ticket(answering: challenge, from: server, after: known.count)
    self.proof = proof.with(known.counted(ticket.count))
    return ticket
  }

  /// Keeps a proof that `server` has accepted. Only an answer to a challenge replaces another one, because all others
  /// were taken from here. The count of a nonce never falls.
  package mutating func keep(_ new: AuthenticationProof, from server: Origin, _ counts: NonceCounts) {
    let old = proof?.ticket
    guard proof == nil || new.isAnswer else { return }
    guard let ticket = new.ticket else { return proof = new }
    let isSame = old?.nonce.hasBytes(of: ticket.nonce) == true
    let last = max(counts.last(of: ticket.nonce, from: server), isSame ? old?.count ?? 0 : 0)
    guard !isSame || ticket.count > last else { return }
    proof = new.with(ticket.counted(max(ticket.count, last)))
  }
}

/// The counts that answers to challenges have used. A server may send one nonce to several requests at once, and each
/// answer needs another count (RFC 7616 §3.4). Pure and bounded: the nonce that was added first is forgotten first.
package struct NonceCounts: Sendable {
  private struct Key: Hashable {
    let origin: Origin
    let nonce: ByteText
  }

  private let limit: Int
  private var counts: [Key: UInt32] = [:]
  /// The nonces in the order in which they came, as a ring.
  private var order: [Key] = []
  private var oldest = 0

  package init(limit: Int = 64) {
    self.limit = max(1, limit)
  }

  /// Returns the last count of a nonce; 0 if it was not used, or is forgotten.
  package func last(of nonce: String, from origin: Origin) -> UInt32 {
    counts[Key(origin: origin, nonce: ByteText(nonce))] ?? 0
  }

  /// Returns the ticket of an answer to a challenge, with the next count of its nonce.
  ///
  /// - Parameter known: The largest count that is known from elsewhere.
  package mutating func ticket(
    answering challenge: DigestChallenge, from origin: Origin, after known: UInt32 = 0
  ) -> DigestTicket {
    ticket(after: DigestTicket.first(for: challenge).counted(known), from: origin)
  }

  /// Returns the next use of the nonce of a ticket. Its count follows the ticket's and the last one that is known.
  package mutating func ticket(after ticket: DigestTicket, from origin: Origin) -> DigestTicket {
    let used = max(ticket.count, last(of: ticket.nonce, from: origin))
    // After the last count, only the server can help, with another nonce.
    let count = used < .max ? used + 1 : 1
    note(count, of: Key(origin: origin, nonce: ByteText(ticket.nonce)))
    return ticket.counted(count)
  }

  private mutating func note(_ count: UInt32, of key: Key) {
    guard counts.updateValue(count, forKey: key) == nil else { return }
    guard order.count == limit else { return order.append(key) }
    counts[order[oldest]] = nil
    order[oldest] = key
    oldest = (oldest + 1) % limit
  }
}
