import Foundation
import FoundationNetworking
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
