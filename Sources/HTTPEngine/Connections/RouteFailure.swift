import Glibc
import HTTPSystem
import HTTPWire

/// The failures to connect, as a user reads them.
enum RouteFailure {
  static func unknownName(_ host: String, _ reason: HostLookup.Failure?) -> TransportFailure {
    if let shortage = shortage(host, reason) { return shortage }
    // An address with a zone that names no interface of this machine.
    if host.contains(":") {
      return TransportFailure(
        .cannotConnectToHost,
        "The address \(host) cannot be reached; check its zone, which is the name of an interface.",
        unreached: .other(host))
    }
    let said = reason.map { " (\($0.text))" } ?? ""
    return TransportFailure(
      .cannotFindHost, "The name \(host) could not be found; check its spelling and the DNS settings.\(said)",
      unreached: .other(host))
  }

  /// Returns the failure of the last address that was tried.
  static func unreachable(_ host: String, _ code: Int32, _ address: IPAddress, port: Int) -> TransportFailure
  {
    if let shortage = shortage(host, code) { return shortage }
    // What the sentence says anyway is not repeated: a host with a colon is an address.
    let isUsual = code == ECONNREFUSED && (host == address.text || host.contains(":"))
    let shown = address.family == .v6 ? "[\(address.text)]" : address.text
    let detail = isUsual ? "" : " (\(shown): \(text(code)))"
    let sentence =
      explanation(of: code, for: address)
      ?? "does not accept the connection; check that the server runs on port \(port)"
    return TransportFailure(.cannotConnectToHost, "\(host) \(sentence).\(detail)")
  }

  /// Whether an attempt to connect has failed because this machine has no way to the family or the net of the address.
  /// That says nothing about the host if another of its addresses can be reached.
  static func isWithoutRoute(_ attempt: Connector.FailedAttempt) -> Bool {
    switch attempt.code {
    case ENETUNREACH, EAFNOSUPPORT: true
    // The machine has no address of its own. With IPv4, it has no free port.
    case EADDRNOTAVAIL: attempt.address.family == .v6
    default: false
    }
  }

  /// Returns the host that a failed attempt to connect is about. A machine that has a route to an address of a name has
  /// a network. The route to a literal address is asked for later.
  static func unreachedHost(
    _ host: String, after attempt: Connector.FailedAttempt
  ) -> TransportFailure.UnreachedHost {
    guard !isWithoutRoute(attempt), attempt.code != ENETDOWN else { return .other(host) }
    return HostLookup.addresses(of: host, literalsOnly: true).isEmpty ? .none : .other(host)
  }

  /// Returns the reason why an address could not be reached, with a remedy; `nil` if it has refused the connection.
  private static func explanation(of code: Int32, for address: IPAddress) -> String? {
    switch code {
    case EINVAL where address.isLinkLocal && address.zone == 0:
      "is valid on one link only; add the interface that leads to it, as in [\(address.text)%25eth0]"
    case EADDRNOTAVAIL where address.family == .v4:
      "cannot be reached, because this machine has no free port for the connection; close others, or widen net.ipv4.ip_local_port_range"
    case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL, EAFNOSUPPORT:
      "cannot be reached; check the network of this machine, and the address of the host"
    case EACCES, EPERM:
      "cannot be reached, because this machine does not permit it; check its firewall, and the rights of the process"
    default: nil
    }
  }

  static func unreachable(unixSocket path: String, _ code: Int32) -> TransportFailure {
    if let shortage = shortage(path, code) { return shortage }
    // A path that is too long stays so.
    return TransportFailure(
      code == ENAMETOOLONG ? .badURL : .cannotConnectToHost,
      "The Unix-domain socket \(path) does not accept the connection: \(text(code)). Check its path, and that the server runs.",
      unreached: .none)
  }

  static func unusableInterface(_ host: String, _ setting: String) -> TransportFailure {
    TransportFailure(
      .cannotConnectToHost,
      "The local interface or address \(setting) could not be used for \(host) (localInterface).")
  }

