import FoundationEssentials

/// Which servers were accepted by code that takes its time. Bounded: the oldest are forgotten, and judged again.
package struct TrustMemory: Sendable {
  package enum Verdict: Sendable, Equatable {
    case accepted
    /// Nobody had a say in it: the trust store decides.
    case usual
  }

  private struct Key: Hashable {
    let host: String
    let port: Int
    let partition: Int
    let certificates: [Data]
    // What was stapled decides too: a later response may say that the certificate was revoked.
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

  private var verdicts: [Key: Verdict] = [:]
  private var order: [Key] = []

  package init() {}

  package func verdict(on chain: PresentedChain, in partition: Int) -> Verdict? {
    verdicts.isEmpty ? nil : verdicts[Key(chain, partition)]
  }

  package mutating func remember(_ verdict: Verdict, on chain: PresentedChain, in partition: Int) {
    let key = Key(chain, partition)
    if verdicts.updateValue(verdict, forKey: key) != nil { return }
    order.append(key)
    guard order.count > Self.capacity else { return }
    verdicts[order.removeFirst()] = nil
  }
}
