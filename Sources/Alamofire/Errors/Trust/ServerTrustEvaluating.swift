public import Foundation
import HTTPSystem

/// Decides whether a server is trusted.
///
/// Evaluators of the program run on a Dispatch thread and may block, without delaying other requests; the connection is
/// opened again after their decision. An accepted chain stays accepted for an hour in that session:
///
/// ```swift
/// struct CompanyEvaluator: ServerTrustEvaluating {
///   func evaluate(_ trust: SecTrust, forHost host: String) throws {
///     try trust.af.performValidation(forHost: host)
///     guard trust.af.certificates.contains(where: { $0.subject.contains("O=Company") }) else {
///       throw CompanyError.stranger
///     }
///   }
/// }
/// ```
@preconcurrency
public protocol ServerTrustEvaluating: Sendable {
  /// Returns if the server is trusted, and throws otherwise. An error that is not an ``AFError`` is wrapped in
  /// `AFError.ServerTrustFailureReason.customEvaluationFailed(error:)`.
  ///
  /// - Parameters:
  ///   - trust: The certificates of the server. The object belongs to this evaluation and may be changed.
  ///   - host:  The host of the request.
  func evaluate(_ trust: SecTrust, forHost host: String) throws
}

/// A built-in evaluator that does not block, so that it can run during a handshake.
package protocol InstantTrustEvaluator: ServerTrustEvaluating {
  /// Whether this evaluator uses neither the network nor user code.
  var isInstant: Bool { get }
  /// Whether it uses a stapled OCSP response.
  var requestsStapledResponse: Bool { get }
  /// Whether it verifies that the server is the one that the URL names.
  var authenticates: Bool { get }
}

extension InstantTrustEvaluator {
  package var isInstant: Bool { true }
  package var requestsStapledResponse: Bool { false }
  package var authenticates: Bool { true }
}

extension Array where Element == any ServerTrustEvaluating {
  /// Calls all evaluators in their order, until one throws.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    for evaluator in self { try evaluator.evaluate(trust, forHost: host) }
  }
}

/// An evaluator that trusts a server if the trust store trusts its chain, with or without a check of the host name.
/// With the check, it does the same as a session without a manager.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: ["example.com": .default])
/// ```
public final class DefaultTrustEvaluator: ServerTrustEvaluating {
  private let validateHost: Bool

  /// Makes an evaluator.
  ///
  /// - Parameter validateHost: Whether the certificate has to be valid for the host. Default: `true`. Without the
  ///   check, any server with any valid certificate is trusted.
  public init(validateHost: Bool = true) {
    self.validateHost = validateHost
  }

  /// Throws `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    if validateHost { try trust.af.performValidation(forHost: host) }
    try trust.af.performDefaultValidation(forHost: host)
  }
}

extension DefaultTrustEvaluator: InstantTrustEvaluator {
  package var authenticates: Bool { validateHost }
}

extension ServerTrustEvaluating where Self == DefaultTrustEvaluator {
  /// A ``DefaultTrustEvaluator`` that checks the host name.
  public static var `default`: DefaultTrustEvaluator { DefaultTrustEvaluator() }

  /// Makes a ``DefaultTrustEvaluator``.
  public static func `default`(validateHost: Bool) -> DefaultTrustEvaluator {
    DefaultTrustEvaluator(validateHost: validateHost)
  }
}

/// Trusts every server, so that an attacker on the network path can read and change all traffic. Use it in tests
/// only. For a server with its own certificate, use ``PinnedCertificatesTrustEvaluator`` instead.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: ["localhost": .disabled])
/// ```
public final class DisabledTrustEvaluator: ServerTrustEvaluating {
  /// Makes an evaluator that trusts every server.
  public init() {}

  /// Accepts every server; never throws.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {}
}

extension DisabledTrustEvaluator: InstantTrustEvaluator {
  package var authenticates: Bool { false }
}

extension ServerTrustEvaluating where Self == DisabledTrustEvaluator {
  /// A ``DisabledTrustEvaluator``: it trusts every server.
  public static var disabled: DisabledTrustEvaluator { DisabledTrustEvaluator() }
}

/// The former name of ``DisabledTrustEvaluator``.
@available(*, deprecated, renamed: "DisabledTrustEvaluator")
public typealias DisabledEvaluator = DisabledTrustEvaluator

/// Trusts servers that all of several evaluators trust.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: [
///   "example.com": .composite(evaluators: [.revocationChecking, .publicKeys])
/// ])
/// ```
///
/// The evaluators share the ``ServerTrust``: anchors that one sets count for the later ones.
public final class CompositeTrustEvaluator: ServerTrustEvaluating {
  private let evaluators: [any ServerTrustEvaluating]

  /// Makes an evaluator of others.
  ///
  /// - Parameter evaluators: Asked in this order; with none, every server is trusted.
  public init(evaluators: [any ServerTrustEvaluating]) {
    self.evaluators = evaluators
  }

  /// Throws the error of the first evaluator that refuses the server.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    try evaluators.evaluate(trust, forHost: host)
  }
}

extension CompositeTrustEvaluator: InstantTrustEvaluator {
  package var isInstant: Bool {
    evaluators.allSatisfy { ($0 as? any InstantTrustEvaluator)?.isInstant ?? false }
  }
  package var requestsStapledResponse: Bool {
    evaluators.contains { ($0 as? any InstantTrustEvaluator)?.requestsStapledResponse ?? false }
  }
  package var authenticates: Bool {
    evaluators.contains { ($0 as? any InstantTrustEvaluator)?.authenticates ?? true }
  }
}

