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
