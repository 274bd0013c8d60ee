import COpenSSL

/// Which certificates are a server's own, trusted or not: its leaf, and authorities whose signatures lead to it.
///
/// Anybody can append any certificate to a chain, a pinned one too. It counts only if a path leads from the leaf to
/// it: every signature fits, each issuer may issue (basic constraints, key usage, path length, name constraints), and no
/// digest is so weak that it can be forged. Hosts, dates, purposes and anchors do not matter here.
package enum ServerChain {
  /// Chains of more than these are not looked through to the end.
  private static let limit = 16

  /// The leaf first, then the way to a trusted certificate if there is one, then what else of `presented` is
  /// linked, in its order.
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
