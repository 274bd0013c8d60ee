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
}
