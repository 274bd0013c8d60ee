/// Which policy counts for which host.
///
/// ```swift
/// let manager = Manager(
///   serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["old.example.com": .DisableEvaluation]))
/// ```
open class ServerTrustPolicyManager {
  /// The policies by host.
  public let policies: [String: ServerTrustPolicy]

  /// Makes a manager of policies by host.
  public init(policies: [String: ServerTrustPolicy]) {
    self.policies = policies
  }

  /// The policy for a host; `nil` leaves it to the certificates that the system trusts. Override it for wildcards and
  /// the like. Called from any thread.
  open func serverTrustPolicyForHost(_ host: String) -> ServerTrustPolicy? {
    policies[host]
  }
}
