/// Decides whether a server is trusted.
///
/// Evaluators of the program run on a Dispatch thread and may block, without delaying other requests; the connection is
/// opened again after their decision. An accepted chain stays accepted for an hour in that session:
///
/// ```swift
/// struct CompanyEvaluator: ServerTrustEvaluating {
///   func evaluate(_ trust: SecTrust, forHost host: String) throws {
///     try trust.af.performValidation(forHost: host)
///     guard trust.af.certificates.contains(where: { $0.subject.contains("O=Company") }) else {
///       throw CompanyError.stranger
///     }
///   }
/// }
/// ```
@preconcurrency
public protocol ServerTrustEvaluating: Sendable {
  /// Returns if the server is trusted, and throws otherwise. An error that is not an ``AFError`` is wrapped in
  /// `AFError.ServerTrustFailureReason.customEvaluationFailed(error:)`.
  ///
  /// - Parameters:
  ///   - trust: The certificates of the server. The object belongs to this evaluation and may be changed.
  ///   - host:  The host of the request.
  func evaluate(_ trust: SecTrust, forHost host: String) throws
}

/// A built-in evaluator that does not block, so that it can run during a handshake.
package protocol InstantTrustEvaluator: ServerTrustEvaluating {
  /// Whether this evaluator uses neither the network nor user code.
  var isInstant: Bool { get }
  /// Whether it uses a stapled OCSP response.
  var requestsStapledResponse: Bool { get }
  /// Whether it verifies that the server is the one that the URL names.
  var authenticates: Bool { get }
}

extension InstantTrustEvaluator {
  package var isInstant: Bool { true }
  package var requestsStapledResponse: Bool { false }
  package var authenticates: Bool { true }
}

extension Array where Element == any ServerTrustEvaluating {
  /// Calls all evaluators in their order, until one throws.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    for evaluator in self { try evaluator.evaluate(trust, forHost: host) }
  }
}

/// An evaluator that trusts a server if the trust store trusts its chain, with or without a check of the host name.
/// With the check, it does the same as a session without a manager.
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

extension DefaultTrustEvaluator: InstantTrustEvaluator {
  package var authenticates: Bool { validateHost }
}

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
  package var requestsStapledResponse: Bool {
    evaluators.contains { ($0 as? any InstantTrustEvaluator)?.requestsStapledResponse ?? false }
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
