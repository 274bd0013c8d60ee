public import Alamofire
public import Foundation

/// A policy for the evaluation of the server of an HTTPS connection.
public enum ServerTrustPolicy {
  /// Verifies the path to the trust store, the dates, and optionally the host.
  case performDefaultEvaluation(validateHost: Bool)
  /// Like `performDefaultEvaluation`, and no certificate may have been revoked; the flags are the `kSecRevocation…`
  /// constants.
  case performRevokedEvaluation(validateHost: Bool, revocationFlags: CFOptionFlags)
  /// One of the certificates has to be one of these. With validation of the chain, these replace the trust store.
  /// Without it, neither dates nor host are verified.
  case pinCertificates(certificates: [SecCertificate], validateCertificateChain: Bool, validateHost: Bool)
  /// One of the public keys has to be one of these. With validation of the chain, the trust store counts as
  /// well; without it neither dates nor host are looked at.
  case pinPublicKeys(publicKeys: [SecKey], validateCertificateChain: Bool, validateHost: Bool)
  /// Every server is trusted, so that each network node on the way can read and change everything.
  case disableEvaluation
  /// A policy that calls the closure. The closure is called on any thread, and may block.
  case customEvaluation((_ serverTrust: SecTrust, _ host: String) -> Bool)

  /// Returns the certificates in the files `*.cer`, `*.crt`, `*.der` and `*.pem` of a bundle. Files without a
  /// certificate are skipped.
  public static func certificates(in bundle: Bundle = Bundle.main) -> [SecCertificate] {
    bundle.af.certificates
  }

  /// Returns the public keys of ``certificates(in:)``.
  public static func publicKeys(in bundle: Bundle = Bundle.main) -> [SecKey] { bundle.af.publicKeys }

  /// Whether this policy trusts the server. May change the policies and anchors of `serverTrust`, and asks the
  /// network where revocation is looked up.
  public func evaluate(_ serverTrust: SecTrust, forHost host: String) -> Bool {
    do {
      try evaluator.evaluate(serverTrust, forHost: host)
      return true
    } catch {
      return false
    }
  }

  /// The evaluator of the core that decides the same.
  var evaluator: any Alamofire::ServerTrustEvaluating {
    switch self {
    case .performDefaultEvaluation(let validateHost):
      Alamofire::DefaultTrustEvaluator(validateHost: validateHost)
    case .performRevokedEvaluation(let validateHost, let flags):
      Alamofire::RevocationTrustEvaluator(validateHost: validateHost, options: .init(rawValue: flags))
    case .pinCertificates(let certificates, let validateChain, let validateHost):
      Alamofire::PinnedCertificatesTrustEvaluator(
        certificates: certificates, acceptSelfSignedCertificates: validateChain,
        performDefaultValidation: validateChain, validateHost: validateChain && validateHost)
    case .pinPublicKeys(let keys, let validateChain, let validateHost):
      Alamofire::PublicKeysTrustEvaluator(
        keys: keys, performDefaultValidation: validateChain, validateHost: validateChain && validateHost)
    case .disableEvaluation: Alamofire::DisabledTrustEvaluator()
    case .customEvaluation(let decide): ClosureTrustEvaluator(decide)
    }
  }
}

/// A set of bits, as Apple's C interfaces expect them.
public typealias CFOptionFlags = UInt

/// Revocation is looked up with OCSP responders (RFC 6960).
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Revocation is looked up in the issuers' lists (RFC 5280 §5).
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Lists are checked first.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// A certificate passes only if its issuer says that it was not revoked.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// No network access.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// OCSP and lists.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags =
  kSecRevocationOCSPMethod | kSecRevocationCRLMethod

/// Says which ``ServerTrustPolicy`` holds for which host.
///
/// ```swift
/// let manager = ServerTrustPolicyManager(policies: [
///   "test.example.com": .pinCertificates(
///     certificates: ServerTrustPolicy.certificates(), validateCertificateChain: true, validateHost: true),
///   "insecure.expired-apis.com": .disableEvaluation,
/// ])
/// ```
open class ServerTrustPolicyManager {
  /// The policies by host: names, or addresses without brackets. Wildcards have no meaning here.
  public let policies: [String: ServerTrustPolicy]
  private let table: HostTable<ServerTrustPolicy>

  /// Makes a manager.
  public init(policies: [String: ServerTrustPolicy]) {
    self.policies = policies
    table = HostTable(policies)
  }

  /// Returns the policy for a host. If it is `nil`, the system decides by the trust store, the host's name and the
  /// dates.
  ///
  /// Subclasses may override it, for wildcards for example. It is called on any thread, and on several at once.
  open func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
    policies[host] ?? table[host]
  }

  /// The core's manager with the same decisions.
  ///
  /// A dictionary is passed unchanged, so that hosts are evaluated during a handshake; a subclass is called for every
  /// host.
  var current: Alamofire::ServerTrustManager {
    guard type(of: self) == ServerTrustPolicyManager.self else {
      let policies = Boxed(self)
      return PolicyTrustManager { policies.value.serverTrustPolicy(forHost: $0)?.evaluator }
    }
    // The core knows wildcards, which this generation has never evaluated: they must not loosen anything now.
    let evaluators = policies.filter { !$0.key.hasPrefix("*") }.mapValues(\.evaluator)
    return Alamofire::ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: evaluators)
  }
}
