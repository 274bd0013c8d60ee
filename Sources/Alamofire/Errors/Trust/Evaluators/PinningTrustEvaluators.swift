public import Foundation

/// Trusts servers with a pinned certificate: the server's own, or one of an authority that issued it. Certificates are
/// compared byte by byte. A pinned certificate that the server merely sent does not match.
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
  ///   - certificates:                 The pinned certificates; an empty array refuses every server. Default: the
  ///     certificates in the main bundle.
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

/// Trusts servers with a pinned public key: the server's own, or the key of an authority that issued its certificate.
/// The pin survives a renewal of the certificate if the key stays the same.
///
/// Pins are the keys of certificates, or digests of keys. Among digests, include one of a backup key, in case the first
/// key is lost:
///
/// ```swift
/// let evaluator = try PublicKeysTrustEvaluator(pins: [
///   "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
///   "sha256/n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
/// ])
/// ```
///
/// ``PinnedCertificatesTrustEvaluator`` describes what is verified besides the pin.
public final class PublicKeysTrustEvaluator: ServerTrustEvaluating {
  private let keys: [SecKey]
  private let pins: Set<PublicKeyPin>
  private let performDefaultValidation: Bool
  private let validateHost: Bool

  /// Makes an evaluator with keys.
  ///
  /// - Parameters:
  ///   - keys:                     The pinned keys; an empty array refuses every server. Default: the keys of the
  ///     certificates in the main bundle.
  ///   - performDefaultValidation: Whether the chain is verified, too. Default: `true`.
  ///   - validateHost:             Whether the certificate has to be valid for the host; the chain is then verified
  ///     in any case. Default: `true`.
  public init(
    keys: [SecKey] = Bundle.main.af.publicKeys, performDefaultValidation: Bool = true,
    validateHost: Bool = true
  ) {
    self.keys = keys
    pins = Set(keys.map(\.pin))
    self.performDefaultValidation = performDefaultValidation
    self.validateHost = validateHost
  }

  /// Pins keys by their digests.
  ///
  /// - Parameters:
  ///   - pins:                     `sha256/` and 44 characters of Base64 each; none refuse every server.
  ///   - performDefaultValidation: Whether the chain is verified, too. Default: `true`.
  ///   - validateHost:             Whether the certificate has to be valid for the host; the chain is then verified
  ///     in any case. Default: `true`.
  /// - Throws: ``PublicKeyPin/Invalid`` for the first text that is not a pin.
  public init(
    pins: [String], performDefaultValidation: Bool = true, validateHost: Bool = true
  ) throws(PublicKeyPin.Invalid) {
    var read: Set<PublicKeyPin> = []
    for pin in pins { read.insert(try PublicKeyPin(pin)) }
    keys = []
    self.pins = read
    self.performDefaultValidation = performDefaultValidation
    self.validateHost = validateHost
  }

  /// Throws `AFError.serverTrustEvaluationFailed` with `noPublicKeysFound`, `trustEvaluationFailed` or
  /// `publicKeyPinningFailed`, whose list of pinned keys is empty when they are known by their digests alone.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    guard !pins.isEmpty else { throw AFError.serverTrustEvaluationFailed(reason: .noPublicKeysFound) }
    if performDefaultValidation { try trust.af.performDefaultValidation(forHost: host) }
    if validateHost { try trust.af.performValidation(forHost: host) }
    if !performDefaultValidation, !validateHost { try trust.af.evaluateLists() }
    let shown = trust.af.publicKeys
    guard pins.isDisjoint(with: shown.map(\.pin)) else { return }
    trust.requiredPins = pins.sorted { $0.description < $1.description }
    throw AFError.serverTrustEvaluationFailed(
      reason: .publicKeyPinningFailed(host: host, trust: trust, pinnedKeys: keys, serverKeys: shown))
  }
}

extension PublicKeysTrustEvaluator: InstantTrustEvaluator {}

extension ServerTrustEvaluating where Self == PublicKeysTrustEvaluator {
  /// A ``PublicKeysTrustEvaluator`` for the keys of the certificates of the main bundle.
  public static var publicKeys: PublicKeysTrustEvaluator { PublicKeysTrustEvaluator() }

  /// Makes a ``PublicKeysTrustEvaluator``; see its initialiser.
  public static func publicKeys(
    keys: [SecKey] = Bundle.main.af.publicKeys, performDefaultValidation: Bool = true,
    validateHost: Bool = true
  ) -> PublicKeysTrustEvaluator {
    PublicKeysTrustEvaluator(
      keys: keys, performDefaultValidation: performDefaultValidation, validateHost: validateHost)
  }

  /// Makes a ``PublicKeysTrustEvaluator`` for digests (`sha256/…`); see its initialiser.
  public static func publicKeys(
    pins: [String], performDefaultValidation: Bool = true, validateHost: Bool = true
  ) throws(PublicKeyPin.Invalid) -> PublicKeysTrustEvaluator {
    try PublicKeysTrustEvaluator(
      pins: pins, performDefaultValidation: performDefaultValidation, validateHost: validateHost)
  }
}
