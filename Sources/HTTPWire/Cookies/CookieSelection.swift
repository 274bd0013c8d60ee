/// The cookies of a request and their order (RFC 6265bis §5.8.3): pure.
///
/// `SameSite` was designed for browsers, where any page can cause a request. In a client, only a redirect can cause a
/// request that the program did not make. Therefore a request is cross-site after a redirect from another site, or if
/// the program sets a document of another site.
package enum CookieSelection {
  /// The cause of a request.
  package enum Cause: Sendable, Hashable {
    /// The program, or a redirect within the site of the program's request.
    case sameSite
    /// A redirect from another site, which corresponds to a followed link in a browser.
    case redirect(isSafe: Bool)
    /// A document of another site, which contains the requested resource.
    case foreignDocument

    /// Whether a cookie may be sent.
    package func allows(_ sameSite: Cookie.SameSite?) -> Bool {
      switch (sameSite, self) {
      // RFC 6265bis treats an absent attribute as `Lax`, but allows `None`, which clients other than browsers use.
      case (nil, _), (Cookie.SameSite.none?, _), (_, .sameSite): true
      case (.lax?, .redirect(let isSafe)): isSafe
      case (.lax?, .foreignDocument), (.strict?, _): false
      }
    }
  }

  /// Returns the cause of a hop.
  ///
  /// - Parameters:
  ///   - origin:        The origin of the hop.
  ///   - method:        The method of the hop.
  ///   - initialOrigin: The origin of the caller's request.
  ///   - redirectors:   The other origins that have redirected the request. One of another site may have chosen the
  ///                    URL, even if the hop is back at the first site.
  ///   - document:      The origin of the document that the caller names (`mainDocumentURL`), if it names one.
  package static func cause(
    of origin: Origin, method: String, initialOrigin: Origin, redirectors: [Origin], document: Origin?,
    suffixes: any PublicSuffixes
  ) -> Cause {
    if let document { return suffixes.isSameSite(origin, document) ? .sameSite : .foreignDocument }
    func isWithinSite(_ other: Origin) -> Bool {
      other == initialOrigin || suffixes.isSameSite(other, initialOrigin)
    }
    if isWithinSite(origin), redirectors.allSatisfy(isWithinSite) { return .sameSite }
    return .redirect(isSafe: ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method))
  }

  /// Returns the cookies for a target, in the order in which they are sent: longer paths first, then older ones.
  ///
  /// - Parameter cause: Asked once at most, and only when a cookie depends on it.
  package static func cookies(
    for target: CookieTarget, from cookies: some Sequence<Cookie>, now: HTTPDate, cause: () -> Cause
  ) -> [Cookie] {
    var known: Cause?
    var chosen: [Cookie] = []
    for cookie in cookies where target.isMet(by: cookie) && !cookie.isExpired(at: now) {
      if cookie.sameSite == .strict || cookie.sameSite == .lax {
        let cause = known ?? cause()
        known = cause
        guard cause.allows(cookie.sameSite) else { continue }
      }
      chosen.append(cookie)
    }
    return chosen.sorted { left, right in
      let (a, b) = (left.path.utf8.count, right.path.utf8.count)
      return a == b ? left.creation < right.creation : a > b
    }
  }

  /// Returns the value of the `Cookie` field, or `nil` for none. Cookies that are invalid in a field are omitted.
  package static func field(_ cookies: [Cookie]) -> String? {
    let pairs = cookies.map(\.pair).filter { HeaderFieldRules.isFieldValue($0) }
    return pairs.isEmpty ? nil : pairs.joined(separator: "; ")
  }
}

