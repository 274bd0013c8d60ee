public import Alamofire
public import Foundation

/// A policy for the evaluation of the server of an HTTPS connection.
public enum ServerTrustPolicy {
  /// By the certificates that the system trusts, and by the host name if that is requested.
  case PerformDefaultEvaluation(validateHost: Bool)
  /// One of the server's certificates must be one of these. With validation of the chain, the chain must also end at
  /// one of these, be valid now, and optionally for the host. Without it, nothing else is verified.
  case PinCertificates(certificates: [SecCertificate], validateCertificateChain: Bool, validateHost: Bool)
  /// One of the public keys of the server's certificates must be one of these. With validation of the chain, it is
  /// also evaluated as by default; without it, nothing else is looked at.
  case PinPublicKeys(publicKeys: [SecKey], validateCertificateChain: Bool, validateHost: Bool)
  /// Every server is accepted.
  case DisableEvaluation
  /// The closure decides, with the certificates of the server and the host. Called on any thread.
  case CustomEvaluation((_ serverTrust: SecTrust, _ host: String) -> Bool)

  /// Returns the certificates in the files `*.cer`, `*.crt`, `*.der` and `*.pem` of a bundle, DER or PEM.
  public static func certificatesInBundle(_ bundle: Bundle = .main) -> [SecCertificate] {
    bundle.af.certificates
  }

  /// Returns the public keys of ``certificatesInBundle(_:)``.
  public static func publicKeysInBundle(_ bundle: Bundle = .main) -> [SecKey] {
    bundle.af.publicKeys
  }

  /// Whether a server is accepted for a host. A policy with an empty list of pins accepts no server.
  public func evaluateServerTrust(_ serverTrust: SecTrust, isValidForHost host: String) -> Bool {
    do {
      try evaluator.evaluate(serverTrust, forHost: host)
      return true
    } catch {
      return false
    }
  }

  /// The evaluator of the core.
  var evaluator: any ServerTrustEvaluating {
    switch self {
    case .PerformDefaultEvaluation(let validateHost):
      DefaultTrustEvaluator(validateHost: validateHost)
    case .PinCertificates(let certificates, let validatesChain, let validateHost):
      // The pins are the anchors; without the chain, the host is not looked at either.
      PinnedCertificatesTrustEvaluator(
        certificates: certificates, acceptSelfSignedCertificates: validatesChain,
        performDefaultValidation: validatesChain, validateHost: validatesChain && validateHost)
    case .PinPublicKeys(let keys, let validatesChain, let validateHost):
      PublicKeysTrustEvaluator(
        keys: keys, performDefaultValidation: validatesChain, validateHost: validatesChain && validateHost)
    case .DisableEvaluation: DisabledTrustEvaluator()
    case .CustomEvaluation(let closure): ClosureTrustEvaluator(closure)
    }
  }
}

/// Which policy counts for which host.
///
/// ```swift
/// let manager = Manager(
///   serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["old.example.com": .DisableEvaluation]))
/// ```
open class ServerTrustPolicyManager {
  /// The policies by host, in any spelling of it.
  public let policies: [String: ServerTrustPolicy]
  private let table: HostTable<ServerTrustPolicy>

  /// Makes a manager of policies by host.
  public init(policies: [String: ServerTrustPolicy]) {
    self.policies = policies
    table = HostTable(policies)
  }

  /// Returns the policy for a host. If it is `nil`, the certificates that the system trusts decide. Override the method
  /// for wildcards, for example. It is called on any thread.
  open func serverTrustPolicyForHost(_ host: String) -> ServerTrustPolicy? {
    policies[host] ?? table[host]
  }
}
