import COpenSSL
package import FoundationEssentials
package import HTTPWire

/// The reason why a client identity cannot be created or used.
package enum IdentityFault: Error, Sendable, Equatable {
  /// The bytes are neither PKCS#12 nor PEM with a certificate and a key.
  case unreadable(String)
  case wrongPassphrase
  case noCertificate
  case noPrivateKey
  case keyDoesNotMatch
  case expired
  case notYetValid
}

extension ClientIdentity {
  /// Reads a PKCS#12 file (RFC 7292).
  package static func read(pkcs12 data: Data, passphrase: String) -> Result<ClientIdentity, IdentityFault> {
    ERR_clear_error()
    defer { ERR_clear_error() }
    guard let container = Self.container(data) else { return .failure(.unreadable(OpenSSLBytes.errors())) }
    defer { PKCS12_free(container) }
    var key: OpaquePointer?
    var certificate: OpaquePointer?
    var others: OpaquePointer?
    let isOpen = PKCS12_parse(container, passphrase, &key, &certificate, &others) == 1
    defer {
      if let key { EVP_PKEY_free(key) }
      if let others { openssl_free_certificates(others) }
    }
    guard isOpen else {
      let isWrong = openssl_error_reason(ERR_peek_last_error()) == PKCS12_R_MAC_VERIFY_FAILURE
      return .failure(isWrong ? .wrongPassphrase : .unreadable(OpenSSLBytes.errors()))
    }
    let own = certificate.flatMap { X509Certificate(owning: $0) }
    var chain: [X509Certificate] = []
    for index in 0..<max(0, openssl_certificate_count(others)) {
      guard let pointer = openssl_certificate_at(others, index), X509_up_ref(pointer) == 1,
        let issuer = X509Certificate(owning: pointer)
      else { continue }
      chain.append(issuer)
    }
    // Without a key, OpenSSL does not accept a certificate as the client's own.
    guard let own else { return .failure(key == nil && !chain.isEmpty ? .noPrivateKey : .noCertificate) }
    return make(own, chain, key)
  }

  /// Reads certificates and a private key from PEM texts (RFC 7468), which may be one text.
  package static func read(
    certificates: Data, privateKey: Data, passphrase: String?
  ) -> Result<ClientIdentity, IdentityFault> {
    guard let chain = X509Certificate.all(in: certificates) else {
      return .failure(.unreadable("one of the certificates is broken"))
    }
    guard let own = chain.first else { return .failure(.noCertificate) }
    ERR_clear_error()
    defer { ERR_clear_error() }
    guard let memory = OpenSSLMemory(reading: privateKey) else { return .failure(.noPrivateKey) }
    let asked = PassphraseRequest(passphrase)
    let key = PEM_read_bio_PrivateKey(
      memory.pointer, nil, PassphraseRequest.answer, Unmanaged.passUnretained(asked).toOpaque())
    guard let key else {
      if asked.wasAsked { return .failure(.wrongPassphrase) }
      // OpenSSL 3 does not distinguish a text without a key from one with an unknown kind of key.
      let isThere = privateKey.firstRange(of: Data("PRIVATE KEY-----".utf8)) != nil
      return .failure(isThere ? .unreadable(OpenSSLBytes.errors()) : .noPrivateKey)
    }
    defer { EVP_PKEY_free(key) }
    return make(own, Array(chain.dropFirst()), key)
  }

  private static func container(_ data: Data) -> OpaquePointer? {
    data.withUnsafeBytes { bytes in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return position == nil ? nil : d2i_PKCS12(nil, &position, bytes.count)
    }
  }

  private static func make(
    _ own: X509Certificate, _ issuers: [X509Certificate], _ key: OpaquePointer?
  ) -> Result<ClientIdentity, IdentityFault> {
    guard let key, let bytes = privateKeyBytes(key) else { return .failure(.noPrivateKey) }
    guard X509_check_private_key(own.pointer, key) == 1 else { return .failure(.keyDoesNotMatch) }
    if X509_cmp_current_time(X509_get0_notBefore(own.pointer)) > 0 { return .failure(.notYetValid) }
    // A certificate is valid through its last second (RFC 5280 §4.1.2.5), but OpenSSL takes it for expired then.
    let isOver = OpenSSLTime.seconds(X509_get0_notAfter(own.pointer)).map { $0 < OpenSSLTime.now }
    if isOver ?? true { return .failure(.expired) }
    return .success(
      ClientIdentity(
        certificates: [own.der] + issuers.map(\.der), subject: own.subject, privateKey: bytes))
  }

  /// Encodes a private key as PKCS#8 (RFC 5958).
  private static func privateKeyBytes(_ key: OpaquePointer) -> Data? {
    guard let info = EVP_PKEY2PKCS8(key) else { return nil }
    defer { PKCS8_PRIV_KEY_INFO_free(info) }
    return OpenSSLBytes.of { i2d_PKCS8_PRIV_KEY_INFO(info, $0) }
  }
}

extension ClientIdentity {
  /// Makes this the identity of the connections of `context`. Returns the failure if that is not possible.
  package func use(in context: OpaquePointer) -> TransportFailure? {
    use(
      { SSL_CTX_use_certificate(context, $0) }, { SSL_CTX_use_PrivateKey(context, $0) },
      { openssl_add_chain_certificate(context, $0) })
  }

  /// Makes this the identity of one connection during its handshake. Returns the failure if that is not possible.
  package func use(inSession session: OpaquePointer) -> TransportFailure? {
    use(
      { SSL_use_certificate(session, $0) }, { SSL_use_PrivateKey(session, $0) },
      { openssl_add_chain_certificate_of(session, $0) })
  }

  private func use(
    _ setCertificate: (OpaquePointer) -> Int32, _ setKey: (OpaquePointer) -> Int32,
    _ addIssuer: (OpaquePointer) -> Int
  ) -> TransportFailure? {
    ERR_clear_error()
    defer { ERR_clear_error() }
    let chain = certificates.compactMap { X509Certificate(der: $0) }
    let key = privateKey.withUnsafeBytes { bytes -> OpaquePointer? in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return position == nil ? nil : d2i_AutoPrivateKey(nil, &position, bytes.count)
    }
    defer { EVP_PKEY_free(key) }
    guard let own = chain.first, let key, setCertificate(own.pointer) == 1, setKey(key) == 1 else {
      return rejected
    }
    for issuer in chain.dropFirst() {
      guard X509_up_ref(issuer.pointer) == 1 else { return rejected }
      guard addIssuer(issuer.pointer) == 1 else {
        X509_free(issuer.pointer)
        return rejected
      }
    }
    return nil
  }

  private var rejected: TransportFailure {
    TransportFailure(
      .clientCertificateRejected,
      "The client certificate \(subject) could not be used: \(OpenSSLBytes.errors()). A key of at least 2048 bits (RSA) may be needed."
    )
  }
}

/// Answers OpenSSL's request for a passphrase, and records that there was one.
private final class PassphraseRequest {
  private let passphrase: String?
  private(set) var wasAsked = false

  init(_ passphrase: String?) {
    self.passphrase = passphrase
  }

  static let answer:
    @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) ->
      Int32 = { buffer, size, _, context in
        guard let buffer, let context else { return -1 }
        let request = Unmanaged<PassphraseRequest>.fromOpaque(context).takeUnretainedValue()
        request.wasAsked = true
        guard let passphrase = request.passphrase, passphrase.utf8.count <= Int(size) else { return -1 }
        for (index, byte) in passphrase.utf8.enumerated() { buffer[index] = CChar(bitPattern: byte) }
        return Int32(passphrase.utf8.count)
      }
}
