/// Other places at which servers can be reached (RFC 7838), as they say in `Alt-Svc` fields.
///
/// A session whose options have one connects to such a place instead of the host and port of the URL. Nothing else
/// changes: the `Host` field, the name in TLS and in the certificate, evaluators, pins, limits of connections,
/// cookies and cache are those of the URL. The server is told the place in `Alt-Used`.
///
/// ```swift
/// var options = TransportOptions()
/// options.alternativeServices = AlternativeServices()
/// let session = Session(transportOptions: options)
/// ```
///
/// Only places that speak HTTP/2 over TLS are used, only what came over https counts, and not from a server that a
/// `DisabledTrustEvaluator` let through. A place that cannot be connected to, does not speak HTTP/2, has no
/// valid certificate for the host of the URL, or answers 421 is left alone for ten minutes, and the request goes
/// to the host itself. So it does at once with a proxy, a Unix-domain socket or a host override, with a body of more
/// than 64 KiB or one that can be read only once, and when the certificate of the place would have to be judged by
/// evaluators or delegates that take their time. Ports below 1024 are used when they are 443 or that of the URL, and
/// ports above only for URLs with such a port (RFC 7838 §9.1).
public final class AlternativeServices: Sendable, Hashable {
  private let storage: any HostPolicyStorage<AlternativeTable>

  package init(storage: some HostPolicyStorage<AlternativeTable>) { self.storage = storage }

  /// Why the file could not be read, or could not be written the last time; `nil` when all is in order, and without a
  /// file.
  public var storageError: HostStorageError? { storage.error }

  /// Forgets the places of a host, on all of its ports.
  public func forget(_ host: String) {
    guard let host = Authority(host.contains(":") ? "[\(host)]" : host)?.host else { return }
    storage.change { table, _ in table.forget(host: host) }
  }

  /// Forgets all places, as a program may do when it has come to another network.
  public func forgetAll() { storage.change { table, _ in table.forgetAll() } }

  /// Writes the file and waits for it, as `StrictTransportSecurity.save()` does.
  public func save() throws(HostStorageError) { try storage.save() }

  /// A response has come from an https origin, over TLS that was in order.
  package func note(_ head: ResponseHead, of origin: Origin) {
    let values = head.block.values(of: "Alt-Svc")
    guard origin.scheme == "https", !values.isEmpty,
      let field = AlternativeField(values.joined(separator: ","))
    else { return }
    let age = head.block.value(of: "Age").flatMap(StrictScanner.seconds) ?? 0
    storage.change { $0.note(field, of: origin, age: age, now: $1) }
  }

  /// Where to connect to; `nil` is the origin itself.
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

  /// Each is equal to itself alone.
  public static func == (left: AlternativeServices, right: AlternativeServices) -> Bool { left === right }

  /// Each has a hash of its own.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
