import Synchronization

/// The credentials that servers have accepted of one session. From any thread.
package final class CredentialMemory: Sendable {
  /// The accepted credentials and the counts of nonces, for attempts.
  private let spaces: Mutex<CredentialSpaces>
  /// Read for each request, without the lock: most sessions never remember anything.
  private let hasAny = Atomic<Bool>(false)

  package init(limit: Int = 256) {
    spaces = Mutex(CredentialSpaces(limit: limit))
  }

  package var isEmpty: Bool { !hasAny.load(ordering: .relaxed) }
  /// The number of protection spaces, for tests.
  package var count: Int { spaces.withLock { $0.count } }

  /// Returns the spaces of a target; see ``CredentialSpaces/matches(_:target:)``.
  package func matches(_ origin: Origin, target: String) -> [CredentialSpaces.Match] {
    guard !isEmpty else { return [] }
    return spaces.withLock { $0.matches(origin, target: target) }
  }

  /// Returns the next use of a nonce, for one request only.
  package func ticket(_ match: CredentialSpaces.Match, origin: Origin) -> DigestTicket? {
    let cnonce = DigestTicket.randomNonce()
    return spaces.withLock { $0.ticket(match.number, origin: origin, cnonce: cnonce) }
  }

  /// Returns the ticket of an answer to a challenge. If its nonce was used before, the count goes on.
  package func ticket(answering challenge: DigestChallenge, origin: Origin) -> DigestTicket {
    spaces.withLock { $0.ticket(answering: challenge, origin: origin) }
  }

  /// Returns the next use of the nonce of a ticket, for a request that is sent again.
  package func ticket(after ticket: DigestTicket, origin: Origin) -> DigestTicket {
    spaces.withLock { $0.ticket(after: ticket, origin: origin) }
  }

  package func accepted(
    _ proof: AuthenticationProof, origin: Origin, target: String, nextNonce: String?
  ) {
    let any = spaces.withLock { spaces in
      spaces.accepted(proof, origin: origin, target: target, nextNonce: nextNonce)
      return spaces.count > 0
    }
    if any { hasAny.store(true, ordering: .relaxed) }
  }

  package func refused(_ proof: AuthenticationProof, origin: Origin) {
    spaces.withLock { $0.refused(proof, origin: origin) }
  }
}

