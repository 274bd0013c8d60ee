import Foundation
import HTTPEngine
import HTTPSystem
import HTTPWire

/// A certificate, read by OpenSSL.
struct ParsedCertificate: Sendable, Hashable {
  fileprivate let x509: X509Certificate

  fileprivate init(_ x509: X509Certificate) { self.x509 = x509 }

  /// Reads one certificate; `nil` if `der` holds none.
  init?(der: Data) {
    guard let x509 = X509Certificate(der: der) else { return nil }
    self.x509 = x509
  }

  /// Returns all certificates of a PEM text, or the one of DER bytes; `nil` if one is malformed, empty without any.
  static func all(in data: Data) -> [ParsedCertificate]? {
    X509Certificate.all(in: data)?.map { ParsedCertificate($0) }
  }

  var der: Data { x509.der }
  /// SubjectPublicKeyInfo.
  var publicKey: Data? { x509.publicKey }
  var subject: String { x509.subject }
  var subjectSummary: String? { x509.subjectSummary }
  var issuer: String { x509.issuer }
  var serialNumber: String { x509.serialNumber }
  var hostNames: [String] { x509.hostNames }
  var addresses: [String] { x509.addresses }
  var isSelfSigned: Bool { x509.isSelfSigned }
  var validity: ClosedRange<Date>? {
    x509.validity.map { validity in
      Date(
        timeIntervalSince1970: Double(validity.lowerBound))...Date(
          timeIntervalSince1970: Double(validity.upperBound))
    }
  }

  static func == (left: ParsedCertificate, right: ParsedCertificate) -> Bool { left.der == right.der }
  func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

/// Public keys, read by OpenSSL.
enum PublicKeyBytes {
  /// Returns the keys of DER bytes or a PEM text, each as SubjectPublicKeyInfo; `nil` if one is malformed.
  static func all(in data: Data) -> [Data]? { X509PublicKey.all(in: data) }
  /// Returns PKCS#1, or the point of an elliptic curve; `nil` if `key` is malformed.
  static func content(of key: Data) -> Data? { X509PublicKey.content(of: key) }
  /// Returns the SHA-256 digest.
  static func digest(of key: Data) -> Data { X509PublicKey.digest(of: key) }
  /// Returns algorithm and size, such as `RSA 2048`.
  static func outline(of key: Data) -> String { X509PublicKey.outline(of: key) }
}

/// The rules of a check for revocation.
struct RevocationRules: Sendable {
  let asksResponders: Bool
  let readsLists: Bool
  let prefersLists: Bool
  let requiresAnswer: Bool
  let usesNetwork: Bool
}

/// The verification of the certificates of a server by OpenSSL.
struct ChainInspection: Sendable {
  let certificates: [ParsedCertificate]
  /// The certificates at which paths have to end; `nil` leaves them to `options`.
  let anchors: [ParsedCertificate]?
  let options: TransportOptions
  /// The proxies to responders and lists; `nil` uses those of the environment.
  let proxies: ProxyTable?

  /// Returns the path from the server's certificate to a trusted one.
  func path() -> Result<[ParsedCertificate], ChainFailure> {
    trusted().flatMap { anchors in
      RevocationLists.of(options.certificateRevocationLists).flatMap { lists in
        var verifier = ChainVerifier(anchors: anchors, host: nil)
        verifier.revocationLists = lists
        return verifier.verify(certificates.map(\.x509)).map { path in path.map { ParsedCertificate($0) } }
      }
    }.mapError { ChainFailure($0) }
  }

  /// Returns the certificates that form the server's own chain, trusted or not.
  func serverChain() -> [ParsedCertificate] {
    ServerChain.of(certificates.map(\.x509), anchors: try? trusted().get()).map { ParsedCertificate($0) }
  }

  /// Returns the failure of a verified path for this host.
  func failure(of path: [ParsedCertificate], for host: String) -> ChainFailure? {
    HostCheck.fault(of: path.map(\.x509), for: host).map { ChainFailure($0) }
  }

