/// A certificate with its private key, made at run time, for a server or a client.
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

  /// The identity of `localhost`, `127.0.0.1` and `::1`, issued by ``localhostAuthority``; made once a
  /// process, with P-256 keys, valid from yesterday for a year.
  public static var localhost: TestIdentity { DefaultIdentities.shared.localhost }

  /// The authority that issued ``localhost``; made once a process.
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