/// The protection spaces that accepted credentials (RFC 7617 §2.2, RFC 7616 §3.6), for preemptive credentials of
/// later requests. Pure and bounded; the least recently used one is removed.
package struct CredentialSpaces: Sendable {
  /// The protection space of a target.
  package struct Match: Sendable, Equatable {
    package let number: UInt64
    package let scheme: AuthenticationScheme
    package let realm: String?
    package let credential: PasswordCredential
    package let source: AuthenticationProof.Source
    package let digest: DigestChallenge?
  }

  fileprivate struct Space {
    let match: Match
    var prefixes: [String]
    /// The current nonce, the number of its uses, and the values that began a `-sess` algorithm.
    var nonce = ""
    var count: UInt32 = 0
    var session: DigestTicket.Session?
    /// The secret of the credential, once an answer has computed it.
    var secret: DigestSecret?
    var lastUse: UInt64
  }

  private var spaces: [Origin: [Space]] = [:]
  /// The nonces of challenges that were answered, whether the answers were accepted or not.
  private var answered = NonceCounts()
  private var clock: UInt64 = 0
  package private(set) var count = 0
  private let limit: Int

  package init(limit: Int = 256) {
    self.limit = max(1, limit)
  }

  /// Returns the spaces of a target, the narrowest first.
  package func matches(_ origin: Origin, target: String) -> [Match] {
    guard let all = spaces[origin] else { return [] }
    let found = all.compactMap { space -> (length: Int, use: UInt64, match: Match)? in
      let lengths = space.prefixes.filter { target.utf8.starts(with: $0.utf8) }.map(\.utf8.count)
      return lengths.max().map { ($0, space.lastUse, space.match) }
    }
    return found.sorted { ($0.length, $0.use) > ($1.length, $1.use) }.map(\.match)
  }

  /// Returns the next use of the nonce of a space; `nil` if the space was removed or has none.
  package mutating func ticket(_ number: UInt64, origin: Origin, cnonce: String) -> DigestTicket? {
    guard let slot = spaces.index(forKey: origin),
      let index = spaces.values[slot].firstIndex(where: { $0.match.number == number })
    else { return nil }
    return spaces.values[slot][index].takeTicket(cnonce: cnonce, &clock)
  }

  /// Returns the ticket of an answer to a challenge, with the next count of its nonce, whichever credential used it.
  package mutating func ticket(answering challenge: DigestChallenge, origin: Origin) -> DigestTicket {
    ticket(after: DigestTicket.first(for: challenge).counted(0), origin: origin)
  }

  /// Returns the next use of the nonce of a ticket, whichever credential used it last.
  package mutating func ticket(after ticket: DigestTicket, origin: Origin) -> DigestTicket {
    let slot = spaces.index(forKey: origin)
    let all = slot.map { spaces.values[$0] } ?? []
    let indices = all.indices.filter { all[$0].nonce.hasBytes(of: ticket.nonce) }
    let known = indices.map { all[$0].count }.max() ?? 0
    let next = answered.ticket(after: ticket.counted(max(ticket.count, known)), from: origin)
    if let slot { for index in indices { spaces.values[slot][index].count = next.count } }
    return next
  }

  /// Notes that a server has accepted credentials.
  package mutating func accepted(
    _ proof: AuthenticationProof, origin: Origin, target: String, nextNonce: String?
  ) {
    // Preemptive credentials without a realm do not identify the protection space that accepts them.
    guard let realm = proof.realm, !proof.scheme.isOfConnection else { return }
    clock += 1
    let lastCount = { [answered] nonce in answered.last(of: nonce, from: origin) }
    if let place = place(of: proof, realm: realm, origin: origin) {
      let domain = spaces.values[place.slot][place.index].match.digest?.domain
      // The same domain has the same prefixes, which the space has already.
      let isSame = proof.digest != nil && domain.hasBytes(of: proof.digest?.domain)
      let prefixes = isSame ? [] : Self.prefixes(of: proof, origin: origin, target: target)
      guard isSame || !prefixes.isEmpty else { return }
      spaces.values[place.slot][place.index]
        .accepted(proof, for: prefixes, nextNonce: nextNonce, at: clock, lastCount)
      return
    }
    let prefixes = Self.prefixes(of: proof, origin: origin, target: target)
    guard !prefixes.isEmpty else { return }
    makeRoom()
    let match = Match(
      number: clock, scheme: proof.scheme, realm: realm, credential: proof.credential, source: proof.source,
      digest: proof.digest)
    var space = Space(match: match, prefixes: prefixes, lastUse: clock)
    space.noteNonce(of: proof, next: nextNonce, lastCount)
    // Replaces the spaces of earlier schemes or challenges for the same credential.
    forget(proof.credential, realm: realm, origin: origin)
    spaces[origin, default: []].append(space)
    count += 1
  }

  /// Returns where the space of a proof is; `nil` if it is new.
  private func place(of proof: AuthenticationProof, realm: String, origin: Origin)
    -> (slot: Dictionary<Origin, [Space]>.Index, index: Int)?
  {
    guard let slot = spaces.index(forKey: origin),
      let index = spaces.values[slot].firstIndex(where: { $0.match.isSame(as: proof, realm: realm) })
    else { return nil }
    return (slot, index)
  }

  private static func prefixes(of proof: AuthenticationProof, origin: Origin, target: String) -> [String] {
    proof.scheme == .basic
      ? [ProtectionDomain.ofBasic(target: target)]
      : ProtectionDomain.ofDigest(proof.digest?.domain, origin: origin)
  }

  /// Removes the space of credentials that a server refused.
  package mutating func refused(_ proof: AuthenticationProof, origin: Origin) {
    forget(proof.credential, realm: proof.realm, origin: origin)
  }

  private mutating func forget(_ credential: PasswordCredential, realm: String?, origin: Origin) {
    guard var all = spaces[origin] else { return }
    let before = all.count
    all.removeAll { $0.match.credential == credential && $0.match.realm.hasBytes(of: realm) }
    count -= before - all.count
    spaces[origin] = all.isEmpty ? nil : all
  }

  private mutating func makeRoom() {
    guard count >= limit else { return }
    let oldest = spaces.min { left, right in
      (left.value.map(\.lastUse).min() ?? 0) < (right.value.map(\.lastUse).min() ?? 0)
    }
    guard let origin = oldest?.key, var all = oldest?.value,
      let index = all.indices.min(by: { all[$0].lastUse < all[$1].lastUse })
    else { return }
    all.remove(at: index)
    count -= 1
    spaces[origin] = all.isEmpty ? nil : all
  }
}

