import COpenSSL
import FoundationEssentials
import Glibc
import HTTPWire

/// The verification of a server's chain. The path to a trusted certificate is checked (RFC 5280 §6), with dates,
/// purpose, and the strength of keys and signatures. The name (RFC 9525) and the revocation lists of the user are
/// checked, too. The network is not used.
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
  /// (RFC 4158 §2.4.2), up to ``PathCandidates/pathLimit``; the failure of the first path is reported.
  package func verify(_ presented: [X509Certificate]) -> Result<[X509Certificate], ChainFault> {
    var effort = PathEffort()
    return verify(presented, &effort)
  }

  /// Verifies with a limit that several verifications share.
  func verify(
    _ presented: [X509Certificate], _ effort: inout PathEffort
  ) -> Result<[X509Certificate], ChainFault> {
    guard let leaf = presented.first else {
      return .failure(
        ChainFault(kind: .certificateUntrusted, message: "{host} has shown no certificate."))
    }
    guard let anchors = anchors ?? TrustAnchors([]) else { return .failure(.noMemory) }
    let now = time ?? OpenSSLTime.now
    let check = PathCheck(rules: rules, time: now)
    // A leaf that is trusted itself, or has its issuer in the store, does not need other certificates from the server.
    let short = accepted(check.path(from: leaf, through: [], to: .store(anchors)), presented, now)
    if case .success = short { return short }
    let first = accepted(check.path(from: leaf, through: presented, to: .store(anchors)), presented, now)
    guard case .failure(let fault) = first, fault.dependsOnPath else { return first }
    for path in PathCandidates(from: leaf, through: presented, to: anchors, &effort).paths {
      guard effort.spend(on: path) else { break }
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
      if rules == .trust, let fault = CertificateForm.fault(of: path) { return .failure(fault) }
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

/// Requirements of RFC 5280 §4 for the certificates of a path, which OpenSSL checks in its strict mode alone. That mode
/// also refuses many certificates in use.
enum CertificateForm {
  /// Returns the first fault of a path. A certificate that is trusted itself may have any serial number, and as the
  /// only one of its path any form.
  static func fault(of path: [X509Certificate]) -> ChainFault? {
    for (depth, certificate) in path.enumerated() where path.count > 1 {
      let isAnchor = depth == path.count - 1
      if !isAnchor, certificate.hasNegativeSerialNumber {
        return .malformed("its serial number is negative (RFC 5280 §4.1.2.2)", depth: depth)
      }
      if depth > 0, !certificate.hasSubject {
        return .malformed("it is that of an authority and has no subject (RFC 5280 §4.1.2.6)", depth: depth)
      }
      if isAnchor, certificate.contradictsOwnKeyIdentifier {
        return .malformed(
          "it issued itself, and names another key as that of its issuer (RFC 5280 §4.2.1.1)", depth: depth)
      }
    }
    return nil
  }
}

/// The work that the search for other paths may take. A server chooses the certificates, and the search runs on a
/// thread that other transfers use.
package struct PathEffort: Sendable {
  /// The number of presented certificates that are considered. OpenSSL's own search considers all of them.
  package static let certificateLimit = 32
  /// The number of certificates that are examined as issuers, each time that one is.
  package static let examinationLimit = 2000
  /// The number of signatures on the paths that are tried.
  package static let signatureLimit = 200

  package private(set) var examinations = 0
  package private(set) var signatures = 0

  package init() {}

  /// Counts the examination of a certificate. Returns whether it is allowed.
  mutating func examine() -> Bool {
    guard examinations < Self.examinationLimit else { return false }
    examinations += 1
    return true
  }

  /// Counts the signatures of a path. Returns whether it may be verified.
  mutating func spend(on path: [X509Certificate]) -> Bool {
    guard signatures + path.count <= Self.signatureLimit else { return false }
    signatures += path.count
    return true
  }
}

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

  /// A certificate with its key, which is encoded once.
  private struct Node {
    let certificate: X509Certificate
    let key: Data?

    init(_ certificate: X509Certificate) {
      self.certificate = certificate
      key = certificate.publicKey
    }

    /// Whether both are the same authority, perhaps by two certificates.
    func isSameAuthority(as other: Node) -> Bool {
      X509_NAME_cmp(
        X509_get_subject_name(certificate.pointer), X509_get_subject_name(other.certificate.pointer)) == 0
        && key == other.key
    }
  }

  private let presented: [Node]
  private var visits = 0

  init(
    from leaf: X509Certificate, through presented: [X509Certificate], to anchors: TrustAnchors,
    _ effort: inout PathEffort
  ) {
    self.presented = presented.prefix(PathEffort.certificateLimit).map { Node($0) }
    guard let context = X509_STORE_CTX_new() else { return }
    defer { X509_STORE_CTX_free(context) }
    withExtendedLifetime(anchors) {
      guard X509_STORE_CTX_init(context, anchors.store, leaf.pointer, nil) == 1 else { return }
      extend([Node(leaf)], context, &effort)
    }
    ERR_clear_error()
  }

  private mutating func extend(_ path: [Node], _ context: OpaquePointer, _ effort: inout PathEffort) {
    guard let last = path.last, path.count <= Self.lengthLimit, visits < Self.visitLimit else { return }
    visits += 1
    let trusted = trustedIssuers(of: last.certificate, context, &effort).filter { !isOnPath($0, path) }
    for anchor in trusted where paths.count < Self.pathLimit {
      paths.append(path.dropFirst().map(\.certificate) + [anchor.certificate])
    }
    for candidate in presented where paths.count < Self.pathLimit {
      guard effort.examine() else { return }
      guard X509_check_issued(candidate.certificate.pointer, last.certificate.pointer) == X509_V_OK,
        !isOnPath(candidate, path), !trusted.contains(where: { $0.certificate == candidate.certificate })
      else { continue }
      extend(path + [candidate], context, &effort)
    }
  }

  private func trustedIssuers(
    of certificate: X509Certificate, _ context: OpaquePointer, _ effort: inout PathEffort
  ) -> [Node] {
    guard let name = X509_get_issuer_name(certificate.pointer),
      let found = X509_STORE_CTX_get1_certs(context, name)
    else { return [] }
    defer { openssl_free_certificates(found) }
    return ServerEvaluation.certificates(found).filter {
      effort.examine() && X509_check_issued($0.pointer, certificate.pointer) == X509_V_OK
    }.map { Node($0) }
  }

  /// Whether the path already has an authority with this name and key, by any certificate.
  private func isOnPath(_ candidate: Node, _ path: [Node]) -> Bool {
    path.contains { $0.isSameAuthority(as: candidate) }
  }
}

/// One verification by OpenSSL.
struct PathCheck {
  /// The certificates at which a path may end.
  enum Goal {
    case store(TrustAnchors)
    case certificates(ArraySlice<X509Certificate>)
  }

  let rules: ChainVerifier.Rules
  /// The time for which dates are checked, in seconds since 1970.
  let time: Int

  /// Returns the path that OpenSSL finds from `leaf` over `candidates` to `goal`.
  func path(
    from leaf: X509Certificate, through candidates: some Sequence<X509Certificate>, to goal: Goal
  ) -> Result<[X509Certificate], ChainFault> {
    ERR_clear_error()
    defer { ERR_clear_error() }
    guard let untrusted = Self.stack(of: candidates) else { return .failure(.noMemory) }
    defer { openssl_free_certificates(untrusted) }
    guard let context = X509_STORE_CTX_new() else { return .failure(.noMemory) }
    defer { X509_STORE_CTX_free(context) }
    switch goal {
    case .store(let anchors):
      guard X509_STORE_CTX_init(context, anchors.store, leaf.pointer, untrusted) == 1 else {
        return .failure(.noMemory)
      }
      return withExtendedLifetime(anchors) { verify(context) }
    case .certificates(let certificates):
      guard let trusted = Self.stack(of: certificates) else { return .failure(.noMemory) }
      defer { openssl_free_certificates(trusted) }
      guard X509_STORE_CTX_init(context, nil, leaf.pointer, untrusted) == 1 else {
        return .failure(.noMemory)
      }
      X509_STORE_CTX_set0_trusted_stack(context, trusted)
      return verify(context)
    }
  }

  private func verify(_ context: OpaquePointer) -> Result<[X509Certificate], ChainFault> {
    guard prepare(context) else { return .failure(.noMemory) }
    guard X509_verify_cert(context) == 1 else {
      let code = X509_STORE_CTX_get_error(context)
      return .failure(.verdict(code, depth: Int(X509_STORE_CTX_get_error_depth(context))))
    }
    let path = ServerEvaluation.certificates(X509_STORE_CTX_get0_chain(context))
    return path.isEmpty ? .failure(.noMemory) : .success(path)
  }

  private func prepare(_ context: OpaquePointer) -> Bool {
    guard let parameters = X509_STORE_CTX_get0_param(context) else { return false }
    // An intermediate certificate in the trust store is trusted without its issuers.
    var flags = UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST)
    switch rules {
    case .trust:
      // The purpose of a server, and trust for it.
      guard X509_STORE_CTX_set_default(context, "ssl_server") == 1 else { return false }
      // 112 bits: RSA of 2048 bits and no SHA-1 in signatures, independent of the machine's settings of OpenSSL.
      X509_VERIFY_PARAM_set_auth_level(parameters, 2)
      X509_VERIFY_PARAM_set_time(parameters, time)
      X509_STORE_CTX_set_verify_cb(context, Self.allowLastSecond)
    case .linkage:
      // 80 bits: a signature that can be forged is not a link.
      X509_VERIFY_PARAM_set_auth_level(parameters, 1)
      flags |= UInt(X509_V_FLAG_NO_CHECK_TIME)
    }
    X509_VERIFY_PARAM_set_flags(parameters, flags)
    // The common name does not name a host (RFC 9525 §2), so name constraints do not apply to it.
    X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
    return true
  }

  /// A certificate is valid through its last second (RFC 5280 §4.1.2.5), but OpenSSL takes it for expired then.
  private static let allowLastSecond: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, context in
    guard isGood == 0, let context, X509_STORE_CTX_get_error(context) == X509_V_ERR_CERT_HAS_EXPIRED,
      let certificate = X509_STORE_CTX_get_current_cert(context),
      let parameters = X509_STORE_CTX_get0_param(context),
      OpenSSLTime.seconds(X509_get0_notAfter(certificate)) == X509_VERIFY_PARAM_get_time(parameters)
    else { return isGood }
    X509_STORE_CTX_set_error(context, X509_V_OK)
    return 1
  }

  private static func stack(of certificates: some Sequence<X509Certificate>) -> OpaquePointer? {
    guard let stack = openssl_certificate_stack() else { return nil }
    for certificate in certificates where openssl_push_certificate(stack, certificate.pointer) != 1 {
      openssl_free_certificates(stack)
      return nil
    }
    return stack
  }
}

