/// The alternative services of servers (RFC 7838), from their `Alt-Svc` fields.
///
/// A session whose options have this object connects to an alternative service instead of the host and port of the
/// URL. Nothing else changes. The `Host` field, the name in TLS and in the certificate, evaluators, pins, limits of
/// connections, cookies and cache are those of the URL. The field `Alt-Used` names the service to the server.
///
/// ```swift
/// var options = TransportOptions()
/// options.alternativeServices = AlternativeServices()
/// let session = Session(transportOptions: options)
/// ```
///
/// - Only services that use HTTP/2 over TLS are used. Only fields that came over https count, unless a
///   `DisabledTrustEvaluator` accepted the server.
/// - A service fails if it cannot be connected to, does not speak HTTP/2, has no valid certificate for the host, or
///   answers 421. A service that failed is not used for ten minutes, and the request goes to the host itself.
/// - Requests go to the host itself with a proxy, a Unix-domain socket, a host override, or slow evaluators or
///   delegates. Requests with a body of more than 64 KiB, or a body that can be read only once, go to the host
///   itself, too.
/// - A port below 1024 is used if it is 443 or that of the URL. Other ports are used only for URLs with a port of at
///   least 1024 (RFC 7838 §9.1).
public final class AlternativeServices: Sendable, Hashable {
  private let storage: any HostPolicyStorage<AlternativeTable>

  package init(storage: some HostPolicyStorage<AlternativeTable>) { self.storage = storage }

  /// The error of reading the file, or of its last write; `nil` without an error, and without a file.
  public var storageError: HostStorageError? { storage.error }

  /// Removes the services of a host on all of its ports.
  public func forget(_ host: String) {
    guard let host = Authority(host.contains(":") ? "[\(host)]" : host)?.host else { return }
    storage.change { table, _ in table.forget(host: host) }
  }

  /// Removes all services, for example after a change of the network.
  public func forgetAll() { storage.change { table, _ in table.forgetAll() } }

  /// Writes the file and waits for it, as `StrictTransportSecurity.save()` does.
  public func save() throws(HostStorageError) { try storage.save() }

  /// Notes the fields of a response from an https origin, which came over verified TLS.
  package func note(_ head: ResponseHead, of origin: Origin) {
    let values = head.block.values(of: "Alt-Svc")
    guard origin.scheme == "https", !values.isEmpty,
      let field = AlternativeField(values.joined(separator: ","))
    else { return }
    let age = head.block.value(of: "Age").flatMap(StrictScanner.seconds) ?? 0
    storage.change { $0.note(field, of: origin, age: age, now: $1) }
  }

  /// Returns the service to connect to; `nil` is the origin itself.
  package func choice(for origin: Origin) -> AlternativeService? {
    guard origin.scheme == "https" else { return nil }
    return storage.read { $0.choice(for: origin, now: $1) }
  }

  package func failed(_ service: AlternativeService, of origin: Origin) {
    storage.change { table, now in
      table.failed(service, of: origin, now: now)
      return false
    }
  }

  /// Whether two objects are identical.
  public static func == (left: AlternativeServices, right: AlternativeServices) -> Bool { left === right }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
