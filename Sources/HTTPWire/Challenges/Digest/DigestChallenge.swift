/// A Digest challenge (RFC 7616 §3.3).
package struct DigestChallenge: Sendable, Hashable {
  /// The hash functions of RFC 7616 §6.1, and SHA-512, which is used in practice.
  package enum Algorithm: String, Sendable, Hashable, CaseIterable {
    case md5 = "MD5"
    case sha256 = "SHA-256"
    case sha512Half = "SHA-512-256"
    case sha512 = "SHA-512"

    var strength: Int {
      switch self {
      case .md5: 0
      case .sha256: 1
      case .sha512: 2
      case .sha512Half: 3
      }
    }
  }

  /// The quality of protection (RFC 7616 §3.4.1).
  package enum Quality: String, Sendable, Hashable {
    /// Method and target.
    case auth
    /// Also the content of the request.
    case authInt = "auth-int"
  }

  package let realm: String
  package let nonce: String
  package let opaque: String?
  package let algorithm: Algorithm
  /// The algorithm as the server wrote it; `nil` if it did not.
  package let algorithmName: String?
  /// Whether the password is hashed once for several requests (`-sess`).
  package let isSession: Bool
  /// The offered qualities; empty for a server that supports only RFC 2069.
  package let qualities: Set<Quality>
  /// Whether the nonce has expired, so that the credential may be valid.
  package let isStale: Bool
  /// Whether the name is sent as a hash.
  package let hashesUser: Bool
  package let isUTF8: Bool
  /// The protection space (RFC 7616 §3.3), as the server wrote it.
  package let domain: String?

  /// Reads a challenge; `nil` if it cannot be answered: without a nonce, or with an unknown algorithm or quality.
  package init?(_ challenge: Challenge) {
    guard challenge.scheme == "digest", let nonce = challenge["nonce"], !nonce.isEmpty else { return nil }
    self.nonce = nonce
    realm = challenge.realm ?? ""
    opaque = challenge["opaque"]
    algorithmName = challenge["algorithm"]
    guard let (algorithm, isSession) = Self.algorithm(named: algorithmName ?? "MD5") else { return nil }
    self.algorithm = algorithm
    self.isSession = isSession
    let named = challenge["qop"] ?? ""
    let words = named.split { $0 == "," || $0 == " " || $0 == "\t" }
    qualities = Set(words.compactMap { Quality(rawValue: $0.lowercased()) })
    guard words.isEmpty || !qualities.isEmpty else { return nil }
    // Without a quality no nonce of the client is sent, by which the server could know the session.
    guard !isSession || !qualities.isEmpty else { return nil }
    isStale = Self.isTrue(challenge["stale"])
    hashesUser = Self.isTrue(challenge["userhash"])
    isUTF8 = challenge["charset"].map { $0.lowercased() == "utf-8" } ?? false
    domain = challenge["domain"]
    // All of these are sent back; none may break the line.
    guard [realm, nonce, opaque ?? ""].allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }) else {
      return nil
    }
  }

  private static func algorithm(named name: String) -> (Algorithm, Bool)? {
    var name = name.uppercased()
    let isSession = name.hasSuffix("-SESS")
    if isSession { name.removeLast(5) }
    return Algorithm(rawValue: name).map { ($0, isSession) }
  }

  private static func isTrue(_ value: String?) -> Bool { value?.lowercased() == "true" }
}
