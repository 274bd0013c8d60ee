import COpenSSL

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
    let path = ServerJudgement.certificates(X509_STORE_CTX_get0_chain(context))
    return path.isEmpty ? .failure(.noMemory) : .success(path)
  }

  private func prepare(_ context: OpaquePointer) -> Bool {
    guard let parameters = X509_STORE_CTX_get0_param(context) else { return false }
    // An intermediate certificate in the trust store is trusted by itself.
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
