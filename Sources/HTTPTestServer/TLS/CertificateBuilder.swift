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
    let signed = specification.hasNegativeSerialNumber ? -Int64(serial) : Int64(serial)
    guard X509_set_version(pointer, 2) == 1,
      ASN1_INTEGER_set_int64(X509_get_serialNumber(pointer), signed) == 1,
      X509_gmtime_adj(X509_getm_notBefore(pointer), Int(specification.notBefore.components.seconds)) != nil,
      X509_gmtime_adj(X509_getm_notAfter(pointer), Int(specification.notAfter.components.seconds)) != nil,
      X509_set_pubkey(pointer, key.pointer) == 1,
      !specification.hasSubject
        || X509_NAME_add_entry_by_txt(
          X509_get_subject_name(pointer), "CN", Int32(MBSTRING_UTF8), name, Int32(name.count), -1, 0) == 1
    else { throw .openSSL("filling in a certificate") }
  }

  private func addExtensions(
    to certificate: CertificateHandle, issuer: CertificateHandle
  ) throws(ServerError) {
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

  private var extensions: [(id: Int32, value: String)] {
    var extensions: [(id: Int32, value: String)] = [
      (NID_key_usage, "critical," + keyUsage), (NID_subject_key_identifier, "hash"),
    ]
    if specification.hasBasicConstraints { extensions.insert((NID_basic_constraints, constraints), at: 0) }
    if let identifier = specification.authorityKeyIdentifier {
      // A sequence with only the key identifier, which has tag 0 (RFC 5280 §4.2.1.1).
      let bytes = [0x30, UInt8(identifier.count + 2), 0x80, UInt8(identifier.count)] + identifier
      let text = bytes.map {
        String($0, radix: 16).count == 1 ? "0" + String($0, radix: 16) : String($0, radix: 16)
      }
      extensions.append((NID_authority_key_identifier, "DER:" + text.joined(separator: ":")))
    } else if specification.issuer != nil {
      extensions.append((NID_authority_key_identifier, "keyid:always"))
    }
    let usages = specification.usages ?? (specification.isCA ? [] : [.server, .client])
    let names = specification.dnsNames.map { "DNS:\($0)" } + specification.ipAddresses.map { "IP:\($0)" }
    let domains =
      specification.permittedDomains.map { "permitted;DNS:\($0)" }
      + specification.excludedDomains.map { "excluded;DNS:\($0)" }
    let lists: [(id: Int32, prefix: String, values: [String])] = [
      (NID_ext_key_usage, "", usages.map(\.rawValue)), (NID_subject_alt_name, "", names),
      (NID_name_constraints, "critical,", domains),
      (NID_info_access, "", specification.statusURL.map { ["OCSP;URI:\($0)"] } ?? []),
      (NID_crl_distribution_points, "", specification.listURL.map { ["URI:\($0)"] } ?? []),
    ]
    for (id, prefix, values) in lists where !values.isEmpty {
      extensions.append((id, prefix + values.joined(separator: ",")))
    }
    return extensions
  }

  private var constraints: String {
    guard specification.isCA else { return "critical,CA:FALSE" }
    return "critical,CA:TRUE" + (specification.pathLength.map { ",pathlen:\($0)" } ?? "")
  }

  private var keyUsage: String {
    if specification.isCA {
      return specification.signsLists
        ? "keyCertSign,cRLSign,digitalSignature" : "keyCertSign,digitalSignature"
    }
    // Only RSA keys encipher other keys (RFC 5280 §4.2.1.3).
    return specification.key == .ec ? "digitalSignature" : "digitalSignature,keyEncipherment"
  }

  private func sign(_ certificate: CertificateHandle, with key: KeyHandle) throws(ServerError) {
    guard X509_sign(certificate.pointer, key.pointer, specification.digest.algorithm) > 0 else {
      throw .openSSL("signing a certificate")
    }
  }
}

extension TestIdentity.Specification.Digest {
  var algorithm: OpaquePointer? {
    switch self {
    case .sha256: EVP_sha256()
    case .sha1: EVP_sha1()
    case .md5: EVP_md5()
    }
  }
}

/// Reading and writing OpenSSL's objects as PEM text (RFC 7468).
enum PEM {
  static func text(of certificate: CertificateHandle) throws(ServerError) -> String {
    try text { PEM_write_bio_X509($0, certificate.pointer) == 1 }
  }

  static func text(of key: KeyHandle) throws(ServerError) -> String {
    try text { PEM_write_bio_PrivateKey($0, key.pointer, nil, nil, 0, nil, nil) == 1 }
  }

  /// Returns all certificates of a text.
  static func certificates(_ text: String) throws(ServerError) -> [CertificateHandle] {
    guard let memory = MemoryHandle(reading: text) else { throw .openSSL("reading a certificate") }
    var result: [CertificateHandle] = []
    while let pointer = PEM_read_bio_X509(memory.pointer, nil, nil, nil) {
      result.append(CertificateHandle(owning: pointer))
    }
    guard !result.isEmpty else { throw .openSSL("reading a certificate") }
    ERR_clear_error()
    return result
  }

  static func key(_ text: String) throws(ServerError) -> KeyHandle {
    guard let memory = MemoryHandle(reading: text),
      let pointer = PEM_read_bio_PrivateKey(memory.pointer, nil, nil, nil)
    else { throw .openSSL("reading a private key") }
    return KeyHandle(owning: pointer)
  }

  private static func text(_ write: (OpaquePointer) -> Bool) throws(ServerError) -> String {
    guard let memory = MemoryHandle(), write(memory.pointer) else { throw .openSSL("writing PEM") }
    return memory.text
  }
}

/// Owns an `X509`.
final class CertificateHandle {
  let pointer: OpaquePointer
  init(owning pointer: OpaquePointer) { self.pointer = pointer }
  deinit { X509_free(pointer) }
}

/// Owns an `EVP_PKEY`.
final class KeyHandle {
  let pointer: OpaquePointer
  init(owning pointer: OpaquePointer) { self.pointer = pointer }
  deinit { EVP_PKEY_free(pointer) }
}

/// Owns a `BIO` in memory.
final class MemoryHandle {
  let pointer: OpaquePointer

  init?() {
    guard let pointer = BIO_new(BIO_s_mem()) else { return nil }
    self.pointer = pointer
  }

  convenience init?(reading text: String) {
    self.init()
    let bytes = Array(text.utf8)
    guard BIO_write(pointer, bytes, Int32(bytes.count)) == Int32(bytes.count) else { return nil }
  }

  deinit { BIO_free(pointer) }

  var text: String {
    var bytes: UnsafeMutablePointer<CChar>?
    let count = openssl_memory_bytes(pointer, &bytes)
    guard let bytes, count > 0 else { return "" }
    return String(
      decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
  }
}
