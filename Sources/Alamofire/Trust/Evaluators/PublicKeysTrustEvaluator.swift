public import Foundation

/// Trusts servers with a pinned public key: the server's own, or that of an authority which issued its certificate.
/// The pin survives a renewal of the certificate if the key stays the same.
///
/// Pins are the keys of certificates, or digests of keys. Among digests, include that of a backup key, for the case
/// that the first key is lost:
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
  ///   - keys:                     The pinned ones; none refuse every server. Default: those of the certificates of
  ///     the main bundle.
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
  /// - Throws: ``PublicKeyPin/Invalid`` for the first that is no pin.
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
