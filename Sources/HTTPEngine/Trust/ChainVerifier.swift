import COpenSSL
import FoundationEssentials
import HTTPWire

/// Verifies the chain of a server: a path to a trusted certificate (RFC 5280 §6), the dates, the purpose, the
/// strength of keys and signatures, the name (RFC 9525), and that no list which the user gave revokes it. Asks no
/// network.
package struct ChainVerifier: Sendable {
  /// What a path has to fulfil.
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
  package func verify(_ presented: [X509Certificate]) -> Result<[X509Certificate], ChainFault> {
    search(presented).flatMap { path in
      if let host, let leaf = path.first, let fault = HostCheck.fault(of: leaf, for: host) {
        return .failure(fault)
      }
      if let fault = revocationLists.fault(of: path, at: time ?? OpenSSLTime.now) { return .failure(fault) }
      return .success(path)
    }
  }

  /// How often the search begins again without a certificate that led nowhere.
  private static let deadEndLimit = 8

  /// OpenSSL follows the first issuer that it finds among what was presented, and does not turn back: where an
  /// authority is certified by several others, one of which is not known here, it may miss the way. A certificate
  /// whose own issuer is nowhere is on no path at all, so the search goes on without it.
  private func search(_ presented: [X509Certificate]) -> Result<[X509Certificate], ChainFault> {
    guard let leaf = presented.first else {
      return .failure(
        ChainFault(kind: .certificateUntrusted, message: "{host} has shown no certificate."))
    }
    guard let anchors = anchors ?? TrustAnchors([]) else { return .failure(.noMemory) }
    var deadEnd: Data?
    // A leaf that is trusted itself, or by its issuer in the store, needs nothing of what came with it.
    if case .success(let path) = search(leaf, [], anchors, &deadEnd) { return .success(path) }
    var candidates = presented
    var first: ChainFault?
    for _ in 0...Self.deadEndLimit {
      let result = search(leaf, candidates, anchors, &deadEnd)
      guard case .failure(let fault) = result else { return result }
      first = first ?? fault
      guard fault.kind == .certificateHasUnknownRoot, let deadEnd, deadEnd != leaf.der else { break }
      let count = candidates.count
      candidates.removeAll { $0.der == deadEnd }
      guard candidates.count < count else { break }
    }
    return .failure(first ?? .noMemory)
  }

  /// `deadEnd` is the certificate beyond which there was no way.
  private func search(
    _ leaf: X509Certificate, _ candidates: [X509Certificate], _ anchors: TrustAnchors, _ deadEnd: inout Data?
  ) -> Result<[X509Certificate], ChainFault> {
    ERR_clear_error()
    defer { ERR_clear_error() }
    guard let stack = openssl_certificate_stack() else { return .failure(.noMemory) }
    defer { openssl_free_certificates(stack) }
    for certificate in candidates where openssl_push_certificate(stack, certificate.pointer) != 1 {
      return .failure(.noMemory)
    }
    guard let context = X509_STORE_CTX_new() else { return .failure(.noMemory) }
    defer { X509_STORE_CTX_free(context) }
    guard X509_STORE_CTX_init(context, anchors.store, leaf.pointer, stack) == 1, prepare(context) else {
      return .failure(.noMemory)
    }
    return withExtendedLifetime(anchors) {
      let isVerified = X509_verify_cert(context) == 1
      guard let path = path(of: context) else { return .failure(.noMemory) }
      if isVerified { return .success(path) }
      deadEnd = path.last?.der
      let code = X509_STORE_CTX_get_error(context)
      return .failure(.verdict(code, depth: Int(X509_STORE_CTX_get_error_depth(context))))
    }
  }

  private func prepare(_ context: OpaquePointer) -> Bool {
    guard let parameters = X509_STORE_CTX_get0_param(context) else { return false }
    // An intermediate certificate in the trust store is trusted by itself.
    var flags = UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST)
    switch rules {
    case .trust:
      // The purpose of a server, and trust for it.
      guard X509_STORE_CTX_set_default(context, "ssl_server") == 1 else { return false }
      // 112 bits: RSA of 2048 bits, no SHA-1 in signatures, whatever OpenSSL is set to on this machine.
      X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    case .linkage:
      // 80 bits: what can be forged is no link.
      X509_VERIFY_PARAM_set_auth_level(parameters, 1)
      flags |= UInt(X509_V_FLAG_NO_CHECK_TIME)
    }
    X509_VERIFY_PARAM_set_flags(parameters, flags)
    if let time { X509_VERIFY_PARAM_set_time(parameters, time) }
    return true
  }

  private func path(of context: OpaquePointer) -> [X509Certificate]? {
    let chain = X509_STORE_CTX_get0_chain(context)
    var found: [X509Certificate] = []
    for index in 0..<max(0, openssl_certificate_count(chain)) {
      guard let pointer = openssl_certificate_at(chain, index), X509_up_ref(pointer) == 1,
        let certificate = X509Certificate(owning: pointer)
      else { return nil }
      found.append(certificate)
    }
    return found
  }
}
