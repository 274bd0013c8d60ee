import Foundation
import HTTPWire

/// The evaluators of a session, by host. The evaluators are called in every TLS handshake, before a byte of a request
/// is sent.
///
/// ```swift
/// let manager = ServerTrustManager(
///   allHostsMustBeEvaluated: false,
///   evaluators: [
///     "api.example.com": try .publicKeys(pins: [
///       "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
///       "sha256/n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
///     ]),
///     "*.example.com": .revocationChecking(options: [.ocsp, .requirePositiveResponse]),
///   ])
/// let session = Session(serverTrustManager: manager)
/// ```
///
/// Without a manager, a session verifies the path to the trust store and the name of the host. The session also
/// verifies dates, purposes, and the strength of keys and signatures. Upper and lower case, and a dot at the end of a
/// host, are ignored.
///
/// ## Evaluators
///
/// - ``DefaultTrustEvaluator``: the verification of a session without a manager.
/// - ``PublicKeysTrustEvaluator``: pinned keys, which survive a new certificate.
/// - ``PinnedCertificatesTrustEvaluator``: pinned certificates, of your own authority or server.
/// - ``RevocationTrustEvaluator``: the default, and certificates that were not revoked.
/// - ``CompositeTrustEvaluator``: several of these, such as pins and revocation.
/// - ``DisabledTrustEvaluator``: every server, for tests.
///
/// Your own authority needs no evaluator. ``TransportOptions/trustStore`` replaces the authorities of the system:
///
/// ```swift
/// var options = TransportOptions()
/// options.trustStore = .file("/etc/company/authorities.pem")
/// let session = Session(transportOptions: options)
/// ```
///
/// ## Resumed TLS sessions
///
/// A connection that resumes a TLS session shows no certificates. Before the TLS session is offered, its server is
/// evaluated with the certificates that it showed before. If it is no longer accepted, the connection makes a full
/// handshake, and the certificates of that handshake are evaluated.
///
/// ## Failures
///
/// The request ends with `AFError.serverTrustEvaluationFailed`. The reason of the error holds the pinned and the shown
/// certificates or keys, or a ``ServerTrust/Failure`` that names the fault of the chain. Errors of your own evaluators
/// are its `underlyingError`.
open class ServerTrustManager: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  /// Whether a host without an evaluator is refused. If not, it is evaluated as without a manager: by the trust store,
  /// its name and the dates.
  public let allHostsMustBeEvaluated: Bool
  /// The evaluators by host: names, addresses without brackets, or `*.` and a name, which matches names with exactly
  /// one more label. An exact name takes precedence over a wildcard.
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
    // Of two keys that normalize to one host, the normalized one is used.
    normalized = Dictionary(
      evaluators.sorted { $0.key < $1.key }.map { (HostPattern.normalized($0.key), $0.value) },
      uniquingKeysWith: { $1 })
  }

  /// Returns the evaluator for a host; `nil` when the host has none and needs none.
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

/// Host names as the keys of a ``ServerTrustManager`` and as certificates write them.
enum HostPattern {
  /// Returns the host in lower case, without brackets and the dot at the end, in the form of ASCII.
  static func normalized(_ host: String) -> String {
    var host = ascii(host).lowercased()
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host.hasSuffix(".") { host = String(host.dropLast()) }
    // An IPv6 address can be written in many ways, and its zone is meaningful only on this machine.
    if host.contains(":"), let address = IPAddress(text: host), address.family == .v6 {
      return address.bytes.map { String($0, radix: 16) }.joined(separator: ":")
    }
    return host
  }

  /// Returns the wildcard that matches a normalized host, such as `*.example.com` for `www.example.com`; `nil` if none
  /// may.
  static func wildcard(for host: String) -> String? {
    // The numbers of an address are not labels.
    guard !CookieTarget.isAddress(host), let dot = host.firstIndex(of: "."), dot != host.startIndex
    else { return nil }
    return "*" + host[dot...]
  }

  /// Converts letters outside of ASCII to A-labels (RFC 5890). A leading `*.` stays. Compatibility forms are mapped as
  /// in the hosts of URLs (UTS 46).
  static func ascii(_ host: String) -> String {
    let mapped =
      host.utf8.allSatisfy { $0 < 0x80 } ? host : host.lowercased().precomposedStringWithCompatibilityMapping
    return InternationalName.ascii(mapped) ?? host
  }
}
