/// Another host and port at which an origin can be reached by HTTP/2 over TLS (RFC 7838).
package struct AlternativeService: Hashable, Sendable {
  /// ASCII, lower case, without brackets.
  package let host: String
  package let port: Int

  package init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// The value of `Alt-Used` (RFC 7838 §5).
  package var text: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// Whether an origin may name this service. A port below 1024 must be 443 or the origin's own. Every user of the
  /// machine can open other ports. So other ports are allowed only for an origin with a port of at least 1024 (RFC
  /// 7838 §9.1).
  package func isFit(for origin: Origin) -> Bool {
    port == origin.port || port == 443 || (port >= 1024 && origin.port >= 1024)
  }
}

extension TransportOptions.HostOverride {
  /// Whether connections to an origin go elsewhere by this override.
  package func leads(_ origin: Origin) -> Bool {
    FieldName.equal(host, origin.host) && (port ?? origin.port) == origin.port
  }
}