extension ServerTrustEvaluating where Self == CompositeTrustEvaluator {
  /// Makes a ``CompositeTrustEvaluator``.
  public static func composite(evaluators: [any ServerTrustEvaluating]) -> CompositeTrustEvaluator {
    CompositeTrustEvaluator(evaluators: evaluators)
  }
}

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

/// Refuses servers with revoked certificates.
///
/// Each certificate of the chain except the trust anchor is checked against the lists in
/// ``TransportOptions/certificateRevocationLists`` and the stapled OCSP response (RFC 6066 §8). Unless network access
/// is disabled, the issuer's OCSP responder (RFC 6960) and list (RFC 5280 §5) are used too; a list of the options
/// replaces the issuer's. The certificate contains the addresses of both. These requests use `http` and the proxy of
/// the session or request, for at most ten seconds each; responses are cached until they expire. A certificate of
/// unknown status is accepted, unless ``Options-swift.struct/requirePositiveResponse`` is set.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: [
///   "example.com": .revocationChecking(options: [.ocsp, .requirePositiveResponse])
/// ])
/// ```
public final class RevocationTrustEvaluator: ServerTrustEvaluating {
  /// The methods of the revocation check, with the values of Apple's systems.
  public struct Options: OptionSet, Sendable, Hashable {
    /// Revocation lists (CRL) of the issuers.
    public static let crl = Options(rawValue: 1 << 1)
    /// No network access: only the lists of the options and stapled OCSP responses are used.
    public static let networkAccessDisabled = Options(rawValue: 1 << 4)
    /// OCSP responders of the issuers.
    public static let ocsp = Options(rawValue: 1 << 0)
    /// Lists first, OCSP responders only for certificates of unknown status.
    public static let preferCRL = Options(rawValue: 1 << 2)
    /// A certificate is accepted only if its issuer confirms that it is not revoked.
    public static let requirePositiveResponse = Options(rawValue: 1 << 3)
    /// Both methods, OCSP first.
    public static let any = Options([.crl, .ocsp])

    /// The bits.
    public let rawValue: UInt

    /// Makes options of bits; unknown bits are ignored. Without ``crl``, ``ocsp`` and ``preferCRL``, both methods are
    /// used.
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }

  private let performDefaultValidation: Bool
  private let validateHost: Bool
  private let options: Options

  /// Makes an evaluator.
  ///
  /// - Parameters:
  ///   - performDefaultValidation: Whether the default evaluation runs first. Default: `true`. The chain is verified
  ///     in any case, because the check needs its issuers.
  ///   - validateHost:             Whether the certificate has to be valid for the host. Default: `true`.
  ///   - options:                  The methods of the check. Default: ``Options-swift.struct/any``.
  public init(
    performDefaultValidation: Bool = true, validateHost: Bool = true, options: Options = .any
  ) {
    self.performDefaultValidation = performDefaultValidation
    self.validateHost = validateHost
    self.options = options
  }

  /// Throws `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`. If revocation is the reason, the kind
  /// of its ``ServerTrust/Failure`` is `revoked` or `revocationUnknown`.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    if performDefaultValidation { try trust.af.performDefaultValidation(forHost: host) }
    if validateHost { try trust.af.performValidation(forHost: host) }
    try trust.af.evaluate(afterApplying: SecPolicy.af.revocation(options: options))
  }
}

extension RevocationTrustEvaluator.Options {
  /// Makes the check of a verified path.
  ///
  /// - Parameter downloads: Asks responders and reads lists; `nil` without the network.
  func check(
    _ lists: RevocationLists, stapledResponse: Data?, _ downloads: (any RevocationDownloads)?
  ) -> RevocationCheck {
    let isAnyMethod = isDisjoint(with: [.ocsp, .crl, .preferCRL])
    return RevocationCheck(
      asksResponders: isAnyMethod || contains(.ocsp),
      readsLists: isAnyMethod || !isDisjoint(with: [.crl, .preferCRL]), prefersLists: contains(.preferCRL),
      requiresAnswer: contains(.requirePositiveResponse), downloads: downloads, lists: lists,
      stapledResponse: stapledResponse)
  }
}

extension RevocationTrustEvaluator: InstantTrustEvaluator {
  package var isInstant: Bool { options.contains(.networkAccessDisabled) }
  package var requestsStapledResponse: Bool {
    options.contains(.ocsp) || options.isDisjoint(with: [.crl, .preferCRL])
  }
  package var authenticates: Bool { validateHost }
}

extension ServerTrustEvaluating where Self == RevocationTrustEvaluator {
  /// A ``RevocationTrustEvaluator`` with its defaults.
  public static var revocationChecking: RevocationTrustEvaluator { RevocationTrustEvaluator() }

  /// Makes a ``RevocationTrustEvaluator`` with options; see its initialiser.
  public static func revocationChecking(
    performDefaultValidation: Bool = true, validateHost: Bool = true,
    options: RevocationTrustEvaluator.Options = .any
  ) -> RevocationTrustEvaluator {
    RevocationTrustEvaluator(
      performDefaultValidation: performDefaultValidation, validateHost: validateHost, options: options)
  }
}