  /// Returns the failure of a request because a setting, which has this name, names no proxy that can be used. Retriers
  /// must not take it for one that passes.
  static func unusableProxy(of setting: String) -> TransportFailure {
    TransportFailure(
      .badURL,
      "\(setting) names no usable proxy. Write it as http://host:port, or set TransportOptions.proxy; scripts (PAC) are not evaluated."
    )
  }

  /// Returns the failure of a host that has private addresses only. Retriers must not take it for one that passes.
  static func privateAddress(_ host: String) -> TransportFailure {
    TransportFailure(
      .addressRefused,
      "\(host) has a private address, which refusesPrivateAddresses does not allow. Turn that option off to reach it."
    )
  }

  /// Returns the failure of a host, or of the proxy before it, all of whose addresses belong to the other family.
  static func excluded(
    _ host: String, _ proxy: ProxyServer?, by family: TransportOptions.AddressFamily
  ) -> TransportFailure {
    let name = proxy.map { "the proxy \($0)" } ?? host
    return TransportFailure(
      proxy == nil ? .cannotFindHost : .cannotFindProxy,
      "No address of \(name) may be used, because addressFamily allows only \(family == .ipv4 ? "IPv4" : "IPv6") addresses.",
      unreached: .none)
  }

  static func timedOut(_ host: String, in phase: PhaseTimer.Phase) -> TransportFailure {
    TransportFailure(
      .timedOut, "The connection to \(host) timed out; check the network, or raise the connect timeout.",
      phase: phase)
  }

  static func timedOut(unixSocket path: String) -> TransportFailure {
    TransportFailure(
      .timedOut,
      "The server at the Unix-domain socket \(path) did not accept the connection in time, because its queue of connections is full. Raise its backlog, or the connect timeout.",
      phase: .connect)
  }

  /// Returns the failure of a connection that was not established within the idle timeout, although bytes may have
  /// moved.
  static func idle(_ host: String, _ limit: Duration, _ options: TransportOptions) -> TransportFailure {
    TransportFailure(
      .timedOut,
      "The connection to \(host) was not established within \(limit.shownSeconds) (\(options.timeLimits.idleSetting)).",
      phase: .idle)
  }

  private static func shortage(_ host: String, _ reason: HostLookup.Failure?) -> TransportFailure? {
    switch reason?.code {
    case EAI_SYSTEM?: reason.flatMap { shortage(host, $0.systemError) }
    case EAI_MEMORY?: shortage(host, ENOMEM)
    default: nil
    }
  }

  /// Returns the failure of a connection for which the process or the machine has too little of something; `nil` if
  /// that is not the reason.
  private static func shortage(_ host: String, _ code: Int32) -> TransportFailure? {
    let start = "No connection to \(host) could be made because"
    return switch code {
    case EMFILE, ENFILE: outOfDescriptors(host, code)
    case ENOMEM, ENOBUFS:
      TransportFailure(
        .resourceUnavailable, "\(start) the machine has too little memory for it. (\(text(code)))")
    // Only epoll fails like this.
    case ENOSPC:
      TransportFailure(
        .resourceUnavailable,
        "\(start) the processes of the user watch too many sockets. Close connections, or raise the limit (fs.epoll.max_user_watches)."
      )
    default: nil
    }
  }

  private static func outOfDescriptors(_ host: String, _ code: Int32) -> TransportFailure {
    let (owner, limits) =
      code == ENFILE
      ? ("machine", "the limits (fs.file-max, ulimit -n)")
      : ("process", "the limit (ulimit -n, LimitNOFILE of systemd)")
    return TransportFailure(
      .resourceUnavailable,
      "No connection to \(host) could be made because the \(owner) has no file descriptors left. Close files and connections, or raise \(limits)."
    )
  }

  private static func text(_ code: Int32) -> String { String(cString: strerror(code)) }
}

// The failures of connections through proxies.
extension RouteFailure {
  static func unknownProxy(_ proxy: ProxyServer, _ reason: HostLookup.Failure?) -> TransportFailure {
    if let shortage = shortage(proxy.host, reason) { return shortage }
    let said = reason.map { " (\($0.text))" } ?? ""
    return TransportFailure(
      .cannotFindProxy,
      "The name of the proxy \(proxy) could not be found; check TransportOptions.proxy.\(said)",
      unreached: .other(proxy.host))
  }

