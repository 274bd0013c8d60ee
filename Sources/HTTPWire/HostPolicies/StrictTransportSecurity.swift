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
/// TLS and the host is a name, unless a `DisabledTrustEvaluator` accepted the server.
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