/// The certificates that belong to a server, trusted or not: its leaf, and the authorities of the chain of signatures
/// that leads to it.
///
/// An attacker can append any certificate to a chain, even a pinned one. A certificate counts only if a path leads from
/// the leaf to it. On that path, every signature fits, and no digest is so weak that it can be forged. Each issuer may
/// issue by its basic constraints, key usage, path length and name constraints. Hosts, dates, purposes and anchors do
/// not matter here.
package enum ServerChain {
  /// The number of certificates that are examined.
  private static let limit = 16

  /// Returns the leaf, the path to a trusted certificate if there is one, and the other linked certificates of
  /// `presented` in their order. Only the first ``PathEffort/certificateLimit`` certificates can be links of the other
  /// ones.
  package static func of(_ presented: [X509Certificate], anchors: TrustAnchors?) -> [X509Certificate] {
    var effort = PathEffort()
    return of(presented, anchors: anchors, &effort)
  }

  /// Returns the same, and counts the work.
  package static func of(
    _ presented: [X509Certificate], anchors: TrustAnchors?, _ effort: inout PathEffort
  ) -> [X509Certificate] {
    guard let leaf = presented.first else { return [] }
    var verifier = ChainVerifier(anchors: anchors, host: nil)
    verifier.rules = .linkage
    var chain = [leaf]
    if anchors != nil, case .success(let path) = verifier.verify(presented, &effort) { chain = path }
    let considered = Array(presented.prefix(PathEffort.certificateLimit))
    for candidate in considered.dropFirst().prefix(limit)
    where !chain.contains(where: { $0.der == candidate.der }) {
      guard let goal = TrustAnchors([candidate]) else { continue }
      verifier.anchors = goal
      if case .success(let path) = verifier.verify(considered, &effort), path.last?.der == candidate.der {
        chain.append(candidate)
      }
    }
    return chain
  }
}

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
