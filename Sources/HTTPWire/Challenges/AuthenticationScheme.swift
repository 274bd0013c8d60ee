/// The schemes that challenges can be answered with.
package enum AuthenticationScheme: Sendable, Hashable, CaseIterable {
  /// RFC 7617.
  case basic
  /// RFC 7616.
  case digest
  /// Microsoft's, in which a connection is authenticated and not a request.
  case ntlm
  /// RFC 4559; likewise.
  case negotiate

  /// Whether it is the connection that is authenticated, by the transport.
  package var isOfConnection: Bool {
    switch self {
    case .basic, .digest: false
    case .ntlm, .negotiate: true
    }
  }

  package init?(name: String) {
    switch name.lowercased() {
    case "basic": self = .basic
    case "digest": self = .digest
    case "ntlm": self = .ntlm
    case "negotiate": self = .negotiate
    default: return nil
    }
  }
}

/// A challenge that can be answered, with the right credential.
package struct AuthenticationOffer: Sendable, Equatable {
  package let scheme: AuthenticationScheme
  package let realm: String?
  /// The challenge of the scheme Digest.
  package let digest: DigestChallenge?

  package init?(_ challenge: Challenge) {
    guard let scheme = AuthenticationScheme(name: challenge.scheme) else { return nil }
    self.scheme = scheme
    realm = challenge.realm
    switch scheme {
    case .digest:
      guard let digest = DigestChallenge(challenge) else { return nil }
      self.digest = digest
    case .basic, .ntlm, .negotiate: digest = nil
    }
  }

  /// Returns the challenges that can be answered, the strongest first; equal ones in the order of the server.
  ///
  /// - Parameters:
  ///   - challenges:        The challenges of the server.
  ///   - connectionSchemes: The connection-based schemes that the transport supports.
  ///   - knows:             Whether a hash function is available.
  package static func ranked(
    _ challenges: [Challenge], connectionSchemes: Set<AuthenticationScheme> = [],
    knows: (DigestChallenge.Algorithm) -> Bool = { _ in true }
  ) -> [AuthenticationOffer] {
    let offers = challenges.compactMap { AuthenticationOffer($0) }.filter { offer in
      if let digest = offer.digest { return knows(digest.algorithm) }
      return !offer.scheme.isOfConnection || connectionSchemes.contains(offer.scheme)
    }
    // Swift's sort keeps the order of equals, but does not promise it.
    return offers.enumerated().sorted { left, right in
      let (first, second) = (left.element.strength, right.element.strength)
      return first == second ? left.offset < right.offset : first > second
    }
    .map(\.element)
  }

  /// A password is meant for Digest more than for a ticket; in the clear it goes last.
  private var strength: Int {
    switch scheme {
    case .basic: 0
    case .ntlm: 1
    case .negotiate: 2
    case .digest: 3 + (digest?.algorithm.strength ?? 0)
    }
  }
}

/// The credential with which the transport authenticates the connection of one request, by NTLM or Negotiate. NTLM
/// and Negotiate authenticate a connection and so every request on it.
package struct ConnectionLogin: Sendable, Hashable {
  package let scheme: AuthenticationScheme
  package let credential: PasswordCredential

  package init(scheme: AuthenticationScheme, credential: PasswordCredential) {
    self.scheme = scheme
    self.credential = credential
  }
}
