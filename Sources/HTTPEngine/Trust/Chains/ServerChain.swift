import COpenSSL

/// The certificates that belong to a server, trusted or not: its leaf, and the authorities whose signatures lead to it.
///
/// An attacker can append any certificate to a chain, even a pinned one. A certificate counts only if a path leads from
/// the leaf to it. On that path, every signature fits, and no digest is so weak that it can be forged. Each issuer may
/// issue by its basic constraints, key usage, path length and name constraints. Hosts, dates, purposes and anchors do
/// not matter here.
package enum ServerChain {
  /// The number of certificates that are examined.
  private static let limit = 16

  /// Returns the leaf, the path to a trusted certificate if there is one, and the other linked certificates of
  /// `presented` in their order.
  package static func of(_ presented: [X509Certificate], anchors: TrustAnchors?) -> [X509Certificate] {
    guard let leaf = presented.first else { return [] }
    var verifier = ChainVerifier(anchors: anchors, host: nil)
    verifier.rules = .linkage
    var chain = [leaf]
    if anchors != nil, case .success(let path) = verifier.verify(presented) { chain = path }
    for candidate in presented.dropFirst().prefix(limit)
    where !chain.contains(where: { $0.der == candidate.der }) {
      guard let goal = TrustAnchors([candidate]) else { continue }
      verifier.anchors = goal
      if case .success(let path) = verifier.verify(presented), path.last?.der == candidate.der {
        chain.append(candidate)
      }
    }
    return chain
  }
}