extension CredentialSpaces.Match {
  /// Whether the proof belongs to the same space: for Digest, also the same way to compute answers.
  fileprivate func isSame(as proof: AuthenticationProof, realm: String) -> Bool {
    scheme == proof.scheme && self.realm.hasBytes(of: realm) && credential == proof.credential
      && source == proof.source && digest?.asksLike(proof.digest) ?? true
  }
}

extension DigestChallenge {
  fileprivate func asksLike(_ other: DigestChallenge?) -> Bool {
    guard let other else { return false }
    return algorithm == other.algorithm && isSession == other.isSession && qualities == other.qualities
      && opaque.hasBytes(of: other.opaque) && hashesUser == other.hashesUser && isUTF8 == other.isUTF8
  }
}

extension CredentialSpaces.Space {
  private static let mostPrefixes = 16

  /// Returns the next use of the nonce; `nil` without one.
  fileprivate mutating func takeTicket(cnonce: String, _ clock: inout UInt64) -> DigestTicket? {
    guard !nonce.isEmpty, count < .max else { return nil }
    clock += 1
    lastUse = clock
    count += 1
    return DigestTicket(
      nonce: nonce, cnonce: match.digest?.isSession == true ? session?.cnonce ?? cnonce : cnonce,
      count: count, session: session, secret: secret)
  }

  /// Notes that the server has accepted credentials of the space for targets.
  ///
  /// - Parameter lastCount: Returns the last count of a nonce in answers to challenges.
  fileprivate mutating func accepted(
    _ proof: AuthenticationProof, for targets: [String], nextNonce: String?, at time: UInt64,
    _ lastCount: (String) -> UInt32
  ) {
    lastUse = time
    for prefix in targets where !prefixes.contains(where: { prefix.utf8.starts(with: $0.utf8) }) {
      prefixes.removeAll { $0.utf8.starts(with: prefix.utf8) }
      if prefixes.count >= Self.mostPrefixes { prefixes.removeFirst() }
      prefixes.append(prefix)
    }
    noteNonce(of: proof, next: nextNonce, lastCount)
  }

  fileprivate mutating func noteNonce(
    of proof: AuthenticationProof, next: String?, _ lastCount: (String) -> UInt32
  ) {
    guard let ticket = proof.ticket else { return }
    if let known = ticket.secret { secret = known }
    let isCurrent = proof.isAnswer || nonce.isEmpty || nonce.hasBytes(of: ticket.nonce)
    guard let new = next ?? (isCurrent ? ticket.nonce : nil) else { return }
    // The answer used the nonce, unless the next one is another. A count never falls (RFC 7616 §3.4).
    let used = max(new.hasBytes(of: ticket.nonce) ? ticket.count : 0, lastCount(new))
    guard !new.hasBytes(of: nonce) else {
      count = max(count, used)
      if proof.isAnswer { session = ticket.session }
      return
    }
    nonce = new
    count = used
    session = ticket.session
  }
}
