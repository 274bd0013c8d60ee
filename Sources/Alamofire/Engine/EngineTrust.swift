import Foundation
import HTTPEngine
import HTTPWire

/// A certificate that OpenSSL has read.
struct ParsedCertificate: Sendable, Hashable {
  fileprivate let x509: X509Certificate

  fileprivate init(_ x509: X509Certificate) { self.x509 = x509 }

  /// Reads one certificate; `nil` when these bytes are none.
  init?(der: Data) {
    guard let x509 = X509Certificate(der: der) else { return nil }
    self.x509 = x509
  }

  /// All certificates of a PEM text, or the one of DER bytes; `nil` when one is broken, empty when there is none.
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

/// Public keys as the engine reads them.
enum PublicKeyBytes {
  /// The keys of DER bytes or a PEM text, each as SubjectPublicKeyInfo; `nil` when one is broken.
  static func all(in data: Data) -> [Data]? { X509PublicKey.all(in: data) }
  /// PKCS#1, or the point of an elliptic curve; `nil` when `key` is no key.
  static func content(of key: Data) -> Data? { X509PublicKey.content(of: key) }
  /// SHA-256.
  static func digest(of key: Data) -> Data { X509PublicKey.digest(of: key) }
  /// Such as `RSA 2048`.
  static func outline(of key: Data) -> String { X509PublicKey.outline(of: key) }
}

/// The engine's verification of the certificates of a server.
struct ChainInspection: Sendable {
  let certificates: [ParsedCertificate]
  /// The trust anchors; `nil` for the trust store of `options`.
  let anchors: [ParsedCertificate]?
  let options: TransportOptions
  /// The proxies for requests to OCSP responders; `nil` for those of the process environment.
  let proxies: ProxyTable?

  /// The path from the server's certificate to a trusted one.
  func path() -> Result<[ParsedCertificate], ChainFault> {
    trusted().flatMap { anchors in
      RevocationLists.of(options.certificateRevocationLists).flatMap { lists in
        var verifier = ChainVerifier(anchors: anchors, host: nil)
        verifier.revocationLists = lists
        return verifier.verify(certificates.map(\.x509)).map { path in path.map { ParsedCertificate($0) } }
      }
    }
  }

  /// The certificates that really are the server's own, trusted or not.
  func serverChain() -> [ParsedCertificate] {
    ServerChain.of(certificates.map(\.x509), anchors: try? trusted().get()).map { ParsedCertificate($0) }
  }

  /// The fault of a verified path for this host.
  func fault(of path: [ParsedCertificate], for host: String) -> ChainFault? {
    HostCheck.fault(of: path.map(\.x509), for: host)
  }

  /// Returns the fault of the server's own chain, trusted or not, according to the revocation lists of the program.
  func listFault() -> ChainFault? {
    guard !options.certificateRevocationLists.isEmpty else { return nil }
    switch RevocationLists.of(options.certificateRevocationLists) {
    case .success(let lists):
      return lists.fault(ofLinked: serverChain().map(\.x509), presented: certificates.map(\.x509))
    case .failure(let fault): return fault
    }
  }

  /// Returns the fault of a verified path according to revocation lists and OCSP.
  func revocationFault(
    of path: [ParsedCertificate], _ rules: RevocationTrustEvaluator.Options, stapled: Data?
  ) -> ChainFault? {
    let lists: RevocationLists
    switch RevocationLists.of(options.certificateRevocationLists) {
    case .success(let read): lists = read
    case .failure(let fault): return fault
    }
    let isAnyMethod = rules.isDisjoint(with: [.ocsp, .crl, .preferCRL])
    let check = RevocationCheck(
      asksResponders: isAnyMethod || rules.contains(.ocsp),
      readsLists: isAnyMethod || !rules.isDisjoint(with: [.crl, .preferCRL]),
      prefersLists: rules.contains(.preferCRL), requiresAnswer: rules.contains(.requirePositiveResponse),
      usesNetwork: !rules.contains(.networkAccessDisabled), publicOnly: options.refusesPrivateAddresses,
      proxies: proxies, lists: lists, stapledResponse: stapled)
    return check.fault(of: path.map(\.x509))
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

extension ServerTrust.Failure {
  init(_ fault: ChainFault, host: String) {
    self.init(kind: Kind(fault), certificateIndex: fault.depth, message: fault.message(for: host))
  }
}

extension ServerTrust.Failure.Kind {
  fileprivate init(_ fault: ChainFault) {
    self =
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
