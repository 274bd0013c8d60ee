/// Hosts that are reached over TLS alone (HSTS, RFC 6797): those that have said so in a `Strict-Transport-Security` field,
/// and those that the program names.
///
/// A session whose options have one sends requests for `http` URLs of such hosts to `https`, the first request as well
/// as every redirect, before cookies, cache, credentials or `URLProtocol` classes see the URL. The port 80 becomes 443,
/// others stay. Nothing goes back to `http` when TLS fails.
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
/// Sessions may share one, and it may be kept in a file: see `init(file:hostLimit:)`. What a host says counts when it
/// came over TLS and the host is no address; it does not from a server that a `DisabledTrustEvaluator` let through.
public final class StrictTransportSecurity: Sendable, Hashable {
  private let storage: any HostPolicyStorage<StrictTransportTable>

  package init(storage: some HostPolicyStorage<StrictTransportTable>) { self.storage = storage }

  /// Why the file could not be read, or could not be written the last time; `nil` when all is in order, and without a
  /// file.
  public var storageError: HostStorageError? { storage.error }

  /// The hosts that have said so themselves, in order; without those that the program names.
  public var hosts: [String] { storage.read { $0.hosts(now: $1) } }

  /// Adds a host by hand, until the end of the process. Whatever the host says does not take it back.
  ///
  /// - Returns: Whether it is a name; addresses are not added.
  @discardableResult
  public func preload(_ host: String, includingSubdomains: Bool = true) -> Bool {
    guard let host = KnownHost(host) else { return false }
    storage.change { table, _ in
      table.preload(host, includingSubdomains: includingSubdomains)
      return false
    }
    return true
  }

  /// Whether requests to the host go over TLS alone.
  public func protects(_ host: String) -> Bool {
    guard let host = KnownHost(host) else { return false }
    return storage.read { $0.protects(host, now: $1) }
  }

  /// Forgets what a host has said. One that the program has named, or that lies in a domain that includes it, stays.
  public func forget(_ host: String) {
    guard let host = KnownHost(host) else { return }
    storage.change { table, _ in table.forget(host) }
  }

  /// Forgets what all hosts have said.
  public func forgetAll() { storage.change { table, _ in table.forgetAll() } }

  /// Writes the file and waits for it. Without calling it, the file is written in the background soon after something
  /// has changed; a program that ends right away may call it before. Does nothing without a file.
  public func save() throws(HostStorageError) { try storage.save() }

  /// A response has come from an https origin, over TLS that was in order.
  package func note(_ head: ResponseHead, of origin: Origin) {
    // The first field counts, whatever the others say (RFC 6797 §8.1).
    guard origin.scheme == "https", let value = head.block.values(of: "Strict-Transport-Security").first,
      let field = StrictTransportField(value), let host = KnownHost(origin.host)
    else { return }
    storage.change { $0.note(field, of: host, now: $1) }
  }

  /// Where a URL leads instead; `nil` when it may be as it is.
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

  /// Each is equal to itself alone.
  public static func == (left: StrictTransportSecurity, right: StrictTransportSecurity) -> Bool {
    left === right
  }

  /// Each has a hash of its own.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
