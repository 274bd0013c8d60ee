/// A cookie as it is kept (RFC 6265bis §5.7).
package struct Cookie: Sendable, Equatable {
  /// Which requests that another site has caused may carry the cookie (RFC 6265bis §5.6.7).
  package enum SameSite: String, Sendable {
    case strict = "Strict"
    case lax = "Lax"
    case none = "None"
  }

  /// May be empty: then the value alone is sent.
  package var name: String
  package var value: String
  /// ASCII, lower case, without a dot in front and without the brackets of an IPv6 address.
  package var domain: String
  /// Whether ``domain`` is the only host that gets it.
  package var isHostOnly: Bool
  /// Begins with a slash.
  package var path: String
  package var isSecure = false
  package var isHTTPOnly = false
  /// The attribute `SameSite`; `nil` if it is missing or unknown.
  package var sameSite: SameSite?
  /// The time at which the cookie expires; `nil` for the end of the session.
  package var expiry: HTTPDate?
  /// The time at which a cookie of this identity was first stored, in microseconds since the beginning of 1970. Of
  /// cookies with paths of one length the older is sent first.
  package var creation: Int64
  /// The ports that it is for; empty for all. Only cookies that a program has made itself have some.
  package var ports: [Int] = []

  package init(
    name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/",
    creation: Int64 = 0
  ) {
    self.name = name
    self.value = value
    self.domain = domain
    self.isHostOnly = isHostOnly
    self.path = path
    self.creation = creation
  }

  /// Whether one replaces the other (RFC 6265bis §5.7, "with the same name, domain, host-only-flag, and path").
  package func hasIdentity(of other: Cookie) -> Bool {
    // Byte by byte: to a server, `é` and `e` with an accent are not one name.
    domain == other.domain && isHostOnly == other.isHostOnly && name.utf8.elementsEqual(other.name.utf8)
      && path.utf8.elementsEqual(other.path.utf8)
  }

  /// Whether nothing changes when the other takes its place. Texts are equal to Swift when they look the same; to a
  /// server their bytes count.
  package func isKept(as other: Cookie) -> Bool {
    self == other && hasIdentity(of: other) && value.utf8.elementsEqual(other.value.utf8)
  }

  package func isExpired(at now: HTTPDate) -> Bool {
    expiry.map { $0 <= now } ?? false
  }

  /// The pair of a `Cookie` field (RFC 6265bis §5.8.3).
  package var pair: String { name.isEmpty ? value : name + "=" + value }
}
