/// The hosts that are reached over TLS only (RFC 6797 §8), by their own policies or by that of the program. Times are
/// seconds since 1970.
package struct StrictTransportTable: Sendable {
  private struct Policy: Equatable {
    var expiry: Int64
    var includesSubdomains: Bool
    /// The expiry when it was last worth being written down.
    var written: Int64
  }

  /// The most hosts that are noted.
  private let limit: Int
  private var noted: [HostPolicyName: Policy] = [:]
  /// Whether the domains below are included, by host.
  private var preloaded: [HostPolicyName: Bool] = [:]

  package init(limit: Int) { self.limit = max(0, limit) }

  /// Whether `host` has a policy, or a parent domain has one that includes subdomains.
  package func protects(_ host: HostPolicyName, now: Int64) -> Bool {
    if isNoted(host, now, asParent: false) || preloaded[host] != nil { return true }
    var parent = host.parent
    while let domain = parent {
      if isNoted(domain, now, asParent: true) || preloaded[domain] == true { return true }
      parent = domain.parent
    }
    return false
  }

  private func isNoted(_ host: HostPolicyName, _ now: Int64, asParent: Bool) -> Bool {
    guard let policy = noted[host], policy.expiry > now else { return false }
    return !asParent || policy.includesSubdomains
  }

  /// Records a policy that a host sent over TLS, with a verified certificate.
  ///
  /// - Returns: Whether the change has to be written to the file. A change of the expiry by less than a hundredth of
  ///   its distance is not, because most hosts repeat the field in every response.
  package mutating func note(_ field: StrictTransportField, of host: HostPolicyName, now: Int64) -> Bool {
    guard field.maxAge > 0 else { return noted.removeValue(forKey: host) != nil }
    let expiry = now.later(by: field.maxAge)
    var policy = Policy(expiry: expiry, includesSubdomains: field.includesSubdomains, written: expiry)
    if let old = noted[host] {
      let isNews =
        old.includesSubdomains != policy.includesSubdomains || abs(expiry - old.written) > field.maxAge / 100
      if !isNews { policy.written = old.written }
      noted[host] = policy
      return isNews
    }
    if noted.count >= limit { noted = noted.filter { $0.value.expiry > now } }
    // A host that invents names must not displace the policies of others.
    guard noted.count < limit else { return false }
    noted[host] = policy
    return true
  }

  package mutating func preload(_ host: HostPolicyName, includingSubdomains: Bool) {
    preloaded[host] = includingSubdomains
  }

  /// Whether there was something to forget.
  package mutating func forget(_ host: HostPolicyName) -> Bool { noted.removeValue(forKey: host) != nil }

  package mutating func forgetAll() -> Bool {
    defer { noted.removeAll() }
    return !noted.isEmpty
  }

  /// Returns the names of hosts with a policy from their own header fields, sorted.
  package func hosts(now: Int64) -> [String] {
    noted.filter { $0.value.expiry > now }.map(\.key.name).sorted()
  }
}

extension StrictTransportTable: HostPolicyTable {
  package static var title: String { "# strict-transport-security 1" }

  package func lines(now: Int64) -> [String] {
    noted.filter { $0.value.expiry > now }.sorted { $0.key.name < $1.key.name }.map { host, policy in
      "\(host.name) \(policy.expiry)\(policy.includesSubdomains ? " includeSubDomains" : "")"
    }
  }

  package mutating func read(_ line: Substring) -> Bool {
    let words = line.split(separator: " ")
    guard (2...3).contains(words.count), let host = HostPolicyName(String(words[0])),
      let expiry = Int64(words[1]), expiry >= 0, words.count == 2 || words[2] == "includeSubDomains"
    else { return false }
    guard noted.count < limit else { return true }
    noted[host] = Policy(expiry: expiry, includesSubdomains: words.count == 3, written: expiry)
    return true
  }
}
