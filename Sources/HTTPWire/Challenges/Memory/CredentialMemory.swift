import Synchronization

/// The credentials that servers have accepted of one session. From any thread.
package final class CredentialMemory: Sendable {
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
