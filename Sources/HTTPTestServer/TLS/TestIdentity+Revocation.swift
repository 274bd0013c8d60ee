import COpenSSL

/// An extension that makes a revocation list unusable as a complete one.
public enum RevocationListRule: Sendable, Equatable {
  /// A critical extension that no client understands (RFC 5280 §5.2).
  case unknown
  /// A list of the changes since list number 1 (RFC 5280 §5.2.4).
  case delta

  func add(to list: OpaquePointer) throws(ServerError) {
    switch self {
    case .unknown:
      guard let kind = OBJ_txt2obj("1.2.3.4.5", 1), let value = ASN1_OCTET_STRING_new() else {
        throw .openSSL("an extension of a list")
      }
      defer {
        ASN1_OBJECT_free(kind)
        ASN1_OCTET_STRING_free(value)
      }
      guard ASN1_OCTET_STRING_set(value, [5, 0], 2) == 1,
        let made = X509_EXTENSION_create_by_OBJ(nil, kind, 1, value)
      else { throw .openSSL("an extension of a list") }
      defer { X509_EXTENSION_free(made) }
      guard X509_CRL_add_ext(list, made, -1) == 1 else { throw .openSSL("an extension of a list") }
    case .delta:
      guard let number = ASN1_INTEGER_new() else { throw .openSSL("an extension of a list") }
      defer { ASN1_INTEGER_free(number) }
      guard ASN1_INTEGER_set(number, 1) == 1,
        X509_CRL_add1_ext_i2d(list, NID_delta_crl, number, 1, UInt(X509V3_ADD_DEFAULT)) == 1
      else { throw .openSSL("an extension of a list") }
    }
  }
}

extension TestIdentity {
  /// Makes a list of revoked certificates (CRL, RFC 5280 §5), signed by this authority, as DER.
  ///
  /// - Parameters:
  ///   - revoked:  The revoked certificates; the authority need not have issued them.
  ///   - issued:   The time of `thisUpdate` relative to now. Default: an hour ago.
  ///   - next:     The time of `nextUpdate` relative to now; `nil` omits it. Default: in a day.
  ///   - digest:   The digest of the signature. Default: SHA-256.
  ///   - rule:     An extension that makes the list unusable as a complete one. Default: none.
  /// - Throws: ``ServerError/tls(_:)``.
  public func revocationList(
    of revoked: [TestIdentity], issued: Duration = .seconds(-3600), next: Duration? = .seconds(86_400),
    digest: Specification.Digest = .sha256, rule: RevocationListRule? = nil
  ) throws(ServerError) -> [UInt8] {
    ERR_clear_error()
    guard let list = X509_CRL_new() else { throw .openSSL("making a list") }
    defer { X509_CRL_free(list) }
    let certificate = try leaf
    guard let start = time(issued) else { throw .openSSL("making a list") }
    defer { ASN1_TIME_free(start) }
    guard X509_CRL_set_version(list, 1) == 1,
      X509_CRL_set_issuer_name(list, X509_get_subject_name(certificate.pointer)) == 1,
      X509_CRL_set1_lastUpdate(list, start) == 1
    else { throw .openSSL("making a list") }
    if let next {
      guard let end = time(next) else { throw .openSSL("making a list") }
      defer { ASN1_TIME_free(end) }
      guard X509_CRL_set1_nextUpdate(list, end) == 1 else { throw .openSSL("making a list") }
    }
    for identity in revoked { try add(identity, to: list, start) }
    if let rule { try rule.add(to: list) }
    let key = try PEM.key(privateKeyPEM)
    guard X509_CRL_sort(list) == 1, X509_CRL_sign(list, key.pointer, digest.algorithm) > 0 else {
      throw .openSSL("signing a list")
    }
    return try bytes { i2d_X509_CRL(list, $0) }
  }

  private func add(
    _ identity: TestIdentity, to list: OpaquePointer, _ time: UnsafeMutablePointer<ASN1_TIME>
  ) throws(ServerError) {
    let certificate = try identity.leaf
    guard let entry = X509_REVOKED_new() else { throw .openSSL("filling a list") }
    guard X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.pointer)) == 1,
      X509_REVOKED_set_revocationDate(entry, time) == 1, X509_CRL_add0_revoked(list, entry) == 1
    else {
      X509_REVOKED_free(entry)
      throw .openSSL("filling a list")
    }
  }

  var leaf: CertificateHandle {
    get throws(ServerError) {
      guard let certificate = try PEM.certificates(certificatePEM).first else {
        throw .tls("the identity has no certificate")
      }
      return certificate
    }
  }

  func time(_ offset: Duration) -> UnsafeMutablePointer<ASN1_TIME>? {
    X509_gmtime_adj(nil, Int(offset.components.seconds))
  }

  func bytes(
    _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>) -> Int32
  ) throws(ServerError) -> [UInt8] {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = write(&bytes)
    guard count > 0, let bytes else { throw .openSSL("writing DER") }
    defer { openssl_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }
}
