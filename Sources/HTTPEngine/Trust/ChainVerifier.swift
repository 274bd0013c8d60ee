import COpenSSL
import HTTPWire

/// Verifies the chain of a server: a path to a trusted certificate (RFC 5280 §6), the dates, the purpose, the
/// strength of keys and signatures, and the name (RFC 9525). Asks no network.
package struct ChainVerifier: Sendable {
  package var anchors: TrustAnchors
  /// The name or address that the certificate has to be valid for; `nil` leaves it out.
  package var host: String?
  /// The instant for which dates are judged, in seconds since 1970; `nil` is now.
  package var time: Int?

  package init(anchors: TrustAnchors, host: String?) {
    self.anchors = anchors
    self.host = host
  }

  /// The chain that was found, from the server's certificate to the one that is trusted.
  package func verify(_ presented: [X509Certificate]) -> Result<[X509Certificate], ChainFault> {
    ERR_clear_error()
    defer { ERR_clear_error() }
    guard let leaf = presented.first else {
      return .failure(
        ChainFault(kind: .certificateUntrusted, message: "{host} has shown no certificate."))
    }
    guard let stack = openssl_certificate_stack() else { return .failure(.noMemory) }
    defer { openssl_free_certificates(stack) }
    for certificate in presented where openssl_push_certificate(stack, certificate.pointer) != 1 {
      return .failure(.noMemory)
    }
    guard let context = X509_STORE_CTX_new() else { return .failure(.noMemory) }
    defer { X509_STORE_CTX_free(context) }
    guard X509_STORE_CTX_init(context, anchors.store, leaf.pointer, stack) == 1, prepare(context) else {
      return .failure(.noMemory)
    }
    return run(context)
  }

  private func prepare(_ context: OpaquePointer) -> Bool {
    // The purpose of a server, and trust for it.
    guard X509_STORE_CTX_set_default(context, "ssl_server") == 1,
      let parameters = X509_STORE_CTX_get0_param(context)
    else { return false }
    // 112 bits: RSA of 2048 bits, no SHA-1 in signatures, whatever OpenSSL is set to on this machine.
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    // An intermediate certificate in the trust store is trusted by itself.
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST))
    if let time { X509_VERIFY_PARAM_set_time(parameters, time) }
    guard let host else { return true }
    return Self.expect(host, parameters)
  }

  private static func expect(_ host: String, _ parameters: OpaquePointer) -> Bool {
    // The zone of a link-local address (RFC 6874) means something on this machine alone.
    let address = host.contains(":") ? String(host.prefix { $0 != "%" }) : host
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, address) == 1 { return true }
    // The common name says nothing about hosts any more (RFC 9525 §2), and `f*.example.com` is no wildcard.
    X509_VERIFY_PARAM_set_hostflags(
      parameters,
      UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT) | UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    // A name in absolute form is the same name.
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    guard !name.isEmpty else { return false }
    return X509_VERIFY_PARAM_set1_host(parameters, name, name.utf8.count) == 1
  }

  private func run(_ context: OpaquePointer) -> Result<[X509Certificate], ChainFault> {
    let result = X509_verify_cert(context)
    guard result == 1 else {
      let code = X509_STORE_CTX_get_error(context)
      return .failure(.verdict(code, depth: Int(X509_STORE_CTX_get_error_depth(context))))
    }
    let chain = X509_STORE_CTX_get0_chain(context)
    var found: [X509Certificate] = []
    for index in 0..<openssl_certificate_count(chain) {
      guard let pointer = openssl_certificate_at(chain, index), X509_up_ref(pointer) == 1,
        let certificate = X509Certificate(owning: pointer)
      else { return .failure(.noMemory) }
      found.append(certificate)
    }
    return .success(found)
  }
}
