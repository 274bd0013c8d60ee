import FoundationEssentials

/// The servers that slow evaluators accepted. The number of entries has a limit: the oldest ones are removed. Entries
/// of an hour ago are removed, too, because a certificate may expire or be revoked during the life of a session.
package struct TrustMemory: Sendable {
  package enum Verdict: Sendable, Equatable {
    case accepted
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
