package import FoundationEssentials

/// Decides whether a server is trusted.
package protocol ServerEvaluator: Sendable {
  /// Called during a handshake, on the thread of the transport: pure and fast, without user code, files or network.
  /// If the decision needs any of these, it returns ``TrustVerdict/ask``.
  func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict
  /// Whether it accepts exactly the servers that the trust store, the host name and the dates accept.
  var usesDefaultEvaluation: Bool { get }
  /// Whether it needs the stapled OCSP response of this host; then it is called at the end of the handshake.
  func requestsStapledResponse(ofHost host: String) -> Bool
  /// Whether a delegate has to choose the client identity if this server requests one.
  func choosesIdentity(forHost host: String, port: Int) -> Bool
}

package enum TrustVerdict: Sendable {
  case accept
  /// The trust store of the profile, the name and the dates decide, as without an evaluator.
  case usual
  /// The handshake fails; the request ends with this error.
  case refuse(any Error)
  /// The handshake fails; the session decides on another thread, and sends the request again.
  case ask
}

extension ServerEvaluator {
  package var usesDefaultEvaluation: Bool { false }
  package func requestsStapledResponse(ofHost host: String) -> Bool { false }
  package func choosesIdentity(forHost host: String, port: Int) -> Bool { false }
}

/// The certificates that a server presents in a TLS handshake, and the host of the request.
package struct PresentedChain: Sendable, Hashable {
  /// The host, as in the URL, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int
  /// DER, the server's own certificate first, the others in the order of the server.
  package let certificates: [Data]
  /// The stapled OCSP response (RFC 6066 §8), if there is one and an evaluator needs it.
  package let stapledResponse: Data?
  /// The partition of the connection, in which the verdict is remembered. A name service may have another one than the
  /// request.
  package let partition: Int

  package init(
    host: String, port: Int, certificates: [Data], stapledResponse: Data? = nil, partition: Int = 0
  ) {
    self.partition = partition
    self.host = host
    self.port = port
    self.certificates = certificates
    self.stapledResponse = stapledResponse
  }
}

/// The servers that slow evaluators accepted. The number of entries has a limit: the oldest ones are removed. Entries
/// of an hour ago are removed, too, because a certificate may expire or be revoked during the life of a session.
package struct TrustMemory: Sendable {
  package enum Verdict: Sendable, Equatable {
    case accepted
    /// A delegate accepted the server, which says nothing about its name.
    case acceptedByDelegate
    /// No evaluator and no delegate decided: the trust store decides.
    case usual
  }

  private struct Key: Hashable {
    let host: String
    let port: Int
    let partition: Int
    let certificates: [Data]
    // The stapled response is part of the key, because a later one may revoke the certificate.
    let stapledResponse: Data?

    init(_ chain: PresentedChain, _ partition: Int) {
      host = chain.host
      port = chain.port
      self.partition = partition
      certificates = chain.certificates
      stapledResponse = chain.stapledResponse
    }
  }

  package static let capacity = 256
  package static let lifetime = Duration.seconds(3600)

  private var verdicts: [Key: (verdict: Verdict, end: ContinuousClock.Instant)] = [:]
  private var order: [Key] = []

  package init() {}

  package func verdict(
    on chain: PresentedChain, in partition: Int, at now: @autoclosure () -> ContinuousClock.Instant = .now
  ) -> Verdict? {
    guard !verdicts.isEmpty, let kept = verdicts[Key(chain, partition)], now() < kept.end else { return nil }
    return kept.verdict
  }

  package mutating func remember(
    _ verdict: Verdict, on chain: PresentedChain, in partition: Int, at now: ContinuousClock.Instant = .now
  ) {
    let key = Key(chain, partition)
    if verdicts.updateValue((verdict, now + Self.lifetime), forKey: key) != nil { return }
    order.append(key)
    guard order.count > Self.capacity else { return }
    verdicts[order.removeFirst()] = nil
  }
}

/// The DNS names that an authority may issue certificates for (RFC 5280 §4.2.1.10).
package struct NameConstraints: Sendable, Equatable {
  /// A name that an authority must not issue for.
  package enum Violation: Sendable, Equatable {
    case isNotPermitted
    case isExcluded
  }

  /// The domains with all names below them; without any, all names are permitted.
  package let permitted: [String]
  /// The domains with all names below them that are forbidden, also if they are permitted.
  package let excluded: [String]

  package init(permitted: [String], excluded: [String]) {
    self.permitted = permitted
    self.excluded = excluded
  }

  /// Returns the constraint that forbids a certificate for the host name; `nil` if none does.
  package func violation(by host: String) -> Violation? {
    let host = Self.labels(of: host)
    if excluded.contains(where: { Self.labels(of: $0).isDomain(of: host) }) { return .isExcluded }
    guard !permitted.isEmpty else { return nil }
    return permitted.contains { Self.labels(of: $0).isDomain(of: host) } ? nil : .isNotPermitted
  }

  /// Returns lower-case labels. Ignores a dot at the end.
  private static func labels(of name: String) -> [Substring] {
    let name = name.lowercased()
    let relative = name.hasSuffix(".") ? name.dropLast() : name[...]
    return relative.isEmpty ? [] : relative.split(separator: ".", omittingEmptySubsequences: false)
  }
}

extension [Substring] {
  /// Whether `host` is this domain or below it. A domain with a leading dot includes only the names below it.
  fileprivate func isDomain(of host: [Substring]) -> Bool {
    guard first?.isEmpty == true else { return host.suffix(count).elementsEqual(self) }
    return host.count >= count && host.suffix(count - 1).elementsEqual(dropFirst())
  }
}
