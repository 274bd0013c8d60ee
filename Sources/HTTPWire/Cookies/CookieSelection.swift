/// The cookies of a request and their order (RFC 6265bis §5.8.3): pure.
///
/// `SameSite` was made for browsers, where any page can cause a request. In a client, only a redirect can cause a
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
  ///   - initialOrigin: The origin of the request of the caller.
  ///   - document:      The origin of the document that the caller names (`mainDocumentURL`), if it names one.
  package static func cause(
    of origin: Origin, method: String, initialOrigin: Origin, document: Origin?,
    suffixes: any PublicSuffixes
  ) -> Cause {
    if let document, !suffixes.isSameSite(origin, document) { return .foreignDocument }
    if document != nil || origin == initialOrigin || suffixes.isSameSite(origin, initialOrigin) {
      return .sameSite
    }
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
