/// Trusts whom the trust store trusts, with or without a look at the host name. With it, it is what a session does
/// without a manager.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: ["example.com": .default])
/// ```
public final class DefaultTrustEvaluator: ServerTrustEvaluating {
  private let validateHost: Bool

  /// - Parameter validateHost: Whether the certificate has to be valid for the host. Default: `true`. Without it, any
  ///   server with any valid certificate is trusted.
  public init(validateHost: Bool = true) {
    self.validateHost = validateHost
  }

  /// Throws `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    if validateHost { try trust.af.performValidation(forHost: host) }
    try trust.af.performDefaultValidation(forHost: host)
  }
}

extension DefaultTrustEvaluator: InstantTrustEvaluator {}

extension ServerTrustEvaluating where Self == DefaultTrustEvaluator {
  /// A ``DefaultTrustEvaluator`` that looks at the host.
  public static var `default`: DefaultTrustEvaluator { DefaultTrustEvaluator() }

  /// A ``DefaultTrustEvaluator``.
  public static func `default`(validateHost: Bool) -> DefaultTrustEvaluator {
    DefaultTrustEvaluator(validateHost: validateHost)
  }
}

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
