import Foundation
public import FoundationNetworking
import HTTPWire

extension Cookie {
  /// Reads a cookie of a storage. A cookie that this process received from a server has all of its attributes. Other
  /// cookies are read by Foundation's rule: a domain with a leading dot includes subdomains.
  init(_ object: HTTPCookie) {
    if let stored = object as? StoredCookie {
      self = stored.cookie
      return
    }
    let note = object.comment.flatMap { CookieNote($0) }
    var domain = object.domain.lowercased()
    let isDomain = domain.hasPrefix(".")
    if isDomain { domain.removeFirst() }
    if domain.hasPrefix("["), domain.hasSuffix("]") { domain = String(domain.dropFirst().dropLast()) }
    if !domain.utf8.allSatisfy({ $0 < 0x80 }) { domain = Authority(domain)?.host ?? domain }
    self.init(
      name: object.name, value: object.value, domain: domain,
      isHostOnly: !isDomain || CookieTarget.isAddress(domain),
      path: object.path.utf8.first == UInt8(ascii: "/") ? object.path : "/",
      creation: note?.creation ?? Self.creation(of: object))
    isSecure = object.isSecure || note?.isSecure == true
    isHTTPOnly = object.isHTTPOnly || note?.isHTTPOnly == true
    sameSite = note?.sameSite
    expiry = object.expiresDate.map { HTTPDate(clamping: $0) }
    ports = object.portList?.map(\.intValue) ?? []
  }

  /// Returns the time of creation in microseconds since 1970. Foundation counts seconds from 2001.
  private static func creation(of object: HTTPCookie) -> Int64 {
    guard let seconds = object.properties?[.created] as? Double else { return 0 }
    let microseconds = (seconds + Date.timeIntervalBetween1970AndReferenceDate) * 1e6
    return Int64(exactly: microseconds.rounded()) ?? 0
  }
}

extension HTTPCookiePropertyKey {
  fileprivate static let created = HTTPCookiePropertyKey("Created")
}

extension HTTPDate {
  static var now: HTTPDate { HTTPDate(clamping: Date()) }

  /// Makes a date, or the nearest one if `date` is out of bounds.
  init(clamping date: Date) {
    let seconds = date.timeIntervalSince1970.rounded(.down)
    self.init(secondsSince1970: Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max))
  }
}

extension CookiePolicy {
  init(_ policy: HTTPCookie.AcceptPolicy) {
    switch policy {
    case .always: self = .always
    case .never: self = .never
    case .onlyFromMainDocumentDomain: self = .onlyFromMainDocumentDomain
    @unknown default: self = .never
    }
  }
}

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
    // Any text means yes, and anything that is not text means no.
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

  /// A cookie created from these properties is the same, as far as Foundation can create one.
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

/// The attributes that Foundation does not write to its file, as text for the comment of a cookie, which it does
/// write. A note can only make a cookie stricter, so a comment written by other code does no harm.
struct CookieNote: Equatable {
  var isSecure = false
  var isHTTPOnly = false
  var sameSite: Cookie.SameSite?
  /// In microseconds since the beginning of 1970.
  var creation: Int64?

  init(_ cookie: Cookie) {
    isSecure = cookie.isSecure
    isHTTPOnly = cookie.isHTTPOnly
    sameSite = cookie.sameSite
    creation = cookie.creation
  }

  /// Parses a comment; `nil` if it is not a note.
  init?(_ comment: String) {
    let parts = comment.split(separator: "; ")
    guard parts.first == Self.mark else { return nil }
    for part in parts.dropFirst() {
      switch part {
      case "Secure": isSecure = true
      case "HttpOnly": isHTTPOnly = true
      default:
        let pair = part.split(separator: "=", maxSplits: 1)
        guard pair.count == 2 else { continue }
        if pair[0] == "SameSite" { sameSite = Cookie.SameSite(rawValue: String(pair[1])) }
        if pair[0] == "Created" { creation = Int64(pair[1]) }
      }
    }
  }

  var text: String {
    var parts = [String(Self.mark)]
    if isSecure { parts.append("Secure") }
    if isHTTPOnly { parts.append("HttpOnly") }
    if let sameSite { parts.append("SameSite=\(sameSite.rawValue)") }
    if let creation { parts.append("Created=\(creation)") }
    return parts.joined(separator: "; ")
  }

  private static let mark: Substring = "Alamofire"
}

/// Which requests that another site has caused may carry a cookie (RFC 6265bis §4.1.2.7). Foundation on Linux
/// lacks it; it has the name and the values of Apple's.
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
  /// The text of the policy, in lower case.
  public let rawValue: String

  /// Makes a policy of any text; only ``sameSiteLax`` and ``sameSiteStrict`` mean something.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// After a redirect from another site the cookie is sent only with `GET`, `HEAD`, `OPTIONS` and `TRACE`.
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
