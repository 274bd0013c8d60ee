public import Foundation

/// Trusts servers with a pinned certificate: the server's own, or that of an authority which issued it. Certificates
/// are compared byte by byte. A pinned certificate that the server merely sent does not match.
///
/// Certificates expire. After the renewal of a server's certificate, the pin of the old one refuses the server;
/// ``PublicKeysTrustEvaluator`` and pins of authorities are valid longer.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: [
///   "example.com": .pinnedCertificates(certificates: try Certificate.all(inFolder: folder))
/// ])
/// ```
///
/// With `acceptSelfSignedCertificates`, the pinned certificates are also authorities, so that a server with a
/// self-signed certificate is trusted. Host and dates are still checked:
///
/// ```swift
/// let pins = try Certificate.all(contentsOf: URL(fileURLWithPath: "/etc/company/server.pem"))
/// let manager = ServerTrustManager(evaluators: [
///   "localhost": .pinnedCertificates(certificates: pins, acceptSelfSignedCertificates: true)
/// ])
/// ```
///
/// ## Verification besides the pin
///
/// A pin matches if a path of valid signatures leads from the server's own certificate to the pinned one. Each
/// authority on the path must be allowed to issue what it issued. Two parameters decide what else is verified:
///
/// - With `validateHost: true`, the default, the whole chain is verified: the path to the trust store, the dates and
///   the host. This holds with `performDefaultValidation: false` too, because a name in a certificate without a trusted
///   issuer proves nothing.
/// - With `performDefaultValidation: true` and `validateHost: false`, all of that is verified except the host.
/// - With both `false`, host, dates and the trust store do not count. The pin decides, with the revocation lists of the
///   program (``TransportOptions/certificateRevocationLists``).
public final class PinnedCertificatesTrustEvaluator: ServerTrustEvaluating {
  private let certificates: [SecCertificate]
  private let acceptSelfSignedCertificates: Bool
  private let performDefaultValidation: Bool
  private let validateHost: Bool

  /// Makes an evaluator with certificates.
  ///
  /// - Parameters:
  ///   - certificates:                 The pinned certificates; an empty array refuses every server. Default: those
  ///     of the main bundle.
  ///   - acceptSelfSignedCertificates: Whether they replace the trust store, so that it need not contain them.
  ///     Default: `false`.
  ///   - performDefaultValidation:     Whether the chain is verified, too. Default: `true`.
  ///   - validateHost:                 Whether the certificate has to be valid for the host; the chain is then
  ///     verified in any case. Default: `true`.
  public init(
    certificates: [SecCertificate] = Bundle.main.af.certificates, acceptSelfSignedCertificates: Bool = false,
    performDefaultValidation: Bool = true, validateHost: Bool = true
  ) {
    self.certificates = certificates
    self.acceptSelfSignedCertificates = acceptSelfSignedCertificates
    self.performDefaultValidation = performDefaultValidation
    self.validateHost = validateHost
  }

  /// Throws `AFError.serverTrustEvaluationFailed` with `noCertificatesFound`, `trustEvaluationFailed` or
  /// `certificatePinningFailed`.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    guard !certificates.isEmpty else {
      throw AFError.serverTrustEvaluationFailed(reason: .noCertificatesFound)
    }
    if acceptSelfSignedCertificates { try trust.af.setAnchorCertificates(certificates) }
    if performDefaultValidation { try trust.af.performDefaultValidation(forHost: host) }
    if validateHost { try trust.af.performValidation(forHost: host) }
    if !performDefaultValidation, !validateHost { try trust.af.evaluateLists() }
    let shown = trust.af.certificates
    guard Set(shown).isDisjoint(with: certificates) else { return }
    throw AFError.serverTrustEvaluationFailed(
      reason: .certificatePinningFailed(
        host: host, trust: trust, pinnedCertificates: certificates, serverCertificates: shown))
  }
}

extension PinnedCertificatesTrustEvaluator: InstantTrustEvaluator {}

extension ServerTrustEvaluating where Self == PinnedCertificatesTrustEvaluator {
  /// A ``PinnedCertificatesTrustEvaluator`` for the certificates of the main bundle.
  public static var pinnedCertificates: PinnedCertificatesTrustEvaluator {
    PinnedCertificatesTrustEvaluator()
  }

  /// Makes a ``PinnedCertificatesTrustEvaluator``; see its initialiser.
  public static func pinnedCertificates(
    certificates: [SecCertificate] = Bundle.main.af.certificates, acceptSelfSignedCertificates: Bool = false,
    performDefaultValidation: Bool = true, validateHost: Bool = true
  ) -> PinnedCertificatesTrustEvaluator {
    PinnedCertificatesTrustEvaluator(
      certificates: certificates, acceptSelfSignedCertificates: acceptSelfSignedCertificates,
      performDefaultValidation: performDefaultValidation, validateHost: validateHost)
  }
}
