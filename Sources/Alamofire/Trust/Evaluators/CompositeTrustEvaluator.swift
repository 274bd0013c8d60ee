/// Trusts servers that all of several evaluators trust.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: [
///   "example.com": .composite(evaluators: [.revocationChecking, .publicKeys])
/// ])
/// ```
///
/// The evaluators share the ``ServerTrust``: anchors that one sets count for the later ones.
public final class CompositeTrustEvaluator: ServerTrustEvaluating {
  private let evaluators: [any ServerTrustEvaluating]

  /// Makes an evaluator of others.
  ///
  /// - Parameter evaluators: Asked in this order; with none, every server is trusted.
  public init(evaluators: [any ServerTrustEvaluating]) {
    self.evaluators = evaluators
  }

  /// Throws the error of the first evaluator that refuses the server.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    try evaluators.evaluate(trust, forHost: host)
  }
}

extension CompositeTrustEvaluator: InstantTrustEvaluator {
  package var isInstant: Bool {
    evaluators.allSatisfy { ($0 as? any InstantTrustEvaluator)?.isInstant ?? false }
  }
  package var wantsStapledResponse: Bool {
    evaluators.contains { ($0 as? any InstantTrustEvaluator)?.wantsStapledResponse ?? false }
  }
  package var authenticates: Bool {
    evaluators.contains { ($0 as? any InstantTrustEvaluator)?.authenticates ?? true }
  }
}

extension ServerTrustEvaluating where Self == CompositeTrustEvaluator {
  /// Makes a ``CompositeTrustEvaluator``.
  public static func composite(evaluators: [any ServerTrustEvaluating]) -> CompositeTrustEvaluator {
    CompositeTrustEvaluator(evaluators: evaluators)
  }
}