/// The parts of a URL that a cookie has to match: host, path and scheme.
package struct CookieTarget: Sendable, Hashable {
  /// ASCII, lower case, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int
  /// Begins with a slash, and is not percent-decoded.
  package let path: String
  /// Whether the connection to the target is encrypted.
  package let isSecure: Bool

  package init(host: String, port: Int = 80, path: String = "/", isSecure: Bool = false) {
    self.host = host
    self.port = port
    self.path = path
    self.isSecure = isSecure
  }

  /// Makes the target of a request to a URL.
  ///
  /// - Parameters:
  ///   - url:    An absolute URL.
  ///   - origin: The origin of the URL.
  package init(url: String, origin: Origin) {
    self.init(
      host: origin.host, port: origin.port, path: Self.path(of: url),
      isSecure: origin.scheme == "https" || origin.scheme == "wss")
  }

  /// Makes the target of an absolute http or https URL; `nil` for any other text.
  package init?(url: String) {
    guard let origin = Origin(url: url) else { return nil }
    self.init(url: url, origin: origin)
  }

  private static func path(of url: String) -> String {
    var url = url
    return url.withUTF8 { bytes in
      guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return "/" }
      let authority = bytes[colon...].dropFirst(3)
      let start = authority.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? authority.endIndex
      let path = authority[start...].prefix { $0 != 0x3F && $0 != 0x23 }
      return path.isEmpty ? "/" : String(decoding: path, as: UTF8.self)
    }
  }

  /// The path of a cookie that names none: the folder of the URL that set it (RFC 6265bis §5.1.4). Of a folder that is
  /// longer than an attribute may be, it is the deepest parent that is short enough, because a server chooses the URLs
  /// of its redirects.
  package var defaultPath: String {
    let start = path.utf8.prefix(SetCookie.attributeLimit + 1)
    guard let last = start.lastIndex(of: UInt8(ascii: "/")), last > path.startIndex else { return "/" }
    return String(path[..<last])
  }

  /// Whether the host is an address; no domain covers one but itself.
  package var isAddress: Bool { Self.isAddress(host) }

  /// Whether a host is an address: one with colons, or one with a number as its last label, which is IPv4 in some
  /// spelling.
  package static func isAddress(_ host: String) -> Bool {
    let host = host.utf8
    if host.contains(UInt8(ascii: ":")) { return true }
    let digits = host.last == UInt8(ascii: ".") ? host.dropLast() : host[...]
    let label = digits[
      (digits.lastIndex(of: UInt8(ascii: ".")).map { digits.index(after: $0) } ?? digits.startIndex)...]
    guard let first = label.first, (0x30...0x39).contains(first) else { return false }
    return label.allSatisfy { (0x30...0x39).contains($0) } || label.starts(with: "0x".utf8)
  }

  /// Whether this host is `domain` or one of its subdomains (RFC 6265bis §5.1.3).
  package func isCovered(by domain: String) -> Bool {
    Self.covers(domain, host: host)
  }

  static func covers(_ domain: String, host: String) -> Bool {
    if domain == host { return true }
    let (host, domain) = (host.utf8, domain.utf8)
    guard !domain.isEmpty, host.count > domain.count, host.reversed().starts(with: domain.reversed()),
      host[host.index(host.endIndex, offsetBy: -domain.count - 1)] == UInt8(ascii: ".")
    else { return false }
    return !isAddress(String(host))
  }

  /// Whether the path is `path` or below it (RFC 6265bis §5.1.4).
  package func isBelow(_ path: String) -> Bool {
    Self.isPath(self.path, below: path)
  }

  static func isPath(_ path: String, below folder: String) -> Bool {
    let (path, folder) = (path.utf8, folder.utf8)
    guard path.starts(with: folder) else { return false }
    return path.count == folder.count || folder.last == UInt8(ascii: "/")
      || path[path.index(path.startIndex, offsetBy: folder.count)] == UInt8(ascii: "/")
  }

  /// Whether host, path, port and encryption allow a cookie. The cause of the request is checked separately.
  package func isMet(by cookie: Cookie) -> Bool {
    guard cookie.isHostOnly ? cookie.domain == host : isCovered(by: cookie.domain) else { return false }
    return (isSecure || !cookie.isSecure) && isBelow(cookie.path)
      && (cookie.ports.isEmpty || cookie.ports.contains(port))
  }
}

/// The `Cookie` fields for an unchanged set of cookies, so that a repeated request neither selects nor sorts cookies.
///
/// A field depends on the host, the port, the path and the encryption of the target. If a cookie expires, the field
/// depends on the time, and if a cookie has a `SameSite` attribute, on the cause of the request.
package struct CookieFieldCache: Sendable {
  private struct Key: Hashable {
    let target: CookieTarget
    /// `nil` where no cookie depends on it.
    let cause: CookieSelection.Cause?
  }

  /// The facts that are known of a target.
  package enum CookieEntry: Sendable, Equatable {
    /// The value of the field, `nil` without cookies; from when, and when the first of its cookies expires.
    case field(String?, from: HTTPDate, until: HTTPDate?)
    /// The field depends on the cause, which has to be passed.
    case dependsOnCause
  }

  /// The most targets. One more removes all, because a program may use any number of paths.
  package static let limit = 256

  /// The most bytes of all fields with their targets. One more removes all.
  package static let byteLimit = 1 << 20
  /// The most bytes of a field, and of a path. The path of a longer one is hardly requested again.
  package static let longest = 8_192

  private var entries: [Key: CookieEntry] = [:]
  private var byteCount = 0

  package init() {}

  package var count: Int { entries.count }

  /// Returns the facts that are known of a target; `nil` when there are none, or when they have expired.
  package func entry(
    for target: CookieTarget, cause: CookieSelection.Cause? = nil, now: HTTPDate
  ) -> CookieEntry? {
    let entry = entries[Key(target: target, cause: cause)]
    // A clock that was set back makes cookies valid again that had expired.
    guard case .field(_, let from, let until) = entry else { return entry }
    return from <= now && until.map { now < $0 } != false ? entry : nil
  }

  /// Stores the field for a target, unless it is very long.
  ///
  /// - Parameters:
  ///   - cookies: The cookies in the field.
  ///   - cause:   The cause of the request, if a cookie depends on it.
  package mutating func remember(
    _ field: String?, of cookies: [Cookie], for target: CookieTarget, cause: CookieSelection.Cause?,
    now: HTTPDate
  ) {
    let (length, pathLength) = (field?.utf8.count ?? 0, target.path.utf8.count)
    guard length <= Self.longest, pathLength <= Self.longest else { return }
    let size = length + pathLength + target.host.utf8.count
    if entries.count >= Self.limit || byteCount + size > Self.byteLimit {
      entries.removeAll()
      byteCount = 0
    }
    byteCount += size
    if cause != nil { entries[Key(target: target, cause: nil)] = .dependsOnCause }
    let until = cookies.compactMap(\.expiry).min()
    entries[Key(target: target, cause: cause)] = .field(field, from: now, until: until)
  }
}
