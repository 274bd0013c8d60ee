/// The values that make each answer to a Digest challenge unique (RFC 7616 §3.4).
package struct DigestTicket: Sendable, Hashable {
  /// The nonces with which a `-sess` algorithm began.
  package struct Session: Sendable, Hashable {
    package let nonce: String
    package let cnonce: String
  }

  package let nonce: String
  /// The client's own nonce.
  package let cnonce: String
  /// The number of uses of the nonce, this one included.
  package let count: UInt32
  package let session: Session

  package init(nonce: String, cnonce: String, count: UInt32, session: Session? = nil) {
    self.nonce = nonce
    self.cnonce = cnonce
    self.count = count
    self.session = session ?? Session(nonce: nonce, cnonce: cnonce)
  }

  /// Makes the ticket of the first answer to a challenge.
  package static func first(for challenge: DigestChallenge) -> DigestTicket {
    DigestTicket(nonce: challenge.nonce, cnonce: randomNonce(), count: 1)
  }

  /// Returns 128 random bits in hexadecimal digits.
  package static func randomNonce() -> String {
    var generator = SystemRandomNumberGenerator()
    return digits(of: generator.next() as UInt64) + digits(of: generator.next() as UInt64)
  }

  /// Eight hexadecimal digits.
  package var countText: String { Self.digits(of: count) }

  private static func digits(of number: some FixedWidthInteger) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: number.bitWidth / 4 - digits.utf8.count) + digits
  }
}

/// The statement of a server about an authenticated exchange (RFC 7615 §3, RFC 7616 §3.5).
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
