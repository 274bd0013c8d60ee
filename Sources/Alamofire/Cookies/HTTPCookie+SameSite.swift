public import FoundationNetworking
import HTTPWire

/// Which requests that another site has caused may carry a cookie (RFC 6265bis §4.1.2.7). Foundation on Linux
/// lacks it; it has the name and the values of Apple's.
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
  /// The text behind the policy, in lower case.
  public let rawValue: String

  /// Makes a policy of any text; only ``sameSiteLax`` and ``sameSiteStrict`` mean something.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// After a redirect from another site the cookie goes along with `GET`, `HEAD`, `OPTIONS` and `TRACE` alone.
  public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
  /// After a redirect from another site the cookie does not go along.
  public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}

extension HTTPCookie {
  /// The value of the `SameSite` attribute; `nil` if it is absent or `None`. The value is also `nil` for a cookie that
  /// no session of this library has stored, because Foundation on Linux drops the attribute.
  ///
  /// ```swift
  /// for cookie in HTTPCookieStorage.shared.cookies ?? [] where cookie.sameSitePolicy == .sameSiteStrict {
  ///   print(cookie.name)
  /// }
  /// ```
  public var sameSitePolicy: HTTPCookieStringPolicy? {
    switch Cookie(self).sameSite {
    case .strict?: .sameSiteStrict
    case .lax?: .sameSiteLax
    case Cookie.SameSite.none?, nil: nil
    }
  }
}

extension HTTPCookiePropertyKey {
  /// The key of `SameSite` in the ``FoundationNetworking/HTTPCookie/properties`` of a cookie that a session has
  /// stored. Foundation on Linux ignores it in a cookie that a program makes.
  public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
}
