import COpenSSL
import FoundationEssentials
import HTTPWire

/// The verification of a server's chain. It checks the path to a trusted certificate (RFC 5280 §6), dates, purpose, and
/// the strength of keys and signatures. It also checks the name (RFC 9525) and the revocation lists of the user. It
/// does not use the network.
package struct ChainVerifier: Sendable {
  /// The requirements that a path has to fulfil.
  package enum Rules: Sendable {
    /// All requirements of trust in a server.
    case trust
    /// Only that each certificate issued the one before it.
    case linkage
  }

  package var anchors: TrustAnchors?
  /// The name or address that the certificate has to be valid for; `nil` checks none.
  package var host: String?
  /// The time for which dates are checked, in seconds since 1970; `nil` is now.
  package var time: Int?
  package var rules: Rules = .trust
  package var revocationLists: RevocationLists = .none

  package init(anchors: TrustAnchors?, host: String?) {
    self.anchors = anchors
    self.host = host
  }

  /// Returns the chain from the server's certificate to the trusted one.
  ///
  /// OpenSSL follows the first issuer that it finds and does not backtrack. If its path fails, other paths are tried
  /// (RFC 4158 §2.4.2), up to ``PathCandidates/pathLimit``; the failure is that of the first.
  package func verify(_ presented: [X509Certificate]) -> Result<[X509Certificate], ChainFault> {
    guard let leaf = presented.first else {
      return .failure(
        ChainFault(kind: .certificateUntrusted, message: "{host} has shown no certificate."))
    }
    guard let anchors = anchors ?? TrustAnchors([]) else { return .failure(.noMemory) }
    let now = time ?? OpenSSLTime.now
    let check = PathCheck(rules: rules, time: now)
    // A leaf that is trusted itself, or whose issuer is in the store, needs no other certificates of the server.
    let short = accepted(check.path(from: leaf, through: [], to: .store(anchors)), presented, now)
    if case .success = short { return short }
    let first = accepted(check.path(from: leaf, through: presented, to: .store(anchors)), presented, now)
    guard case .failure(let fault) = first, fault.dependsOnPath else { return first }
    for path in PathCandidates(from: leaf, through: presented, to: anchors).paths {
      let other = check.path(from: leaf, through: path.dropLast(), to: .certificates(path.suffix(1)))
      let result = accepted(other, presented, now)
      if case .success = result { return result }
    }
    return first
  }

  /// Checks the requirements that OpenSSL does not check.
  private func accepted(
    _ result: Result<[X509Certificate], ChainFault>, _ presented: [X509Certificate], _ now: Int
  ) -> Result<[X509Certificate], ChainFault> {
    result.flatMap { path in
      // Without its strict mode, OpenSSL accepts a key usage instead of the basic constraints of an authority, which
      // are required (RFC 5280 §6.1.4 (k)). Trusted certificates need neither.
      for (depth, authority) in path.enumerated().dropFirst().dropLast() where !authority.isStatedAuthority {
        return .failure(.verdict(X509_V_ERR_INVALID_CA, depth: depth))
      }
      if let host, let fault = HostCheck.fault(of: path, for: host) { return .failure(fault) }
      if let fault = revocationLists.fault(of: path, presented: presented, at: now) { return .failure(fault) }
      return .success(path)
    }
  }
}

extension ChainFault {
  /// Whether another path from the same certificate may lack this fault.
  fileprivate var dependsOnPath: Bool {
    guard kind != .resourceUnavailable else { return false }
    let ofLeaf = [X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_EE_KEY_TOO_SMALL]
    return !isHostMismatch && !(depth == 0 && ofLeaf.contains(code))
  }
}
