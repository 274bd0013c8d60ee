/// The hosts with a policy of strict transport security (HSTS, RFC 6797), from the header field
/// `Strict-Transport-Security` or preloaded by the program.
///
/// A session whose options have this object upgrades `http` URLs of such hosts to `https`, for the first request and
/// for every redirect. The upgrade comes before cookies, cache, credentials or `URLProtocol` classes see the URL. The
/// port 80 becomes 443; other ports stay. If TLS fails, the request is not sent over `http`.
///
/// ```swift
/// let hosts = StrictTransportSecurity()
/// hosts.preload("example.com")
/// var options = TransportOptions()
/// options.strictTransportSecurity = hosts
/// let session = Session(transportOptions: options)
/// let response = await session.request("http://example.com/item").serializingData().response
/// // response.response?.url is https://example.com/item
/// ```
///
/// Sessions may share an object, and it may have a file: see `init(file:hostLimit:)`. A field counts if it came over
/// TLS and the host is a name, unless a delegate or a `DisabledTrustEvaluator` accepted the server, or its name was not
/// verified (`validateHost: false`).
public final class StrictTransportSecurity: Sendable, Hashable {
  private let storage: any HostPolicyStorage<StrictTransportTable>

  package init(storage: some HostPolicyStorage<StrictTransportTable>) { self.storage = storage }

  /// The error of reading the file, or of its last write; `nil` without an error, and without a file.
  public var storageError: HostStorageError? { storage.error }

  /// The hosts with a policy from the header field, sorted; without the preloaded ones.
  public var hosts: [String] { storage.read { $0.hosts(now: $1) } }

  /// Adds a host until the end of the process. A header field of the host does not remove it.
  ///
  /// - Returns: Whether the host is a name; addresses are not added.
  @discardableResult
  public func preload(_ host: String, includingSubdomains: Bool = true) -> Bool {
    guard let host = HostPolicyName(host) else { return false }
    storage.change { table, _ in
      table.preload(host, includingSubdomains: includingSubdomains)
      return false
    }
    return true
  }

  /// Whether requests to the host are upgraded to TLS.
  public func protects(_ host: String) -> Bool {
    guard let host = HostPolicyName(host) else { return false }
    return storage.read { $0.protects(host, now: $1) }
  }

  /// Removes the policy of a host. The host stays protected if it is preloaded, or if the policy of a parent domain
  /// includes it.
  public func forget(_ host: String) {
    guard let host = HostPolicyName(host) else { return }
    storage.change { table, _ in table.forget(host) }
  }

  /// Removes the policies of all hosts, except for preloaded ones.
  public func forgetAll() { storage.change { table, _ in table.forgetAll() } }

  /// Writes the file before it returns. The file is also written in the background soon after each change; a program
  /// that ends right away may call this method before. Does nothing without a file.
  public func save() throws(HostStorageError) { try storage.save() }

  /// Notes the field of a response from an https origin, which came over verified TLS.
  package func note(_ head: ResponseHead, of origin: Origin) {
    // Only the first field counts (RFC 6797 §8.1).
    guard origin.scheme == "https", let value = head.block.values(of: "Strict-Transport-Security").first,
      let field = StrictTransportField(value), let host = HostPolicyName(origin.host)
    else { return }
    storage.change { $0.note(field, of: host, now: $1) }
  }

  /// Returns the upgraded URL; `nil` if the URL is not upgraded.
  package func upgrade(_ url: String, _ origin: Origin) -> (url: String, origin: Origin)? {
    guard origin.scheme == "http", protects(origin.host) else { return nil }
    var reference = URIReference(lenient: url)
    guard let text = reference.authority, let authority = Authority(text) else { return nil }
    let port = origin.port == 80 ? nil : origin.port
    reference.scheme = "https"
    reference.authority =
      (authority.userInfo.map { $0 + "@" } ?? "") + authority.host + (port.map { ":\($0)" } ?? "")
    return (reference.text, Origin(scheme: "https", host: origin.host, port: port))
  }

  /// Whether two objects are identical.
  public static func == (left: StrictTransportSecurity, right: StrictTransportSecurity) -> Bool {
    left === right
  }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A `Strict-Transport-Security` field (RFC 6797 §6.1).
package struct StrictTransportField: Equatable, Sendable {
  /// In seconds; 0 removes the policy.
  package let maxAge: Int64
  package let includesSubdomains: Bool

  package init(maxAge: Int64, includesSubdomains: Bool) {
    self.maxAge = maxAge
    self.includesSubdomains = includesSubdomains
  }

  /// Parses a value; `nil` if it does not follow the grammar. Unknown directives are ignored. A repeated directive
  /// and a missing `max-age` are invalid.
  package init?(_ value: String) {
    var scanner = StrictScanner(value)
    var given: [String: String?] = [:]
    while true {
      scanner.skipSpace()
      if let name = scanner.token()?.lowercased() {
        scanner.skipSpace()
        var argument: String? = nil
        if scanner.take(UInt8(ascii: "=")) {
          scanner.skipSpace()
          guard let value = scanner.value() else { return nil }
          argument = value
        }
        guard given.updateValue(argument, forKey: name) == nil else { return nil }
        scanner.skipSpace()
      }
      if scanner.isAtEnd { break }
      guard scanner.take(UInt8(ascii: ";")) else { return nil }
    }
    guard let age = given["max-age"] ?? nil, let maxAge = StrictScanner.seconds(age) else { return nil }
    // It has no value.
    if let subdomains = given["includesubdomains"], subdomains != nil { return nil }
    self.init(maxAge: maxAge, includesSubdomains: given["includesubdomains"] != nil)
  }
}

/// The hosts that are reached over TLS only (RFC 6797 §8), by their own policies or by the program's policy. Times are
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
  /// A time before which no policy expires. A policy that was renewed or removed leaves it too early.
  private var earliestExpiry: Int64 = .max
  /// The number of policies that were looked at to make room. Tests count them.
  package private(set) var steps = 0
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
      keep(policy, of: host)
      return isNews
    }
    if noted.count >= limit, earliestExpiry <= now { removeExpired(now) }
    // A host that invents names must not displace the policies of others.
    guard noted.count < limit else { return false }
    keep(policy, of: host)
    return true
  }

  private mutating func keep(_ policy: Policy, of host: HostPolicyName) {
    noted[host] = policy
    earliestExpiry = min(earliestExpiry, policy.expiry)
  }

  private mutating func removeExpired(_ now: Int64) {
    steps += noted.count
    noted = noted.filter { $0.value.expiry > now }
    earliestExpiry = noted.values.lazy.map(\.expiry).min() ?? .max
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
      let expiry = DecimalNumber.whole(words[1]), words.count == 2 || words[2] == "includeSubDomains"
    else { return false }
    guard noted.count < limit else { return true }
    keep(Policy(expiry: expiry, includesSubdomains: words.count == 3, written: expiry), of: host)
    return true
  }
}
