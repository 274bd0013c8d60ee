/// Which cookies are stored (RFC 6265bis §5.7): pure, one cookie at a time.
package struct CookieRules: Sendable {
  /// The URL that set the cookie.
  package var target: CookieTarget
  package var suffixes: any PublicSuffixes
  package var now: HTTPDate
  /// Whether the request was made for a document of another site. A request without a document is its own document.
  package var isThirdParty = false

  package init(target: CookieTarget, suffixes: any PublicSuffixes, now: HTTPDate) {
    self.target = target
    self.suffixes = suffixes
    self.now = now
  }

  package enum Decision: Sendable, Equatable {
    /// The cookie to store, replacing the one at this index if there is one.
    case store(Cookie, replacing: Int?)
    /// The index of the cookie to remove, because the new one has expired.
    case remove(Int)
    /// An expired cookie of which none was stored.
    case nothing
    case refuse(CookieRefusal)
  }

  /// A cookie lives for 400 days at most (RFC 6265bis §5.6.1, §5.6.2), in seconds.
  package static let longestLife: Int64 = 400 * 86_400
  /// The most cookies of one domain; one more evicts another (RFC 6265bis §6.1 requires at least 50).
  package static let domainLimit = 180
  /// The most cookies of a storage (RFC 6265bis §6.1 requires at least 3000).
  package static let totalLimit = 3000

  /// Decides about one `Set-Cookie` field.
  ///
  /// - Parameters:
  ///   - wish:     The field.
  ///   - existing: The cookies that are stored, in any order.
  ///   - creation: When a new cookie was created, in microseconds.
  package func decide(_ wish: SetCookie, existing: [Cookie], creation: Int64) -> Decision {
    do throws(CookieRefusal) {
      var cookie = try checked(wish)
      cookie.creation = creation
      try checkShadow(cookie, existing)
      let old = existing.firstIndex { $0.hasIdentity(of: cookie) }
      if cookie.isExpired(at: now) { return old.map { .remove($0) } ?? .nothing }
      if let old { cookie.creation = existing[old].creation }
      return .store(cookie, replacing: old)
    } catch {
      return .refuse(error)
    }
  }

  /// Returns the cookie that a field asks for, if it may be stored.
  private func checked(_ wish: SetCookie) throws(CookieRefusal) -> Cookie {
    var cookie = Cookie(name: wish.name, value: wish.value, domain: target.host)
    if let domain = try domain(wish) {
      cookie.domain = domain
      cookie.isHostOnly = false
    }
    cookie.path = wish.path.flatMap { $0.isEmpty ? nil : $0 } ?? target.defaultPath
    cookie.isSecure = wish.isSecure
    cookie.isHTTPOnly = wish.isHTTPOnly
    cookie.sameSite = wish.sameSite
    cookie.expiry = expiry(wish)
    if cookie.isSecure, !target.isSecure { throw .secureFromInsecureOrigin }
    if cookie.sameSite == Cookie.SameSite.none, !cookie.isSecure { throw .sameSiteNoneWithoutSecure }
    if isThirdParty, cookie.sameSite == .strict || cookie.sameSite == .lax { throw .crossSite }
    try checkPrefix(cookie, wish)
    return cookie
  }

  /// Returns the domain that a cookie is for beyond the host that set it; `nil` for that host alone.
  private func domain(_ wish: SetCookie) throws(CookieRefusal) -> String? {
    guard let domain = wish.domain, !domain.isEmpty else { return nil }
    guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { throw .foreignDomain(domain) }
    if target.isAddress, domain == target.host || domain == "[\(target.host)]" { return nil }
    // With a dot at its end a name is the same to the DNS, and another one to lists of suffixes.
    let name = String(domain.reversed().drop { $0 == "." }.reversed())
    if suffixes.isPublicSuffix(name) {
      // A host that is one itself, such as `localhost`, gets the cookie for itself.
      if domain == target.host { return nil }
      throw .publicSuffix(domain)
    }
    guard target.isCovered(by: domain) else { throw .foreignDomain(domain) }
    return domain
  }

  private func expiry(_ wish: SetCookie) -> HTTPDate? {
    if let maxAge = wish.maxAge {
      guard maxAge > 0 else { return HTTPDate(secondsSince1970: .min) }
      return HTTPDate(secondsSince1970: now.secondsSince1970 + min(maxAge, Self.longestLife))
    }
    return wish.expires.map {
      min($0, HTTPDate(secondsSince1970: now.secondsSince1970 + Self.longestLife))
    }
  }

  /// Checks the requirements of the prefix of a name, in any case (RFC 6265bis §4.1.3).
  private func checkPrefix(_ cookie: Cookie, _ wish: SetCookie) throws(CookieRefusal) {
    func begins(_ text: String, _ prefix: String) -> Bool {
      let text = text.utf8.prefix(prefix.utf8.count)
      return text.first == UInt8(ascii: "_") && text.map(FieldName.lowercased).elementsEqual(prefix.utf8)
    }
    if cookie.name.isEmpty {
      // Sent without a name, it would read like one with such a name.
      if begins(cookie.value, "__secure-") || begins(cookie.value, "__host-") { throw .brokenPrefix }
    }
    if begins(cookie.name, "__secure-"), !cookie.isSecure { throw .brokenPrefix }
    if begins(cookie.name, "__host-") {
      guard cookie.isSecure, cookie.isHostOnly, wish.domain?.isEmpty ?? true, wish.path == "/" else {
        throw .brokenPrefix
      }
    }
  }

  /// Refuses a cookie of an insecure origin that would replace or hide a secure one (RFC 6265bis §5.7).
  private func checkShadow(_ cookie: Cookie, _ existing: [Cookie]) throws(CookieRefusal) {
    guard !cookie.isSecure, !target.isSecure else { return }
    // A cookie without a name is read by servers as if the text before the equals sign in its value were the name.
    let name =
      cookie.name.isEmpty
      ? String(decoding: cookie.value.utf8.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self) : cookie.name
    let isHidden = existing.contains { old in
      old.isSecure && old.name.hasBytes(of: name) && !old.isExpired(at: now)
        && (CookieTarget.covers(old.domain, host: cookie.domain)
          || CookieTarget.covers(cookie.domain, host: old.domain))
        && CookieTarget.isPath(cookie.path, below: old.path)
    }
    if isHidden { throw .shadowsSecureCookie }
  }

  /// Returns the cookies to remove above the limit: expired ones, then ones that are not secure, the oldest first.
  package static func surplus(of cookies: [Cookie], limit: Int = domainLimit, now: HTTPDate) -> [Int] {
    guard cookies.count > limit else { return [] }
    func rank(_ cookie: Cookie) -> Int { cookie.isExpired(at: now) ? 0 : cookie.isSecure ? 2 : 1 }
    let order = cookies.indices.sorted { left, right in
      let (a, b) = (cookies[left], cookies[right])
      return rank(a) == rank(b) ? a.creation < b.creation : rank(a) < rank(b)
    }
    return Array(order.prefix(cookies.count - limit))
  }
}

