import Foundation
import FoundationNetworking
import HTTPWire

/// A cookie from a server, as it is stored in an `HTTPCookieStorage`. It has the attributes that Foundation's class
/// lacks: `SameSite`, whether it is a session cookie, and its creation time.
///
/// A storage returns the same objects that were stored. Cookies from its file have Foundation's class; a
/// ``CookieNote`` in the comment restores the attributes in the next process.
// Unchecked, as the superclass is: its own property is constant.
final class StoredCookie: HTTPCookie, @unchecked Sendable {
  let cookie: Cookie

  /// Makes a cookie for the storage; `nil` if Foundation makes no cookie of it.
  init?(_ cookie: Cookie) {
    self.cookie = cookie
    var properties: [HTTPCookiePropertyKey: Any] = [
      .name: cookie.name, .value: cookie.value, .path: cookie.path,
      // Foundation marks a domain cookie by a leading dot.
      .domain: cookie.isHostOnly ? cookie.domain : "." + cookie.domain,
    ]
    // Any text means yes, and anything that is no text means no.
    if cookie.isSecure { properties[.secure] = "TRUE" }
    // A text would be read by a formatter that ends the process for some.
    if let expiry = cookie.expiry {
      properties[.expires] = Date(timeIntervalSince1970: Double(expiry.secondsSince1970))
      properties[.comment] = CookieNote(cookie).text
    }
    super.init(properties: properties)
  }

  override var isHTTPOnly: Bool { cookie.isHTTPOnly }
  override var isSessionOnly: Bool { cookie.expiry == nil }
  override var comment: String? { nil }

  /// Such that a cookie made of them is the same, as far as Foundation can make one.
  override var properties: [HTTPCookiePropertyKey: Any]? {
    var properties = super.properties ?? [:]
    properties[.comment] = nil
    properties[.secure] = cookie.isSecure ? "TRUE" : nil
    properties[.discard] = cookie.expiry == nil ? "TRUE" : "FALSE"
    if cookie.isHTTPOnly { properties[.httpOnly] = "TRUE" }
    if let policy = sameSitePolicy { properties[.sameSitePolicy] = policy.rawValue }
    return properties
  }
}

extension HTTPCookiePropertyKey {
  static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
}
