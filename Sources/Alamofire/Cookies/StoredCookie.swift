import Foundation
import FoundationNetworking
import HTTPWire

/// A cookie that a server has set, as it lies in an `HTTPCookieStorage`. It remembers what Foundation's own class
/// does not: `SameSite`, whether it ends with the session, when the cookie first came.
///
/// A storage hands out the very objects that it was given, so that whatever it holds is ours again when it comes back. What it
/// writes to a file loses its class; a ``CookieNote`` in the comment brings the rest back in the next process.
// Unchecked: the superclass is, and what is added never changes.
final class StoredCookie: HTTPCookie, @unchecked Sendable {
  let cookie: Cookie

  /// `nil` if Foundation makes no cookie of it.
  init?(_ cookie: Cookie) {
    self.cookie = cookie
    var properties: [HTTPCookiePropertyKey: Any] = [
      .name: cookie.name, .value: cookie.value, .path: cookie.path,
      // The dot is how Foundation tells a domain from a host.
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
