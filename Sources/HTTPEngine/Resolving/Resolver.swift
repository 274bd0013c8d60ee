import Glibc
import HTTPSystem
import HTTPWire

/// The addresses of names, as one loop knows them. Belongs to the loop's thread.
///
/// A name is looked up once for all that wait for it. Its addresses are kept for a minute, or until a connection to
/// them has failed, so that a host which moves is found at its new place. A failed look-up is not kept.
final class Resolver {
  typealias Answer = Result<[IPAddress], HostLookup.Failure>

  /// An attempt that waits for the addresses of a name.
  protocol Waiter: AnyObject {
    func resolved(_ answer: Answer)
  }

  private struct Entry {
    let addresses: [IPAddress]
    let end: UInt64
  }

  private static let lifetime: UInt64 = 60_000_000_000
  private static let capacity = 1024

  unowned(unsafe) var owner: EventLoop!
  @exclusivity(unchecked) private var known: [String: Entry] = [:]
  @exclusivity(unchecked) private var waiting: [String: [any Waiter]] = [:]

  /// Returns the addresses of a host if no look-up is needed for them.
  func knownAddresses(of host: String, _ now: UInt64) -> [IPAddress]? {
    if let addresses = IPAddress.loopback(of: host) { return addresses }
    if let entry = known[host] {
      if entry.end > now { return entry.addresses }
      known[host] = nil
    }
    let literals = HostLookup.addresses(of: host, literalsOnly: true)
    return literals.isEmpty ? nil : literals
  }

  /// Looks up a name, and answers in a later turn of the loop.
  func lookUp(_ host: String, for waiter: any Waiter) {
    guard waiting[host] == nil else {
      waiting[host]?.append(waiter)
      return
    }
    waiting[host] = [waiter]
    LookupThreads.shared.run { [weak owner] in
      let answer = HostLookup.lookUp(host)
      owner?.post(.run { $0.resolver.finished(host, answer, $0.now) })
    }
  }

  /// Forgets an attempt that waits for a name. The look-up itself goes on, because the system cannot end it.
  func withdraw(_ waiter: any Waiter, from host: String) {
    waiting[host]?.removeAll { $0 === waiter }
  }

  /// Forgets the addresses of a host, because no connection to them could be made.
  func forget(_ host: String) { known[host] = nil }

  /// Takes the answer of a look-up.
  func finished(_ host: String, _ answer: Answer, _ now: UInt64) {
    let waiters = waiting.removeValue(forKey: host) ?? []
    if case .success(let addresses) = answer, !addresses.isEmpty { keep(addresses, of: host, now) }
    for waiter in waiters { waiter.resolved(answer) }
  }

  private func keep(_ addresses: [IPAddress], of host: String, _ now: UInt64) {
    if known.count >= Self.capacity {
      known = known.filter { $0.value.end > now }
      if known.count >= Self.capacity { known.removeAll() }
    }
    known[host] = Entry(addresses: addresses, end: now + Self.lifetime)
  }
}
