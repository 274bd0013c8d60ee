/// Why a cookie is not stored. Never holds a value, which may be a secret.
package enum CookieRefusal: Error, Sendable, Equatable {
  /// Neither name nor value.
  case empty
  /// Name and value have more than 4096 bytes together.
  case tooLong
  /// A control character other than a tab.
  case controlCharacter
  /// Name or value is no UTF-8: it could not be sent back as it came.
  case notText
  /// `Domain` names a host that the one that answered does not lie in.
  case foreignDomain(String)
  /// `Domain` names a public suffix.
  case publicSuffix(String)
  /// `Secure`, from a server that is not.
  case secureFromInsecureOrigin
  /// It would hide or push out one that is `Secure`, from a server that is not.
  case shadowsSecureCookie
  /// `SameSite=None` without `Secure`.
  case sameSiteNoneWithoutSecure
  /// `SameSite` by a server of another site than the document that the request was made for.
  case crossSite
  /// A name or a value that begins with `__Secure-` or `__Host-`, without what that promises.
  case brokenPrefix
  /// The accept policy takes none, or none from this host.
  case policy

  /// One sentence for people.
  package var message: String {
    switch self {
    case .empty: "The cookie has neither a name nor a value."
    case .tooLong: "Name and value of the cookie have more than 4096 bytes together (RFC 6265bis §5.6)."
    case .controlCharacter: "The cookie contains a control character (RFC 6265bis §5.6)."
    case .notText: "Name or value of the cookie is not UTF-8, so that it could not be sent back as it came."
    case .foreignDomain(let domain): "The server does not lie in the domain \"\(domain)\" of the cookie."
    case .publicSuffix(let domain): "The domain \"\(domain)\" of the cookie is a public suffix."
    case .secureFromInsecureOrigin: "The cookie is Secure, but came without TLS."
    case .shadowsSecureCookie: "The cookie came without TLS and would take the place of one that is Secure."
    case .sameSiteNoneWithoutSecure: "A cookie with SameSite=None must be Secure as well."
    case .crossSite: "The cookie has SameSite, and the request was made for a document of another site."
    case .brokenPrefix: "The prefix of the cookie's name promises what its attributes do not say."
    case .policy: "The accept policy does not allow the cookie."
    }
  }
}
