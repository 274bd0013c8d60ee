import CCurl
import FoundationEssentials
import HTTPWire

// The proxy of a request. The engine chooses it, so libcurl never reads the environment. libcurl speaks with the proxy.
extension Transfer {
  /// Sets the option without which libcurl would look for proxies by itself.
  func setNoProxy() {
    easy.set(CURLOPT_NOPROXY, "*")
  }

  func applyProxy(_ request: WireRequest) -> TransportFailure? {
    if case nil = applied.proxy, request.profile.isDirect ?? ProxyEnvironment.shared.isDirect { return nil }
    switch ProxyEnvironment.shared.choice(for: request.origin, in: request.profile.proxies) {
    case .direct, .environment: return apply(nil)
    case .server(let server):
      if let failure = Self.longHostFailure(request.origin.host, server) { return failure }
      return apply(server)
    case .unreadable(let name):
      return TransportFailure(
        .cannotFindProxy,
        "\(name) has an invalid proxy. Write it as http://host:port, or set TransportOptions.proxy."
      )
    }
  }

  /// Returns the failure if the host is too long for SOCKS, which has one byte for the length of a name (RFC 1928
  /// §5). With a longer name libcurl before 8.4 writes beyond its buffer (CVE-2023-38545).
  private static func longHostFailure(_ host: String, _ server: ProxyServer) -> TransportFailure? {
    switch server.kind {
    case .http, .https: return nil
    case .socks4, .socks4a, .socks5, .socks5h:
      guard host.utf8.count > 255 else { return nil }
      return TransportFailure(
        .badURL, "The host has \(host.utf8.count) bytes; a SOCKS proxy takes names of at most 255 bytes.")
    }
  }

  private func apply(_ server: ProxyServer?) -> TransportFailure? {
    guard server != applied.proxy else { return nil }
    if let fault = server?.credentialFault {
      return TransportFailure(
        .proxyAuthenticationRequired, "\(fault) Correct TransportOptions.proxy or the proxy variable.")
    }
    if let proxy = applied.proxy, proxy.username != nil || proxy.password != nil {
      easy.history.insert(.otherProxy)
    }
    applied.proxy = server
    // The form of the request target changes.
    applied.url = nil
    guard let server else {
      for option in [CURLOPT_PROXY, CURLOPT_PROXYUSERNAME, CURLOPT_PROXYPASSWORD] { easy.set(option, nil) }
      setNoProxy()
      return nil
    }
    let hasName = server.username != nil || server.password != nil
    let negotiated = server.username?.isEmpty == true ? ccurl_auth_any : ccurl_auth_with_name
    let schemes = server.authentication == .basic ? ccurl_auth_basic : negotiated
    let codes = [
      easy.set(CURLOPT_NOPROXY, ""), easy.set(CURLOPT_PROXY, server.description),
      easy.set(CURLOPT_PROXYUSERNAME, hasName ? Self.literal(server.username) : nil),
      easy.set(CURLOPT_PROXYPASSWORD, hasName ? Self.literal(server.password) : nil),
      easy.set(CURLOPT_PROXYAUTH, Int(bitPattern: schemes)),
      // GSSAPI is not used, because it would send the Kerberos ticket of this machine's user.
      easy.set(CURLOPT_SOCKS5_AUTH, Int(bitPattern: ccurl_auth_basic)),
    ]
    if let code = codes.first(where: { $0 != CURLE_OK }) {
      _ = apply(nil)
      return CurlFailure.unsupported("A proxy of the kind \(server.kind.rawValue)", code)
    }
    guard server.kind == .https else { return nil }
    // ``Handshake`` verifies the proxy, too.
    easy.set(CURLOPT_PROXY_SSL_VERIFYHOST, 0)
    easy.set(CURLOPT_PROXY_CAINFO, nil)
    easy.set(CURLOPT_PROXY_SSLVERSION, ccurl_tls_1_2)
    return nil
  }

