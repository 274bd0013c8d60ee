/// The way of a connection, decided before anything is opened.
package struct Route: Sendable, Hashable {
  package enum Place: Sendable, Hashable {
    case host(String, port: Int)
    case unixSocket(path: String)
  }

  /// The place of the origin's server, or of what is overridden to stand for it.
  package let place: Place
  /// The proxy between this machine and ``place``.
  package let proxy: ProxyServer?
  /// The Unix-domain socket at which the proxy is reached; `nil` if it is reached by its host and port.
  package let proxySocket: String?
  /// Whether the proxy is given the request itself, with an absolute URL (RFC 9112 §3.2.2), in place of a tunnel.
  package let forwards: Bool

  /// Makes the route to an origin.
  ///
  /// - Parameters:
  ///   - alternative: The service to connect to in place of the origin (RFC 7838).
  ///   - proxy: The proxy that was chosen for the origin.
  ///   - mayForward: Whether a proxy may be given the request itself. That is so for cleartext HTTP to a host without
  ///     an override.
  package init(
    to origin: Origin, _ options: TransportOptions, alternative: AlternativeService? = nil,
    proxy: ProxyServer? = nil, mayForward: Bool = false
  ) throws(TransportFailure) {
    self.proxy = proxy
    proxySocket = proxy == nil ? nil : options.unixSocket
    if let wrong = options.hostOverrides.first(where: { !$0.isValid }) {
      throw TransportFailure(
        .badURL, "A host override has an invalid host or port: \(wrong.host) to \(wrong.target).")
    }
    var (host, port) = (origin.host, origin.port)
    if let alternative { (host, port) = (alternative.host, alternative.port) }
    let wanted = Origin(scheme: origin.scheme, host: host, port: port)
    let override = options.hostOverrides.first { $0.leads(wanted) }
    // A proxy that is given the request itself would connect to the host of its URL.
    let mayForward = mayForward && override == nil && origin.scheme == "http"
    forwards = mayForward && (proxy?.kind == .http || proxy?.kind == .https)
    // Requests to all origins go to the same place.
    if forwards, let proxy {
      place = .host(proxy.host, port: proxy.port)
      return
    }
    if proxy == nil, let path = options.unixSocket {
      place = .unixSocket(path: path)
      return
    }
    if let override { (host, port) = (override.target.lowercased(), override.targetPort ?? port) }
    place = .host(host, port: port)
  }
}

extension TransportOptions.HostOverride {
  /// Whether hosts and ports can be ones.
  package var isValid: Bool {
    func isHost(_ text: String) -> Bool {
      !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"[]/@?#\\".utf8.contains($0) }
    }
    func isPort(_ port: Int?) -> Bool { port.map { $0 > 0 && $0 < 65_536 } ?? true }
    return isHost(host) && isHost(target) && isPort(port) && isPort(targetPort)
  }
}
