import COpenSSL
import FoundationEssentials

/// The paths from a certificate to trusted ones that names and key identifiers allow (RFC 4158 §2.4.2). ``PathCheck``
/// verifies the signatures.
///
/// The number of paths can grow exponentially with the number of certificates that a server sends. So the search is
/// bounded.
struct PathCandidates {
  /// The number of paths after which the search ends.
  static let pathLimit = 16
  private static let lengthLimit = 10
  private static let visitLimit = 128

  /// The issuers after the leaf: authorities in their order, and the trusted certificate.
  private(set) var paths: [[X509Certificate]] = []

  private let presented: [X509Certificate]
  private var visits = 0

  init(from leaf: X509Certificate, through presented: [X509Certificate], to anchors: TrustAnchors) {
    self.presented = presented
    guard let context = X509_STORE_CTX_new() else { return }
    defer { X509_STORE_CTX_free(context) }
    withExtendedLifetime(anchors) {
      guard X509_STORE_CTX_init(context, anchors.store, leaf.pointer, nil) == 1 else { return }
      extend([leaf], context)
    }
    ERR_clear_error()
  }

  private mutating func extend(_ path: [X509Certificate], _ context: OpaquePointer) {
    guard let last = path.last, path.count <= Self.lengthLimit, visits < Self.visitLimit else { return }
    visits += 1
    let trusted = trustedIssuers(of: last, context).filter { !isOnPath($0, path) }
    for anchor in trusted where paths.count < Self.pathLimit { paths.append(path.dropFirst() + [anchor]) }
    for candidate in presented where paths.count < Self.pathLimit {
      guard X509_check_issued(candidate.pointer, last.pointer) == X509_V_OK, !isOnPath(candidate, path),
        !trusted.contains(where: { $0.der == candidate.der })
      else { continue }
      extend(path + [candidate], context)
    }
  }

  private func trustedIssuers(of certificate: X509Certificate, _ context: OpaquePointer) -> [X509Certificate]
  {
    guard let name = X509_get_issuer_name(certificate.pointer),
      let found = X509_STORE_CTX_get1_certs(context, name)
    else { return [] }
    defer { openssl_free_certificates(found) }
    return ServerJudgement.certificates(found).filter {
      X509_check_issued($0.pointer, certificate.pointer) == X509_V_OK
    }
  }

  /// Whether the path already has an authority with this name and key, by any certificate.
  private func isOnPath(_ candidate: X509Certificate, _ path: [X509Certificate]) -> Bool {
    path.contains { certificate in
      X509_NAME_cmp(X509_get_subject_name(certificate.pointer), X509_get_subject_name(candidate.pointer)) == 0
        && certificate.publicKey == candidate.publicKey
    }
  }
}
