/// Decides whether a server is trusted.
///
/// Evaluators of the program run on a Dispatch thread and may block, without delaying other requests; the connection
/// is made again after their decision. An accepted chain stays accepted for an hour in that session:
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
  /// Returns if the server is trusted, and throws otherwise. An error that is no ``AFError`` is wrapped in
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
  var wantsStapledResponse: Bool { get }
  /// Whether it verifies the identity of the server.
  var authenticates: Bool { get }
}

extension InstantTrustEvaluator {
  package var isInstant: Bool { true }
  package var wantsStapledResponse: Bool { false }
  package var authenticates: Bool { true }
}

extension Array where Element == any ServerTrustEvaluating {
  /// Calls all evaluators in their order, until one throws.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    for evaluator in self { try evaluator.evaluate(trust, forHost: host) }
  }
}
