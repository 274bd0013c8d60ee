import COpenSSL
import FoundationEssentials
import HTTPWire

/// Verifies the chain of a server: a path to a trusted certificate (RFC 5280 §6), the dates, the purpose, the
/// strength of keys and signatures, the name (RFC 9525), and that no list which the user gave revokes it. Asks no
/// network.
package struct ChainVerifier: Sendable {
  /// The requirements that a path has to fulfil.
  package enum Rules: Sendable {
    /// All that trust in a server takes.
    case trust
    /// That each certificate really issued the one before it.
    case linkage
  }

  package var anchors: TrustAnchors?
  /// The name or address that the certificate has to be valid for; `nil` leaves it out.
  package var host: String?
  /// The instant for which dates are judged, in seconds since 1970; `nil` is now.
  package var time: Int?
  package var rules: Rules = .trust
  package var revocationLists: RevocationLists = .none

  package init(anchors: TrustAnchors?, host: String?) {
    self.anchors = anchors
    self.host = host
  }

  /// The chain that was found, from the server's certificate to the one that is trusted.
  ///
  /// OpenSSL follows the first issuer that it finds and does not turn back. If its path fails, other paths are tried
  /// (RFC 4158 §2.4.2), up to ``PathCandidates/pathLimit``; the failure is that of the first.
  package func verify(_ presented: [X509Certificate]) -> Result<[X509Certificate], ChainFault> {
    guard let leaf = presented.first else {
      return .failure(
        ChainFault(kind: .certificateUntrusted, message: "{host} has shown no certificate."))
    }
    guard let anchors = anchors ?? TrustAnchors([]) else { return .failure(.noMemory) }
    let now = time ?? OpenSSLTime.now
    let check = PathCheck(rules: rules, time: now)
    // A leaf that is trusted itself, or by its issuer in the store, needs nothing of what came with it.
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

  /// Adds to OpenSSL's verdict what it does not look at.
  private func accepted(
    _ result: Result<[X509Certificate], ChainFault>, _ presented: [X509Certificate], _ now: Int
  ) -> Result<[X509Certificate], ChainFault> {
    result.flatMap { path in
      // Without its strict mode, OpenSSL takes a key usage for the basic constraints of an authority, which have to be
      // there (RFC 5280 §6.1.4 (k)). Trusted certificates are trusted as they are.
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
  /// Whether another path from the same certificate may be without this fault.
  fileprivate var dependsOnPath: Bool {
    guard kind != .resourceUnavailable else { return false }
    let ofLeaf = [X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_EE_KEY_TOO_SMALL]
    return !isHostMismatch && !(depth == 0 && ofLeaf.contains(code))
  }
}