  /// Returns the failure of the last address of a proxy that was tried.
  static func unreachable(_ proxy: ProxyServer, _ code: Int32, _ address: IPAddress) -> TransportFailure {
    if let shortage = shortage(proxy.host, code) { return shortage }
    let sentence =
      explanation(of: code, for: address) ?? "does not accept the connection; check that it runs on that port"
    return TransportFailure(
      .cannotConnectToProxy, "The proxy \(proxy) \(sentence). (\(text(code)))",
      unreached: .other(proxy.host))
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
      "The proxy \(proxy) closed the connection to \(host) before the request was sent.",
      unreached: .none)
  }

  /// Returns the failure of a handshake with a proxy. A certificate that was refused keeps its own.
  static func handshake(_ failure: TransportFailure, with proxy: ProxyServer) -> TransportFailure {
    guard [.secureConnectionFailed, .connectionLost, .clientCertificateRequired].contains(failure.kind) else {
      return failure
    }
    return TransportFailure(
      .cannotConnectToProxy, "The TLS handshake with the proxy \(proxy) failed. (\(failure.message))",
      unreached: .none)
  }

  static func rejected(by proxy: ProxyServer) -> TransportFailure {
    TransportFailure(
      .proxyAuthenticationRequired,
      proxy.username == nil
        ? "The proxy \(proxy) requires a name and a password; set them in TransportOptions.proxy."
        : "The proxy \(proxy) does not accept the name and the password.")
  }

  /// Returns the failure of a proxy that asks for a login by none of the schemes that its credential answers. No part
  /// of the credential was sent.
  private static func unanswerable(_ proxy: ProxyServer, status: Int) -> TransportFailure {
    guard status == 407 else {
      return TransportFailure(
        .proxyAuthenticationRequired,
        "The proxy \(proxy) asks for a login by the status \(status) instead of 407, which is not answered. With the authentication basic, TransportOptions.proxy sends the name and the password without being asked."
      )
    }
    let remedy =
      (proxy.username ?? "").isEmpty
      ? "Without a name, a ticket is needed (kinit), and the proxy has to offer Negotiate."
      : "A name and a password answer Basic, Digest and NTLM."
    return TransportFailure(
      .proxyAuthenticationRequired,
      "The proxy \(proxy) asks for a login that cannot be answered by what TransportOptions.proxy has. \(remedy)"
    )
  }

  /// Returns the failure of a proxy that has refused the credential for a tunnel.
  private static func rejectedLogin(by proxy: ProxyServer) -> TransportFailure {
    let hasName = !(proxy.username ?? "").isEmpty
    guard !hasName, proxy.hasCredential, proxy.authentication == .negotiated else {
      return rejected(by: proxy)
    }
    return TransportFailure(
      .proxyAuthenticationRequired,
      "The proxy \(proxy) does not accept the login without a name; check the ticket (klist), or name a user in TransportOptions.proxy."
    )
  }

  static func tunnel(_ failure: ConnectTunnel.Failure, _ proxy: ProxyServer, _ host: String)
    -> TransportFailure
  {
    switch failure {
    case .loginRequired(let status):
      return proxy.hasCredential ? unanswerable(proxy, status: status) : rejected(by: proxy)
    case .loginRejected: return rejectedLogin(by: proxy)
    case .refused(let status):
      return TransportFailure(
        .cannotConnectToHost, "The proxy \(proxy) refused a tunnel to \(host) with the status \(status).",
        unreached: .none)
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
        .cannotFindHost, "\(host) has no IPv4 address, and the proxy \(proxy) takes no others.",
        unreached: .none)
    case .refused:
      let said = failure.reason.map { " (\($0))" } ?? ""
      return TransportFailure(
        .cannotConnectToHost, "The proxy \(proxy) did not connect to \(host).\(said)", unreached: .none)
    }
  }

  private static func notSpoken(by proxy: ProxyServer) -> TransportFailure {
    TransportFailure(
      .cannotConnectToProxy,
      "The server at \(proxy) does not speak \(proxy.kind.rawValue); check kind and port.",
      unreached: .none)
  }
}
