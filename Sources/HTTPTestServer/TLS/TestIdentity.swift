import COpenSSL
import Glibc

/// A certificate with its private key, created at run time, for a server or a client.
///
/// ```swift
/// let authority = try TestIdentity(.init(commonName: "Test CA", isCA: true))
/// let expired = try TestIdentity(
///   .init(
///     commonName: "localhost", dnsNames: ["localhost"], notBefore: .seconds(-7200),
///     notAfter: .seconds(-3600), issuer: authority))
/// let server = try HTTPTestServer(.tls(expired))
/// ```
public struct TestIdentity: Sendable, Equatable {
  /// The certificate.
  public let certificatePEM: String
  /// The private key, not encrypted (PKCS#8).
  public let privateKeyPEM: String
  /// The certificate at the top of the chain, which a client trusts in order to trust this identity;
  /// the certificate itself where it is self-signed.
  public let caPEM: String
  /// The certificates between this one and the root, nearest issuer first; neither of both included.
  public let intermediates: [String]

  /// The certificate and its intermediates, as a server sends them.
  public var chainPEM: String { ([certificatePEM] + intermediates).joined() }

  /// Whether the certificate signed itself.
  public var isSelfSigned: Bool { certificatePEM == caPEM }

  /// The identity of `localhost`, `127.0.0.1` and `::1`, issued by ``localhostAuthority``; created once per process,
  /// with P-256 keys, valid from yesterday for a year.
  public static var localhost: TestIdentity { DefaultIdentities.shared.localhost }

  /// The authority that issued ``localhost``; created once per process.
  public static var localhostAuthority: TestIdentity { DefaultIdentities.shared.authority }

  /// Makes a key and a certificate for it.
  ///
  /// An issuer need not be an authority; clients refuse the certificates that it issues then. Throws
  /// ``ServerError/invalidSpecification(_:)`` for invalid names or addresses, ``ServerError/tls(_:)`` if OpenSSL
  /// fails.
  public init(_ specification: Specification) throws(ServerError) {
    try specification.validate()
    let key =
      if let owner = specification.keyOwner { try PEM.key(owner.privateKeyPEM) } else {
        try specification.key.generate()
      }
    let builder = CertificateBuilder(specification, key: key)
    let certificate = try builder.build()
    certificatePEM = try PEM.text(of: certificate)
    privateKeyPEM = try PEM.text(of: key)
    if let issuer = specification.issuer {
      caPEM = issuer.caPEM
      intermediates = issuer.isSelfSigned ? [] : [issuer.certificatePEM] + issuer.intermediates
    } else {
      caPEM = certificatePEM
      intermediates = []
    }
  }
}

/// The identities that most tests use.
private struct DefaultIdentities: Sendable {
  let authority: TestIdentity
  let localhost: TestIdentity

  static let shared = DefaultIdentities()

  init() {
    do {
      authority = try TestIdentity(.init(commonName: "HTTPTestServer CA", isCA: true))
      localhost = try TestIdentity(
        .init(
          commonName: "localhost", dnsNames: ["localhost"], ipAddresses: ["127.0.0.1", "::1"],
          issuer: authority))
    } catch {
      preconditionFailure("a fixed specification cannot fail, but: \(error)")
    }
  }
}

extension TestIdentity {
  /// The contents of a certificate. Properties that are not parameters of the initialiser can be set afterwards:
  ///
  /// ```swift
  /// var weak = TestIdentity.Specification(commonName: "weak", dnsNames: ["localhost"], issuer: authority)
  /// weak.digest = .sha1
  /// let server = try HTTPTestServer(.tls(TestIdentity(weak)))
  /// ```
  public struct Specification: Sendable, Equatable {
    /// The kind of a key.
    public enum Key: Sendable, Equatable {
      /// Elliptic curve P-256.
      case ec
      /// RSA with this many bits; clients require at least 2048.
      case rsa(bits: Int)
    }

    /// The digest that a certificate is signed with.
    public enum Digest: Sendable, Equatable {
      /// The usual one.
      case sha256
      /// Too weak for clients of today.
      case sha1
      /// Broken.
      case md5
    }

    /// The extended key usage of a certificate (`extKeyUsage`, RFC 5280 §4.2.1.12).
    public enum Usage: String, Sendable, Equatable {
      /// The certificate of a server.
      case server = "serverAuth"
      /// The certificate of a client.
      case client = "clientAuth"
      /// Answers about revocation, in the name of the issuer.
      case ocspSigning = "OCSPSigning"
      /// Signatures of programs.
      case code = "codeSigning"
    }

