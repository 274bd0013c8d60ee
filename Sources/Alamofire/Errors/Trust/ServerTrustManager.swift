import Foundation
import HTTPWire
import Synchronization

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

/// The delegate and the monitors of a session, as far as they see the evaluation of servers. Read live, because a
/// delegate may change its mind about the events that it wants.
protocol TrustObservers: AnyObject, Sendable {
  /// Whether the session has a delegate or a monitor that could see servers.
  var mayObserveTrust: Bool { get }
  /// Whether the delegate wants to answer challenges about servers.
  var delegateAnswersTrust: Bool { get }
  /// Whether the delegate or a monitor sees each server before the evaluators do.
  var observesTrust: Bool { get }
}

/// Decides about the servers of a session, by evaluators that can run in a handshake, and by the verdicts of earlier
/// evaluations outside of one.
final class TrustService: ServerEvaluator {
  let manager: ServerTrustManager?
  private let observers: any TrustObservers

  private struct State {
    var memory = TrustMemory()
    /// The servers to which no client certificate is presented.
    var anonymous: Set<String> = []
    /// Whether a server was accepted that the trust store on its own might reject. The connections to that server may
    /// be used from then on.
    var hasAccepted = false
    /// The hosts of servers that a delegate has accepted.
    var acceptedByDelegate: Set<String> = []
    /// Whether there were more of these hosts than are noted. Then all hosts count as such.
    var hasOverflowed = false

    mutating func noteAcceptanceByDelegate(of host: String) {
      guard acceptedByDelegate.count < TrustMemory.capacity || acceptedByDelegate.contains(host) else {
        hasOverflowed = true
        return
      }
      acceptedByDelegate.insert(host)
    }
  }

  /// The results of slow evaluators and the servers that get no client certificate, for the loop and attempts.
  private let state = Mutex(State())

  /// Returns `nil` if there is neither a manager nor an observer, so that the trust store alone decides.
  init?(manager: ServerTrustManager?, observers: any TrustObservers) {
    guard manager != nil || observers.mayObserveTrust else { return nil }
    self.manager = manager
    self.observers = observers
  }

  /// Whether the delegate or a monitor sees each server before the evaluators do.
  var isObserved: Bool { observers.observesTrust }

  /// Whether connections may be used as in any session. A server that a delegate has accepted remains accepted after
  /// the delegate stops answering challenges.
  var usesDefaultEvaluation: Bool {
    manager == nil && !observers.delegateAnswersTrust && !state.withLock { $0.hasAccepted }
  }

  func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict {
    if let verdict = state.withLock({ $0.memory.verdict(on: chain, in: profile.partition) }) {
      return verdict == .usual ? .usual : .accept
    }
    guard !isObserved, manager?.runsUserCode != true else { return .ask }
    do {
      guard let evaluator = try manager?.serverTrustEvaluator(forHost: chain.host) else { return .usual }
      guard let instant = evaluator as? any InstantTrustEvaluator, instant.isInstant else { return .ask }
      try instant.evaluate(ServerTrust(chain, options: profile.options), forHost: chain.host)
      return .accept
    } catch {
      return .refuse(error)
    }
  }

  func requestsStapledResponse(ofHost host: String) -> Bool {
    guard let manager else { return false }
    // A subclass chooses with the caller's code, which does not run on this thread.
    guard !manager.runsUserCode else { return true }
    let evaluator = try? manager.serverTrustEvaluator(forHost: host)
    guard let evaluator else { return false }
    return (evaluator as? any InstantTrustEvaluator)?.requestsStapledResponse ?? true
  }

  /// Runs the evaluators and returns the verdict to remember. The evaluators run on a thread of Dispatch, because an
  /// evaluator that blocks would take one of the few threads of Swift's pool. The wait ends when the task is cancelled
  /// and at `deadline`.
  func evaluated(
    _ trust: ServerTrust, forHost host: String, _ deadline: MonotonicTime?
  ) async -> Result<TrustMemory.Verdict, any Error> {
    let cancelled = Result<TrustMemory.Verdict, any Error>.failure(CancellationError())
    return await SingleCompletion.answer(
      whenForgotten: cancelled, whenCancelled: cancelled, deadline: deadline
    ) { completion in
      DispatchQueue(label: "org.alamofire.serverTrust").async { [self] in
        completion(Result { try evaluate(trust, forHost: host) })
      }
    }
  }

  private func evaluate(_ trust: ServerTrust, forHost host: String) throws -> TrustMemory.Verdict {
    guard let evaluator = try manager?.serverTrustEvaluator(forHost: host) else { return .usual }
    try evaluator.evaluate(trust, forHost: host)
    return .accepted
  }

  func choosesIdentity(forHost host: String, port: Int) -> Bool {
    isObserved && !state.withLock { $0.anonymous.contains("\(host):\(port)") }
  }

  /// Stops asking for an identity for this server, because the delegate has chosen none.
  func remainAnonymous(toHost host: String, port: Int) {
    state.withLock { state in
      if state.anonymous.count >= TrustMemory.capacity { state.anonymous.removeAll() }
      state.anonymous.insert("\(host):\(port)")
    }
  }

  func remember(_ verdict: TrustMemory.Verdict, on chain: PresentedChain, in partition: Int) {
    state.withLock { state in
      if verdict != .usual { state.hasAccepted = true }
      if verdict == .acceptedByDelegate { state.noteAcceptanceByDelegate(of: chain.host) }
      state.memory.remember(verdict, on: chain, in: partition)
    }
  }
}

extension ServerTrustManager {
  /// Whether a subclass chooses the evaluators.
  var runsUserCode: Bool { type(of: self) != ServerTrustManager.self }
}

extension TrustService {
  /// Whether an accepted server of this host is authenticated by its evaluator.
  func authenticates(_ host: String) -> Bool {
    guard let evaluator = try? manager?.serverTrustEvaluator(forHost: host) else { return true }
    return (evaluator as? any InstantTrustEvaluator)?.authenticates ?? true
  }

  /// Whether a delegate has accepted a server of this host. It need not have verified the name, and connections to that
  /// server are used by later requests.
  func wasAcceptedByDelegate(_ host: String) -> Bool {
    state.withLock { $0.hasOverflowed || $0.acceptedByDelegate.contains(host) }
  }
}
