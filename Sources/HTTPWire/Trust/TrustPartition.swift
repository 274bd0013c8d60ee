import FoundationEssentials
import Synchronization

/// The options that decide which servers a connection trusts and which identity it presents. Within a session, which
/// has one evaluator, connections are shared if these are equal.
struct TrustPartition: Hashable {
  private let trustStore: TransportOptions.TrustStore
  private let revocationLists: [Data]
  private let identity: ClientIdentity?
  private let proxies: ProxyTable?

  private init(_ options: TransportOptions, _ proxies: ProxyTable?) {
    self.proxies = proxies
    trustStore = options.trustStore
    revocationLists = options.certificateRevocationLists
    identity = options.clientIdentity
  }

  private static let usual = TrustPartition(TransportOptions(), nil)

  /// Whether options trust the servers and present the identity of the default options.
  static func isUsual(_ options: TransportOptions) -> Bool { TrustPartition(options, nil) == usual }

  private struct Numbers {
    var given: [TrustPartition: Int] = [:]
    var next = 0
  }

  private static let numbers = Mutex(Numbers())

  /// Returns a number that is equal for equal options, and never reused for other ones.
  static func number(of options: TransportOptions, _ proxies: ProxyTable?) -> Int {
    let key = TrustPartition(options, proxies)
    return numbers.withLock { numbers in
      if let number = numbers.given[key] { return number }
      // A program that makes its options anew each time must not fill the memory with them.
      if numbers.given.count >= 256 { numbers.given.removeAll() }
      numbers.next += 1
      numbers.given[key] = numbers.next
      return numbers.next
    }
  }
}