    /// The name of the subject.
    public var commonName: String
    /// The host names for which it is valid (`subjectAltName`); `*` is allowed in the first label.
    public var dnsNames: [String]
    /// The addresses for which it is valid, IPv4 or IPv6.
    public var ipAddresses: [String]
    /// The start of its validity, counted from now; a day ago by default. Whole seconds count.
    public var notBefore: Duration
    /// The end of its validity, counted from now; in a year by default. Whole seconds count.
    public var notAfter: Duration
    /// Whether it may issue certificates; `false` by default.
    public var isCA: Bool
    /// The issuer; `nil` makes the certificate self-signed.
    public var issuer: TestIdentity?
    /// The type of the key; P-256 by default.
    public var key: Key
    /// The identity that provides the key; `nil`, the default, makes a new key. With the key of another authority the
    /// certificate is cross-signed.
    public var keyOwner: TestIdentity?
    /// The digest of the signature; SHA-256 by default.
    public var digest: Digest = .sha256
    /// The extended key usages; `nil`, the default, is server and client, and none for an authority.
    public var usages: [Usage]?
    /// The maximum number of authorities between this one and a server; `nil`, the default, is unlimited.
    public var pathLength: Int?
    /// The domains that an authority may issue for (RFC 5280 §4.2.1.10); empty, the default, are all.
    public var permittedDomains: [String] = []
    /// The domains that an authority must not issue for; none by default.
    public var excludedDomains: [String] = []
    /// Whether an authority may sign lists (`cRLSign`); `true` by default.
    public var signsLists = true
    /// Whether it says whether it is an authority (`basicConstraints`); `true` by default.
    public var hasBasicConstraints = true
    /// Whether it has a subject; `true` by default. An authority needs one (RFC 5280 §4.1.2.6).
    public var hasSubject = true
    /// Whether its serial number is negative, which is not allowed (RFC 5280 §4.1.2.2); `false` by default.
    public var hasNegativeSerialNumber = false
    /// The key that it names as its issuer's (`authorityKeyIdentifier`). `nil`, the default, is the right one. A
    /// self-signed certificate then names none.
    public var authorityKeyIdentifier: [UInt8]?
    /// The address of its issuer's OCSP responder; `nil` by default.
    public var statusURL: String?
    /// The address of its issuer's revocation list (CRL); `nil` by default.
    public var listURL: String?

    /// Makes a specification; all but the name have defaults.
    public init(
      commonName: String, dnsNames: [String] = [], ipAddresses: [String] = [],
      notBefore: Duration = .seconds(-86_400), notAfter: Duration = .seconds(365 * 86_400),
      isCA: Bool = false, issuer: TestIdentity? = nil, key: Key = .ec
    ) {
      self.commonName = commonName
      self.dnsNames = dnsNames
      self.ipAddresses = ipAddresses
      self.notBefore = notBefore
      self.notAfter = notAfter
      self.isCA = isCA
      self.issuer = issuer
      self.key = key
    }

    func validate() throws(ServerError) {
      guard (1...64).contains(commonName.utf8.count), !commonName.utf8.contains(0) else {
        throw .invalidSpecification("a common name has 1 to 64 bytes")
      }
      for name in dnsNames where !Self.isName(name) {
        throw .invalidSpecification("\(name) is no host name")
      }
      for address in ipAddresses where !Self.isAddress(address) {
        throw .invalidSpecification("\(address) is no IP address")
      }
      for domain in permittedDomains + excludedDomains where !Self.isName(domain) {
        throw .invalidSpecification("\(domain) is no domain")
      }
      for url in [statusURL, listURL].compactMap(\.self) where url.contains(where: { ",;\n".contains($0) }) {
        throw .invalidSpecification("\(url) cannot be written into a certificate")
      }
      if notAfter < notBefore { throw .invalidSpecification("the validity ends before it starts") }
    }

    private static func isName(_ name: String) -> Bool {
      let label = name.prefix { $0 != "." }
      let rest = label.contains("*") ? name.dropFirst(label.count + 1) : name[...]
      return !rest.isEmpty
        && rest.utf8.allSatisfy { byte in
          switch byte {
          case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
          default: false
          }
        }
    }

    private static func isAddress(_ address: String) -> Bool {
      var buffer = in6_addr()
      return inet_pton(AF_INET, address, &buffer) == 1 || inet_pton(AF_INET6, address, &buffer) == 1
    }
  }
}

extension TestIdentity.Specification.Key {
  func generate() throws(ServerError) -> KeyHandle {
    ERR_clear_error()
    let pointer =
      switch self {
      case .ec: openssl_generate_ec_key("P-256")
      case .rsa(let bits): openssl_generate_rsa_key(max(0, bits))
      }
    guard let pointer else { throw .openSSL("making a key (\(self))") }
    return KeyHandle(owning: pointer)
  }
}

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
