/// Refuses servers whose certificates were revoked, if that can be known.
///
/// For each certificate of the chain but the trusted one it looks at lists that the user gave
/// (``TransportOptions/certificateRevocationLists``), at the OCSP response that the server may have sent along
/// (RFC 6066 §8), and, unless the network is out of bounds, at what the issuer's OCSP responder (RFC 6960) and list
/// (RFC 5280 §5) say, at the addresses in the certificate. These are asked by `http`, through the proxy of the session or
/// request if there is one, for at most ten seconds each; what they said is kept until it ends. A certificate about which
/// nothing can be learned passes, unless ``Options-swift.struct/requirePositiveResponse`` is among the options.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: [
///   "example.com": .revocationChecking(options: [.ocsp, .requirePositiveResponse])
/// ])
/// ```
public final class RevocationTrustEvaluator: ServerTrustEvaluating {
  /// How it is found out whether a certificate was revoked. The numbers are those of Apple's systems.
  public struct Options: OptionSet, Sendable, Hashable {
    /// Lists (CRL) of the issuers.
    public static let crl = Options(rawValue: 1 << 1)
    /// Nothing is asked over the network: lists that the user gave, and responses that servers send along, have to
    /// do.
    public static let networkAccessDisabled = Options(rawValue: 1 << 4)
    /// OCSP responders of the issuers.
    public static let ocsp = Options(rawValue: 1 << 0)
    /// Lists first, OCSP responders only where these say nothing.
    public static let preferCRL = Options(rawValue: 1 << 2)
    /// A certificate passes only if its issuer says that it was not revoked.
    public static let requirePositiveResponse = Options(rawValue: 1 << 3)
    /// Both, OCSP first.
    public static let any = Options([.crl, .ocsp])

    /// The bits.
    public let rawValue: UInt

    /// Makes options of bits; those without a meaning are passed over. Without ``crl``, ``ocsp`` and
    /// ``preferCRL``, both count.
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }

  private let performDefaultValidation: Bool
  private let validateHost: Bool
  private let options: Options

  /// - Parameters:
  ///   - performDefaultValidation: Whether the chain is verified for itself first. Default: `true`. It is verified in
  ///     any case, since nobody can revoke what nobody trusts.
  ///   - validateHost:             Whether the certificate has to be valid for the host. Default: `true`.
  ///   - options:                  How it is found out. Default: ``Options-swift.struct/any``.
  public init(
    performDefaultValidation: Bool = true, validateHost: Bool = true, options: Options = .any
  ) {
    self.performDefaultValidation = performDefaultValidation
    self.validateHost = validateHost
    self.options = options
  }

  /// Throws `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`; the ``ServerTrust/Failure`` in it is of
  /// the kind `revoked` or `revocationUnknown` if revocation is the reason.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    if performDefaultValidation { try trust.af.performDefaultValidation(forHost: host) }
    if validateHost { try trust.af.performValidation(forHost: host) }
    try trust.af.evaluate(afterApplying: SecPolicy.af.revocation(options: options))
  }
}

extension RevocationTrustEvaluator.Options {
  var revocationRules: RevocationRules {
    let isAnyMethod = isDisjoint(with: [.ocsp, .crl, .preferCRL])
    return RevocationRules(
      asksResponders: isAnyMethod || contains(.ocsp),
      readsLists: isAnyMethod || !isDisjoint(with: [.crl, .preferCRL]), prefersLists: contains(.preferCRL),
      requiresAnswer: contains(.requirePositiveResponse), usesNetwork: !contains(.networkAccessDisabled))
  }
}

extension RevocationTrustEvaluator: InstantTrustEvaluator {
  package var isInstant: Bool { options.contains(.networkAccessDisabled) }
  package var wantsStapledResponse: Bool {
    options.contains(.ocsp) || options.isDisjoint(with: [.crl, .preferCRL])
  }
}

extension ServerTrustEvaluating where Self == RevocationTrustEvaluator {
  /// A ``RevocationTrustEvaluator`` with its defaults.
  public static var revocationChecking: RevocationTrustEvaluator { RevocationTrustEvaluator() }

  /// A ``RevocationTrustEvaluator``; see its initialiser.
  public static func revocationChecking(
    performDefaultValidation: Bool = true, validateHost: Bool = true,
    options: RevocationTrustEvaluator.Options = .any
  ) -> RevocationTrustEvaluator {
    RevocationTrustEvaluator(
      performDefaultValidation: performDefaultValidation, validateHost: validateHost, options: options)
  }
}
