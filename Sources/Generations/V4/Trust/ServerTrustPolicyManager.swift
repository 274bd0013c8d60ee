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
