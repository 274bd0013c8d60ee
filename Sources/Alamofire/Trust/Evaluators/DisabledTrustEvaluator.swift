/// Trusts every server, which is to say that anybody on the way can read and change everything. For tests; a server with
/// a certificate of its own is better pinned, with ``PinnedCertificatesTrustEvaluator``.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: ["localhost": .disabled])
/// ```
public final class DisabledTrustEvaluator: ServerTrustEvaluating {
  /// Makes an evaluator that trusts every server.
  public init() {}

  /// Throws nothing.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {}
}

extension DisabledTrustEvaluator: InstantTrustEvaluator {
  package var authenticates: Bool { false }
}

extension ServerTrustEvaluating where Self == DisabledTrustEvaluator {
  /// A ``DisabledTrustEvaluator``: it trusts every server.
  public static var disabled: DisabledTrustEvaluator { DisabledTrustEvaluator() }
}

/// The former name of ``DisabledTrustEvaluator``.
@available(*, deprecated, renamed: "DisabledTrustEvaluator")
public typealias DisabledEvaluator = DisabledTrustEvaluator