/// The hosts from which cookies are accepted.
package enum CookiePolicy: Sendable, Equatable {
  case always
  case never
  /// From hosts of the domain that the document belongs to. A request that names no document is its own.
  case onlyFromMainDocumentDomain

  /// Whether a cookie of `host` may be stored.
  ///
  /// - Parameter document: The host of the document that a request is made for, if the program named one.
  package func allows(host: String, document: String?, suffixes: any PublicSuffixes) -> Bool {
    switch self {
    case .always: true
    case .never: false
    case .onlyFromMainDocumentDomain: document.map { suffixes.haveOneOwner($0, host) } ?? true
    }
  }

  /// Returns the policy that allows the hosts which both policies allow.
  package func and(_ other: CookiePolicy) -> CookiePolicy {
    switch (self, other) {
    case (.never, _), (_, .never): .never
    case (.always, .always): .always
    case (.onlyFromMainDocumentDomain, _), (_, .onlyFromMainDocumentDomain): .onlyFromMainDocumentDomain
    }
  }
}

/// The reason why a cookie is not stored. Never holds a value, which may be a secret.
package enum CookieRefusal: Error, Sendable, Equatable {
  /// Neither name nor value.
  case empty
  /// Name and value have more than 4096 bytes together.
  case tooLong
  /// A control character other than a tab.
  case controlCharacter
  /// Name or value is not UTF-8, and could not be sent back unchanged.
  case notText
  /// The host of the response is not within the domain of `Domain`.
  case foreignDomain(String)
  /// `Domain` names a public suffix.
  case publicSuffix(String)
  /// `Secure`, from a server that is not.
  case secureFromInsecureOrigin
  /// From a server without TLS, and it would hide or replace a `Secure` cookie.
  case shadowsSecureCookie
  /// `SameSite=None` without `Secure`.
  case sameSiteNoneWithoutSecure
  /// `SameSite` by a server of another site than the document that the request was made for.
  case crossSite
  /// The name or the value begins with `__Secure-` or `__Host-`, without the required attributes.
  case brokenPrefix
}

/// Which domains belong to a registry, so that strangers have names below them (`com`, `co.uk`,
/// `github.io`): no cookie is for all of them.
package protocol PublicSuffixes: Sendable {
  /// Whether a domain is a public suffix, under which unrelated owners register names.
  ///
  /// - Parameter domain: ASCII, lower case, without a dot in front.
  func isPublicSuffix(_ domain: String) -> Bool
}

extension PublicSuffixes {
  /// Returns the registrable domain of a host: the public suffix and one label more. `nil` for a public suffix, for
  /// an address, and for an invalid host.
  package func registrableDomain(of host: String) -> String? {
    let host = host.lowercased()
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    guard !labels.contains(where: \.isEmpty), !CookieTarget.isAddress(host) else { return nil }
    for start in labels.indices {
      // The longest public suffix is used.
      guard isPublicSuffix(labels[start...].joined(separator: ".")) else { continue }
      return start == 0 ? nil : labels[(start - 1)...].joined(separator: ".")
    }
    return host
  }

  /// Whether two origins are of one site (RFC 6265bis §5.2): one scheme, and one registrable domain or one host.
  package func isSameSite(_ left: Origin, _ right: Origin) -> Bool {
    left.scheme == right.scheme && haveOneOwner(left.host, right.host)
  }

  /// Whether two hosts are one, or belong to one registrable domain.
  package func haveOneOwner(_ left: String, _ right: String) -> Bool {
    if left == right { return true }
    guard let domain = registrableDomain(of: left) else { return false }
    return domain == registrableDomain(of: right)
  }
}

/// Public suffixes without a list: a domain of one label is public.
package struct TopLevelSuffixes: PublicSuffixes {
  package init() {}

  package func isPublicSuffix(_ domain: String) -> Bool {
    !domain.utf8.contains(UInt8(ascii: "."))
  }
}
