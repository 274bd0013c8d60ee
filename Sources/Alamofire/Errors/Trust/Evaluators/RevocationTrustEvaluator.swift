import Foundation
import HTTPSystem

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
