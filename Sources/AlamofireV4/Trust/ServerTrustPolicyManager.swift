import Alamofire

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

  /// Makes a manager.
  public init(policies: [String: ServerTrustPolicy]) {
    self.policies = policies
  }

  /// The policy for a host; `nil` leaves it to the system: the trust store, the host's name and the dates.
  ///
  /// Subclasses may override it, for wildcards for example. It is called on any thread, and on several at once.
  open func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? { policies[host] }
}
