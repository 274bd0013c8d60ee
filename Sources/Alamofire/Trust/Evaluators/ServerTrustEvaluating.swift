/// Decides whether a server is who it claims to be.
///
/// Evaluators of your own run on a thread of Dispatch's, and the connection is made again when they have answered; they
/// may take their time, and hold up no other request. What they accept is accepted for an hour of the session:
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
  /// Returns when the server is trusted, and throws why not otherwise. An error that is no ``AFError`` arrives in
  /// `AFError.ServerTrustFailureReason.customEvaluationFailed(error:)`.
  ///
  /// - Parameters:
  ///   - trust: What the server has shown. It belongs to this evaluation and may be changed.
  ///   - host:  The host that was to be reached.
  func evaluate(_ trust: SecTrust, forHost host: String) throws
}

/// What of this library decides without waiting for anybody, so that it may run in the middle of a handshake.
package protocol InstantTrustEvaluator: ServerTrustEvaluating {
  /// Whether this one does: no network, no code of users.
  var isInstant: Bool { get }
  /// Whether it wants the OCSP response that a server may send along.
  var wantsStapledResponse: Bool { get }
  /// Whether a server that it accepts is the one that it should be.
  var authenticates: Bool { get }
}

extension InstantTrustEvaluator {
  package var isInstant: Bool { true }
  package var wantsStapledResponse: Bool { false }
  package var authenticates: Bool { true }
}

extension Array where Element == any ServerTrustEvaluating {
  /// Asks all of them, in their order; the first that throws ends it.
  public func evaluate(_ trust: SecTrust, forHost host: String) throws {
    for evaluator in self { try evaluator.evaluate(trust, forHost: host) }
  }
}
