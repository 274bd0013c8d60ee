/// The DNS names that an authority may issue certificates for (RFC 5280 §4.2.1.10).
package struct NameConstraints: Sendable, Equatable {
  /// A name that an authority must not issue for.
  package enum Violation: Sendable, Equatable {
    case isNotPermitted
    case isExcluded
  }

  /// The domains with all names below them; without any, all names are permitted.
  package let permitted: [String]
  /// The domains with all names below them that are forbidden, also if they are permitted.
  package let excluded: [String]

  package init(permitted: [String], excluded: [String]) {
    self.permitted = permitted
    self.excluded = excluded
  }

  /// Returns the constraint that forbids a certificate for the host name; `nil` if none does.
  package func violation(by host: String) -> Violation? {
    let host = Self.labels(of: host)
    if excluded.contains(where: { Self.labels(of: $0).isDomain(of: host) }) { return .isExcluded }
    guard !permitted.isEmpty else { return nil }
    return permitted.contains { Self.labels(of: $0).isDomain(of: host) } ? nil : .isNotPermitted
  }

  /// Returns lower-case labels. A dot at the end makes no difference.
  private static func labels(of name: String) -> [Substring] {
    let name = name.lowercased()
    let relative = name.hasSuffix(".") ? name.dropLast() : name[...]
    return relative.isEmpty ? [] : relative.split(separator: ".", omittingEmptySubsequences: false)
  }
}

extension [Substring] {
  /// Whether `host` is this domain or below it. A domain with a leading dot includes only the names below it.
  fileprivate func isDomain(of host: [Substring]) -> Bool {
    guard first?.isEmpty == true else { return host.suffix(count).elementsEqual(self) }
    return host.count >= count && host.suffix(count - 1).elementsEqual(dropFirst())
  }
}
