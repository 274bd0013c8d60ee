/// What makes one answer to a Digest challenge differ from every other one (RFC 7616 §3.4).
package struct DigestTicket: Sendable, Hashable {
  /// The nonces with which a `-sess` algorithm began.
  package struct Session: Sendable, Hashable {
    package let nonce: String
    package let cnonce: String
  }

  package let nonce: String
  /// The client's own nonce.
  package let cnonce: String
  /// How often the nonce has been used, this time included.
  package let count: UInt32
  package let session: Session

  package init(nonce: String, cnonce: String, count: UInt32, session: Session? = nil) {
    self.nonce = nonce
    self.cnonce = cnonce
    self.count = count
    self.session = session ?? Session(nonce: nonce, cnonce: cnonce)
  }

  /// The first answer to a challenge.
  package static func first(for challenge: DigestChallenge) -> DigestTicket {
    DigestTicket(nonce: challenge.nonce, cnonce: randomNonce(), count: 1)
  }

  /// 128 bits that nobody can guess.
  package static func randomNonce() -> String {
    var generator = SystemRandomNumberGenerator()
    let halves = [generator.next(), generator.next()] as [UInt64]
    return halves.map { half in
      let digits = String(half, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
    .joined()
  }

  /// Eight hexadecimal digits.
  package var countText: String {
    let digits = String(count, radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}

/// What a server says about an exchange that it has authenticated (RFC 7615 §3, RFC 7616 §3.5).
package struct AuthenticationInfo: Sendable, Equatable {
  /// The nonce that is to be used from now on.
  package let nextNonce: String?

  package init(_ fields: [String]) {
    nextNonce =
      fields.lazy.flatMap { field -> [Challenge.Parameter] in
        var scanner = ChallengeScanner(field)
        return scanner.parameters()
      }
      // It is sent back, and must not break the line.
      .first { $0.name == "nextnonce" && !$0.value.isEmpty && HeaderFieldRules.isFieldValue($0.value) }?.value
  }
}
