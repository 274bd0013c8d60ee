/// Trusts servers whose chain the trust store trusts, with or without a check of the host name. With the check, it is
/// the behaviour of a session without a manager.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: ["example.com": .default])
/// ```
public final class DefaultTrustEvaluator: ServerTrustEvaluating {
  private let validateHost: Bool

  /// Makes an evaluator.
  ///
  /// - Parameter validateHost: Whether the certificate has to be valid for the host. Default: `true`. Without the
  ///   check, any server with any valid certificate is trusted.
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
  /// A ``DefaultTrustEvaluator`` that checks the host name.
  public static var `default`: DefaultTrustEvaluator { DefaultTrustEvaluator() }

  /// Makes a ``DefaultTrustEvaluator``.
  public static func `default`(validateHost: Bool) -> DefaultTrustEvaluator {
    DefaultTrustEvaluator(validateHost: validateHost)
  }
}

/// Trusts every server, so that an attacker on the network path can read and change all traffic. Use it in tests
/// only. For a server with its own certificate, use ``PinnedCertificatesTrustEvaluator`` instead.
///
/// ```swift
/// let manager = ServerTrustManager(evaluators: ["localhost": .disabled])
/// ```
public final class DisabledTrustEvaluator: ServerTrustEvaluating {
  /// Makes an evaluator that trusts every server.
  public init() {}

  /// Accepts every server; never throws.
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