  /// Returns the failure if a list of the program revokes a certificate of the server's own chain, trusted or not.
  func listFailure() -> ChainFailure? {
    guard !options.certificateRevocationLists.isEmpty else { return nil }
    switch RevocationLists.of(options.certificateRevocationLists) {
    case .success(let lists):
      return lists.fault(ofLinked: serverChain().map(\.x509), presented: certificates.map(\.x509))
        .map { ChainFailure($0) }
    case .failure(let fault): return ChainFailure(fault)
    }
  }

  /// Returns the failure if a certificate of a verified path is revoked, or if its status is unknown and `rules`
  /// require it.
  func revocationFailure(
    of path: [ParsedCertificate], _ rules: RevocationRules, stapled: Data?
  ) -> ChainFailure? {
    let lists: RevocationLists
    switch RevocationLists.of(options.certificateRevocationLists) {
    case .success(let read): lists = read
    case .failure(let fault): return ChainFailure(fault)
    }
    let check = RevocationCheck(
      asksResponders: rules.asksResponders, readsLists: rules.readsLists, prefersLists: rules.prefersLists,
      requiresAnswer: rules.requiresAnswer, downloads: downloads(rules), lists: lists,
      stapledResponse: stapled)
    return check.fault(of: path.map(\.x509)).map { ChainFailure($0) }
  }

  private func downloads(_ rules: RevocationRules) -> RevocationDownload? {
    guard rules.usesNetwork else { return nil }
    return RevocationDownload(publicOnly: options.refusesPrivateAddresses, proxies: proxies)
  }

  private func trusted() -> Result<TrustAnchors, ChainFault> {
    guard let anchors else { return TrustAnchors.of(options.trustStore) }
    guard let only = TrustAnchors(anchors.map(\.x509)) else {
      return .failure(
        ChainFault(kind: .resourceUnavailable, message: "There is not enough memory for the anchors."))
    }
    return .success(only)
  }
}

/// The reason why OpenSSL does not trust the certificates of a server.
struct ChainFailure: Error {
  enum Kind: String {
    case hostMismatch, expired, notYetValid, unknownRoot, revoked, revocationUnknown, untrusted, unavailable
  }

  private let fault: ChainFault

  fileprivate init(_ fault: ChainFault) { self.fault = fault }

  /// The distance of the certificate from the server's own, which is 0.
  var certificateIndex: Int { fault.depth }

  func message(for host: String) -> String { fault.message(for: host) }

  var kind: Kind {
    switch fault.kind {
    case .certificateNotYetValid: .notYetValid
    case .certificateHasBadDate: .expired
    case .certificateHasUnknownRoot: .unknownRoot
    case .resourceUnavailable: .unavailable
    default:
      if fault.isHostMismatch {
        .hostMismatch
      } else if fault.isRevocation {
        .revoked
      } else if fault.isRevocationUnknown {
        .revocationUnknown
      } else {
        .untrusted
      }
    }
  }
}

/// Client identities, as OpenSSL reads them.
enum Identities {
  static func read(pkcs12: Data, passphrase: String) throws(ClientIdentity.Failure) -> ClientIdentity {
    try unwrap(ClientIdentity.read(pkcs12: pkcs12, passphrase: passphrase))
  }

  static func read(
    certificates: Data, privateKey: Data, passphrase: String?
  ) throws(ClientIdentity.Failure) -> ClientIdentity {
    try unwrap(
      ClientIdentity.read(certificates: certificates, privateKey: privateKey, passphrase: passphrase))
  }

  private static func unwrap(
    _ result: Result<ClientIdentity, IdentityFault>
  ) throws(ClientIdentity.Failure) -> ClientIdentity {
    switch result {
    case .success(let identity): return identity
    case .failure(let fault):
      throw switch fault {
      case .unreadable(let detail): .unreadable(detail)
      case .wrongPassphrase: .wrongPassphrase
      case .noCertificate: .noCertificate
      case .noPrivateKey: .noPrivateKey
      case .keyDoesNotMatch: .keyDoesNotMatch
      case .expired: .expired
      case .notYetValid: .notYetValid
      }
    }
  }
}