  /// Returns a name or password in libcurl's form: before 8.8.0, libcurl decodes percent signs in them.
  private static func literal(_ text: String?) -> String {
    guard let text, CurlLibrary.shared.decodesProxyCredentials else { return text ?? "" }
    return text.replacing("%", with: "%25")
  }

  /// Whether the next handshake on the new connection is with the proxy.
  var securesProxy: Bool {
    connection.nextHandshakeIsOfProxy(applied.proxy?.kind)
  }

  /// Whether a 407 may be answered by libcurl.
  var negotiatesWithProxy: Bool {
    applied.proxy?.authentication == .negotiated && applied.proxy?.username != nil
  }
}

extension CurlFailure {
  /// Returns the meaning of libcurl's code for a request with a proxy; `nil` if the failure does not concern the proxy.
  ///
  /// - Parameters:
  ///   - status:      The status of the response to `CONNECT`; 0 if there is none.
  ///   - reply:       The reply of a SOCKS proxy (`CURLPX_…`).
  ///   - isConnected: Whether the request could be sent.
  ///   - securesServer: Whether the handshake with the server has begun.
  static func proxyMeaning(
    _ code: CURLcode, _ proxy: ProxyServer, status: Int, reply: Int, isConnected: Bool,
    securesServer: Bool, securesProxy: Bool
  ) -> (TransportFailure.Kind, String)? {
    // Some proxies send 401. Only the proxy can have answered `CONNECT`.
    if status == 407 || status == 401, code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT {
      return (.proxyAuthenticationRequired, rejected(proxy))
    }
    if status >= 300, code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT {
      return (
        .cannotConnectToHost, "The proxy \(proxy) refused a tunnel to {host} with the status \(status)."
      )
    }
    switch code {
    case CURLE_COULDNT_RESOLVE_PROXY:
      return (
        .cannotFindProxy, "The name of the proxy \(proxy) could not be found; check TransportOptions.proxy."
      )
    case CURLE_PROXY: return socksMeaning(reply, proxy)
    case CURLE_COULDNT_CONNECT:
      return (
        .cannotConnectToProxy,
        "The proxy \(proxy) does not accept the connection; check that it runs on that port."
      )
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
      guard securesProxy else { return nil }
      return (.cannotConnectToProxy, "The TLS handshake with the proxy \(proxy) failed.")
    case CURLE_OPERATION_TIMEDOUT:
      // Behind a tunnel, the server is slow.
      guard !securesServer else { return nil }
      return (
        .timedOut,
        "The connection to {host} through the proxy \(proxy) timed out; check that the proxy runs on that port, or raise the connect timeout."
      )
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
      guard !isConnected else { return nil }
      return (
        .cannotConnectToProxy,
        "The proxy \(proxy) closed the connection to {host} before the request was sent."
      )
    default: return nil
    }
  }

  private static func rejected(_ proxy: ProxyServer) -> String {
    proxy.username == nil
      ? "The proxy \(proxy) requires a name and a password; set them in TransportOptions.proxy."
      : "The proxy \(proxy) does not accept the name and the password."
  }

  private static func socksMeaning(_ reply: Int, _ proxy: ProxyServer) -> (TransportFailure.Kind, String) {
    switch CURLproxycode(UInt32(clamping: reply)) {
    case CURLPX_USER_REJECTED, CURLPX_NO_AUTH, CURLPX_RECV_AUTH, CURLPX_SEND_AUTH, CURLPX_LONG_USER,
      CURLPX_LONG_PASSWD:
      (.proxyAuthenticationRequired, rejected(proxy))
    case CURLPX_RESOLVE_HOST, CURLPX_LONG_HOSTNAME:
      (.cannotFindHost, "The name {host} could not be found for the proxy \(proxy).")
    case CURLPX_BAD_VERSION, CURLPX_UNKNOWN_MODE, CURLPX_CLOSED, CURLPX_RECV_CONNECT, CURLPX_SEND_CONNECT:
      (
        .cannotConnectToProxy,
        "The server at \(proxy) does not speak \(proxy.kind.rawValue); check kind and port."
      )
    default: (.cannotConnectToHost, "The proxy \(proxy) did not connect to {host}.")
    }
  }
}
