/// The way of a connection, decided before anything is opened.
package struct Route: Sendable, Hashable {
  package enum Endpoint: Sendable, Hashable {
    case host(String, port: Int)
    case unixSocket(path: ByteText)
  }

  /// The address of the origin's server, or of the server that replaces it.
  package let endpoint: Endpoint
  /// The proxy between this machine and ``place``.
  package let proxy: ProxyServer?
  /// The Unix-domain socket at which the proxy is reached; `nil` if it is reached by its host and port.
  package let proxySocket: ByteText?
  /// Whether the proxy is given the request itself, with an absolute URL (RFC 9112 §3.2.2), instead of opening a
  /// tunnel.
  package let forwards: Bool

  /// Makes the route to an origin.
  ///
  /// - Parameters:
  ///   - alternative: The service to connect to instead of the origin (RFC 7838).
  ///   - proxy: The proxy that was chosen for the origin.
  ///   - mayForward: Whether a proxy may be given the request itself. That is so for cleartext HTTP to a host without
  ///     an override.
  package init(
    to origin: Origin, _ options: TransportOptions, alternative: AlternativeService? = nil,
    proxy: ProxyServer? = nil, mayForward: Bool = false
  ) throws(TransportFailure) {
    self.proxy = proxy
    proxySocket = proxy == nil ? nil : options.unixSocket.map { ByteText($0) }
    if let wrong = options.hostOverrides.first(where: { !$0.isValid }) {
      throw TransportFailure(
        .badURL, "A host override has an invalid host or port: \(wrong.host) to \(wrong.target).")
    }
    var (host, port) = (origin.host, origin.port)
    if let alternative { (host, port) = (alternative.host, alternative.port) }
    let target = Origin(scheme: origin.scheme, host: host, port: port)
    let override = options.hostOverrides.first { $0.leads(target) }
    // A proxy that is given the request itself would connect to the host of its URL.
    let mayForward = mayForward && override == nil && origin.scheme == "http"
    forwards = mayForward && (proxy?.kind == .http || proxy?.kind == .https)
    // Requests to all origins go to the same proxy.
    if forwards, let proxy {
      endpoint = .host(proxy.host, port: proxy.port)
      return
    }
    if proxy == nil, let path = options.unixSocket {
      endpoint = .unixSocket(path: ByteText(path))
      return
    }
    if let override {
      let target = Origin(scheme: origin.scheme, host: override.target, port: override.targetPort ?? port)
      (host, port) = (target.host, target.port)
    }
    endpoint = .host(host, port: port)
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

/// The connections to one host as far as a waiting request is concerned, and how it gets one of them. Pure: the pool
/// owns the connections, keeps the counts, and asks again after each change while requests are waiting.
package struct PoolState: Sendable, Equatable {
  package enum PoolStep: Sendable, Equatable {
    /// Use the idle connection that was used last.
    case useIdle
    /// Open a stream on a connection of HTTP/2.
    case useStream
    case connect
    /// Close the idle connection that has waited longest among those that cannot carry the request, and connect.
    case closeOtherAndConnect
    case wait
  }

  // Connections with the key of the request.
  /// The number of connections that can carry the request at once.
  package var idle = 0
  /// Whether a connection of HTTP/2 can open a stream.
  package var hasStream = false
  /// The number of connections that are being established, plus those that completed a response in this turn of the
  /// loop.
  package var connecting = 0
  /// The number of other requests that wait for one of the ``connecting``, and need one each.
  package var waiting = 0
  /// Whether the connections carry many requests at a time; `nil` until one was established.
  package var multiplexes: Bool?

  // Connections to the whole host, with any key.
  /// The number of connections that count towards the limit, including those that are being established.
  package var open = 0
  /// The number of idle connections that cannot carry the request: those with other keys, or with HTTP/2 for a request
  /// that needs HTTP/1.1.
  package var idleElsewhere = 0
  /// The largest number of connections.
  package var limit: Int

  package init(limit: Int) { self.limit = limit }

  /// Returns how the request gets a connection.
  ///
  /// - Parameter mayMultiplex: Whether the request may be sent over HTTP/2.
  package func step(mayMultiplex: Bool) -> PoolStep {
    if mayMultiplex, hasStream { return .useStream }
    if idle > 0 { return .useIdle }
    // A burst of requests waits for the first connection, because one may carry them all.
    if mayMultiplex, multiplexes != false, connecting > 0 { return .wait }
    if waiting < connecting { return .wait }
    if open < limit { return .connect }
    return idleElsewhere > 0 ? .closeOtherAndConnect : .wait
  }
}
