import Alamofire

extension ServerTrustPolicy {
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
    case .customEvaluation(let decide): CustomTrustEvaluator(decide: Boxed(decide))
    }
  }
}

/// A closure of the user's.
private struct CustomTrustEvaluator: Alamofire::ServerTrustEvaluating {
  struct Refusal: Error {}

  let decide: Boxed<(SecTrust, String) -> Bool>

  func evaluate(_ trust: SecTrust, forHost host: String) throws {
    guard decide.value(trust, host) else { throw Refusal() }
  }
}

extension ServerTrustPolicyManager {
  /// The manager of the core that decides the same.
  ///
  /// A dictionary goes over as it is, so that hosts are judged in the middle of a handshake; a subclass is asked
  /// for every host.
  var current: Alamofire::ServerTrustManager {
    guard type(of: self) == ServerTrustPolicyManager.self else { return AskingTrustManager(self) }
    // The core knows wildcards, which this generation has never looked at: they must not loosen anything now.
    let evaluators = policies.filter { !$0.key.hasPrefix("*") }.mapValues(\.evaluator)
    return Alamofire::ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: evaluators)
  }
}

/// Asks a subclass of the user's for each host.
private final class AskingTrustManager: Alamofire::ServerTrustManager, @unchecked Sendable {
  // Unchecked, as its superclass is; its own property is a constant.
  private let manager: Boxed<ServerTrustPolicyManager>

  init(_ manager: ServerTrustPolicyManager) {
    self.manager = Boxed(manager)
    super.init(allHostsMustBeEvaluated: false, evaluators: [:])
  }

  override func serverTrustEvaluator(
    forHost host: String
  ) throws -> (any Alamofire::ServerTrustEvaluating)? {
    manager.value.serverTrustPolicy(forHost: host)?.evaluator
  }
}
