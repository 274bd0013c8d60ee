import COpenSSL
import Glibc
import HTTPWire

/// The check that a certificate is valid for a host (RFC 9525).
package enum HostCheck {
  /// Returns the fault of a verified path for `host`; `nil` if its first certificate is valid for it and its
  /// authorities may issue for it.
  ///
  /// Constraints of names hold for the names in a certificate (RFC 5280 §6.1.4), and `*.example.com` is neither within
  /// nor outside of `bar.example.com`. So the host itself is checked against them, too.
  package static func fault(of path: [X509Certificate], for host: String) -> ChainFault? {
    guard let leaf = path.first else { return nil }
    if let fault = fault(of: leaf, for: host) { return fault }
    guard !isAddress(host.contains(":") ? String(host.prefix { $0 != "%" }) : host) else { return nil }
    for authority in path.dropFirst() {
      switch authority.nameConstraints?.violation(by: host) {
      case .isNotPermitted: return .verdict(X509_V_ERR_PERMITTED_VIOLATION, depth: 0)
      case .isExcluded: return .verdict(X509_V_ERR_EXCLUDED_VIOLATION, depth: 0)
      case nil: continue
      }
    }
    return nil
  }

  /// Returns the fault; `nil` if the certificate is valid for `host`, a name (IDNA A-labels) or an address without
  /// brackets.
  private static func fault(of certificate: X509Certificate, for host: String) -> ChainFault? {
    defer { ERR_clear_error() }
    // The zone of a link-local address (RFC 6874) has a meaning on this machine only.
    let address = host.contains(":") ? String(host.prefix { $0 != "%" }) : host
    if isAddress(address) {
      let matches = X509_check_ip_asc(certificate.pointer, address, 0) == 1
      return matches ? nil : mismatch(certificate, X509_V_ERR_IP_ADDRESS_MISMATCH)
    }
    // A final dot does not change the name.
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    // OpenSSL takes a leading dot for any host below the name.
    guard !name.isEmpty, !name.hasPrefix(".") else {
      return mismatch(certificate, X509_V_ERR_HOSTNAME_MISMATCH)
    }
    // The common name does not name a host (RFC 9525 §2), and `f*.example.com` is not a wildcard.
    let rules = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT) | UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
    let matches = X509_check_host(certificate.pointer, name, name.utf8.count, rules, nil) == 1
    return matches ? nil : mismatch(certificate, X509_V_ERR_HOSTNAME_MISMATCH)
  }

  private static func mismatch(_ certificate: X509Certificate, _ code: Int32) -> ChainFault {
    guard certificate.hasAlternativeNames else {
      return ChainFault(
        kind: .certificateUntrusted, code: code,
        message: "The certificate of {host} has no alternative name (SAN). A common name is not enough."
      )
    }
    return .verdict(code, depth: 0)
  }

  private static func isAddress(_ text: String) -> Bool {
    var bytes = in6_addr()
    return inet_pton(AF_INET, text, &bytes) == 1 || inet_pton(AF_INET6, text, &bytes) == 1
  }
}
