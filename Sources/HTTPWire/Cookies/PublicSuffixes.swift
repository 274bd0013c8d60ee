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

  /// Whether two hosts are one, or lie in one registrable domain.
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
