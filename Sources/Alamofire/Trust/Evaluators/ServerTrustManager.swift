/// Says which ``ServerTrustEvaluating`` judges which host. A session takes one; it is asked in every TLS handshake,
/// before a byte of a request is sent.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: [
///   "api.example.com": .publicKeys,
///   "*.example.com": .revocationChecking(options: .ocsp),
/// ])
/// ```
///
/// Upper and lower case, and a dot at the end of a host, do not matter.
open class ServerTrustManager: @unchecked Sendable {
  // Unchecked, since the compiler checks no class that can be subclassed: its own properties are constants.
  /// Whether a host without an evaluator is refused. If not, it is judged as without a manager: by the trust store,
  /// its name and the dates.
  public let allHostsMustBeEvaluated: Bool
  /// The evaluators for hosts: names, addresses without brackets, or `*.` and a name, which stands for every name with
  /// exactly one label more. An exact name wins over a wildcard.
  public let evaluators: [String: any ServerTrustEvaluating]

  private let normalized: [String: any ServerTrustEvaluating]

  /// Makes a manager.
  ///
  /// - Parameters:
  ///   - allHostsMustBeEvaluated: Whether a host without an evaluator is refused. Default: `true`.
  ///   - evaluators:              The evaluators for hosts.
  public init(allHostsMustBeEvaluated: Bool = true, evaluators: [String: any ServerTrustEvaluating]) {
    self.allHostsMustBeEvaluated = allHostsMustBeEvaluated
    self.evaluators = evaluators
    // Of two keys for one host, the one that is written as hosts are compared decides.
    normalized = Dictionary(
      evaluators.sorted { $0.key < $1.key }.map { (HostPattern.normalized($0.key), $0.value) },
      uniquingKeysWith: { $1 })
  }

  /// The evaluator for a host; `nil` when it has none and needs none.
  ///
  /// Subclasses may override it; it is called on any thread.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `noRequiredEvaluator` when it has none and needs one.
  open func serverTrustEvaluator(forHost host: String) throws -> (any ServerTrustEvaluating)? {
    if let evaluator = evaluator(for: host) { return evaluator }
    guard allHostsMustBeEvaluated else { return nil }
    throw AFError.serverTrustEvaluationFailed(reason: .noRequiredEvaluator(host: host))
  }

  private func evaluator(for host: String) -> (any ServerTrustEvaluating)? {
    if let exact = evaluators[host] { return exact }
    let host = HostPattern.normalized(host)
    return normalized[host] ?? HostPattern.wildcard(for: host).flatMap { normalized[$0] }
  }
}
