import COpenSSL

/// Makes an X.509 certificate (RFC 5280) of a specification that has been validated.
struct CertificateBuilder {
  private let specification: TestIdentity.Specification
  private let key: KeyHandle

  init(_ specification: TestIdentity.Specification, key: KeyHandle) {
    self.specification = specification
    self.key = key
  }

  func build() throws(ServerError) -> CertificateHandle {
    ERR_clear_error()
    guard let pointer = X509_new() else { throw .openSSL("making a certificate") }
    let certificate = CertificateHandle(owning: pointer)
    try setBasics(of: certificate)
    guard let issuer = specification.issuer else {
      X509_set_issuer_name(pointer, X509_get_subject_name(pointer))
      try addExtensions(to: certificate, issuer: certificate)
      try sign(certificate, with: key)
      return certificate
    }
    guard let issuerCertificate = try PEM.certificates(issuer.certificatePEM).first else {
      throw .tls("the issuer has no certificate")
    }
    X509_set_issuer_name(pointer, X509_get_subject_name(issuerCertificate.pointer))
    try addExtensions(to: certificate, issuer: issuerCertificate)
    try sign(certificate, with: try PEM.key(issuer.privateKeyPEM))
    return certificate
  }

  private func setBasics(of certificate: CertificateHandle) throws(ServerError) {
    let pointer = certificate.pointer
    let name = Array(specification.commonName.utf8)
    // A serial number is unique for an issuer (RFC 5280 §4.1.2.2): 63 random bits.
    let serial = UInt64.random(in: 1...UInt64(Int64.max))
    guard X509_set_version(pointer, 2) == 1,
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(pointer), serial) == 1,
      X509_gmtime_adj(X509_getm_notBefore(pointer), Int(specification.notBefore.components.seconds)) != nil,
      X509_gmtime_adj(X509_getm_notAfter(pointer), Int(specification.notAfter.components.seconds)) != nil,
      X509_set_pubkey(pointer, key.pointer) == 1,
      X509_NAME_add_entry_by_txt(
        X509_get_subject_name(pointer), "CN", Int32(MBSTRING_UTF8), name, Int32(name.count), -1, 0) == 1
    else { throw .openSSL("filling in a certificate") }
  }

  private func addExtensions(
    to certificate: CertificateHandle, issuer: CertificateHandle
  ) throws(ServerError) {
    var extensions: [(id: Int32, value: String)] = [
      (NID_basic_constraints, specification.isCA ? "critical,CA:TRUE" : "critical,CA:FALSE"),
      (NID_key_usage, "critical," + keyUsage),
      (NID_subject_key_identifier, "hash"),
    ]
    if specification.issuer != nil { extensions.append((NID_authority_key_identifier, "keyid:always")) }
    if !specification.isCA { extensions.append((NID_ext_key_usage, "serverAuth,clientAuth")) }
    let names = specification.dnsNames.map { "DNS:\($0)" } + specification.ipAddresses.map { "IP:\($0)" }
    if !names.isEmpty { extensions.append((NID_subject_alt_name, names.joined(separator: ","))) }
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer.pointer, certificate.pointer, nil, nil, 0)
    for (id, value) in extensions {
      guard let made = X509V3_EXT_conf_nid(nil, &context, id, value) else {
        throw .openSSL("the extension \(value)")
      }
      defer { X509_EXTENSION_free(made) }
      guard X509_add_ext(certificate.pointer, made, -1) == 1 else {
        throw .openSSL("adding the extension \(value)")
      }
    }
  }

  private var keyUsage: String {
    if specification.isCA { return "keyCertSign,cRLSign,digitalSignature" }
    // Only RSA keys encipher other keys (RFC 5280 §4.2.1.3).
    return specification.key == .ec ? "digitalSignature" : "digitalSignature,keyEncipherment"
  }

  private func sign(_ certificate: CertificateHandle, with key: KeyHandle) throws(ServerError) {
    guard X509_sign(certificate.pointer, key.pointer, EVP_sha256()) > 0 else {
      throw .openSSL("signing a certificate")
    }
  }
}
