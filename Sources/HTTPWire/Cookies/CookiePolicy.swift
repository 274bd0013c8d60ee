/// From whom cookies are taken at all.
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

  /// What two policies allow together.
  package func and(_ other: CookiePolicy) -> CookiePolicy {
    switch (self, other) {
    case (.never, _), (_, .never): .never
    case (.always, .always): .always
    case (.onlyFromMainDocumentDomain, _), (_, .onlyFromMainDocumentDomain): .onlyFromMainDocumentDomain
    }
  }
}
