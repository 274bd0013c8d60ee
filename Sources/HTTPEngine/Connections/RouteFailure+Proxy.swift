import Glibc
import HTTPSystem
import HTTPWire

// The failures of connections through proxies.
extension RouteFailure {
  static func unknownProxy(_ proxy: ProxyServer, _ reason: HostLookup.Failure?) -> TransportFailure {
    let said = reason.map { " (\($0.text))" } ?? ""
    return TransportFailure(
      .cannotFindProxy,
      "The name of the proxy \(proxy) could not be found; check TransportOptions.proxy.\(said)")
  }

  static func unreachable(_ proxy: ProxyServer, _ code: Int32) -> TransportFailure {
    if code == EMFILE || code == ENFILE { return outOfDescriptors(proxy.host, code) }
    return TransportFailure(
      .cannotConnectToProxy,
      "The proxy \(proxy) does not accept the connection; check that it runs on that port. (\(String(cString: strerror(code))))"
    )
  }

  static func timedOut(_ host: String, through proxy: ProxyServer, in phase: PhaseTimer.Phase)
    -> TransportFailure
  {
    TransportFailure(
      .timedOut,
      "The connection to \(host) through the proxy \(proxy) timed out; check that the proxy runs on that port, or raise the connect timeout.",
      phase: phase)
  }

  static func closed(by proxy: ProxyServer, _ host: String) -> TransportFailure {
    TransportFailure(
      .cannotConnectToProxy,
      "The proxy \(proxy) closed the connection to \(host) before the request was sent.")
  }

  /// Returns the failure of a handshake with a proxy. A certificate that was refused keeps its own.
  static func handshake(_ failure: TransportFailure, with proxy: ProxyServer) -> TransportFailure {
    guard [.secureConnectionFailed, .connectionLost, .clientCertificateRequired].contains(failure.kind) else {
      return failure
    }
    return TransportFailure(
      .cannotConnectToProxy, "The TLS handshake with the proxy \(proxy) failed. (\(failure.message))")
  }

  static func rejected(by proxy: ProxyServer) -> TransportFailure {
    TransportFailure(
      .proxyAuthenticationRequired,
      proxy.username == nil
        ? "The proxy \(proxy) requires a name and a password; set them in TransportOptions.proxy."
        : "The proxy \(proxy) does not accept the name and the password.")
  }

  static func tunnel(_ failure: ConnectTunnel.Failure, _ proxy: ProxyServer, _ host: String)
    -> TransportFailure
  {
    switch failure {
    case .loginRequired, .loginRejected: return rejected(by: proxy)
    case .refused(let status):
      return TransportFailure(
        .cannotConnectToHost, "The proxy \(proxy) refused a tunnel to \(host) with the status \(status).")
    case .invalidRequest:
      return TransportFailure(.badURL, "The proxy \(proxy) cannot be asked for a tunnel to \(host).")
    case .invalidResponse, .headTooLarge: return notSpoken(by: proxy)
    case .closed: return closed(by: proxy, host)
    }
  }

  static func socks(_ failure: SOCKSHandshake.Failure, _ proxy: ProxyServer, _ host: String)
    -> TransportFailure
  {
    switch failure {
    case .loginRejected: return rejected(by: proxy)
    case .invalidCredential:
      return TransportFailure(
        .proxyAuthenticationRequired,
        "The name and the password for the proxy \(proxy) cannot be sent: each has at most 255 bytes.")
    case .notSOCKS: return notSpoken(by: proxy)
    case .invalidName:
      return TransportFailure(
        .badURL, "The host has \(host.utf8.count) bytes; a SOCKS proxy takes names of at most 255 bytes.")
    case .addressFamily:
      return TransportFailure(
        .cannotFindHost, "\(host) has no IPv4 address, and the proxy \(proxy) takes no others.")
    case .refused:
      let said = failure.reason.map { " (\($0))" } ?? ""
      return TransportFailure(.cannotConnectToHost, "The proxy \(proxy) did not connect to \(host).\(said)")
    }
  }

  private static func notSpoken(by proxy: ProxyServer) -> TransportFailure {
    TransportFailure(
      .cannotConnectToProxy,
      "The server at \(proxy) does not speak \(proxy.kind.rawValue); check kind and port.")
  }
}
