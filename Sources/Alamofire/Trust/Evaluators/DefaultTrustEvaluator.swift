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
