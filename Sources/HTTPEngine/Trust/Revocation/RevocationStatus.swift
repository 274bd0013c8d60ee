/// What is known about whether a certificate was revoked.
package enum RevocationStatus: Sendable, Equatable {
  /// Its issuer says that it was not. The time, in seconds since 1970, is how long that may be believed; `nil`
  /// when the issuer does not say.
  case good(until: Int?)
  case revoked
  /// A list names it, and cannot be used; the sentence tells why.
  case listed(String)
  /// Nobody who may say it has said anything. The sentence tells why, for the message of an error.
  case unknown(String)

  /// Clocks of issuers and clients differ by no more than this, in seconds.
  static let skew = 300
}
