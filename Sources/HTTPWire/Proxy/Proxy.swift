/// The proxy of requests.
///
/// ```swift
/// var options = TransportOptions()
/// options.proxy = .http("proxy.example.com", port: 3128, username: "ann", password: secret)
/// options.proxy = .socks5h("127.0.0.1", port: 9050)
/// options.proxy = .none
/// let session = Session(transportOptions: options)
/// ```
///
/// Neither the name nor the password of a proxy is in any description or error.
public enum Proxy: Sendable, Hashable {
  /// No proxy, regardless of the environment.
  case none
  /// The proxies in `connectionProxyDictionary` of the session's configuration. Without it, the proxies in the
  /// variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` at their first use. All but the first may be
  /// in capitals. `HTTP_PROXY` is ignored, because in a CGI program a client could set it.
  case environment
  /// One proxy for every scheme.
  case server(ProxyServer)
  /// One proxy for `http` and `ws` requests, and one for `https` and `wss`. The scheme of each hop counts, so a
  /// redirect to another scheme uses the proxy of that scheme.
  ///
  /// ```swift
  /// options.proxy = .perScheme(http: .environment, https: .socks5h("127.0.0.1", port: 9050))
  /// ```
  ///
  /// - Parameters:
  ///   - http:  The proxy for requests without TLS.
  ///   - https: The proxy for requests over TLS.
  indirect case perScheme(http: Proxy, https: Proxy)

  /// Makes an HTTP proxy (RFC 9110 §3.7). The proxy receives `http` requests; `https` requests use a tunnel
  /// (`CONNECT`, RFC 9110 §9.3.6).
  ///
  /// - Parameters:
  ///   - host:     Its name or address; an IPv6 address without brackets.
  ///   - port:     1080 by default.
  ///   - username: The user for the proxy. Default: `nil`, no credentials.
  ///   - password: The password of the user.
  ///   - bypass:   The hosts for which the proxy is not used; see ``ProxyServer/bypass``.
  public static func http(
    _ host: String, port: Int = 1080, username: String? = nil, password: String? = nil, bypass: [String] = []
  ) -> Proxy {
    .server(
      ProxyServer(.http, host: host, port: port, username: username, password: password, bypass: bypass))
  }

  /// Makes an HTTP proxy over TLS, so that requests and the password are encrypted on the way to it. The proxy's
  /// certificate must be valid for `host`; by default `port` is 443.
  public static func https(
    _ host: String, port: Int = 443, username: String? = nil, password: String? = nil, bypass: [String] = []
  ) -> Proxy {
    .server(
      ProxyServer(.https, host: host, port: port, username: username, password: password, bypass: bypass))
  }

  /// Makes a SOCKS5 proxy (RFC 1928) that receives addresses; names are looked up by this machine.
  public static func socks5(
    _ host: String, port: Int = 1080, username: String? = nil, password: String? = nil, bypass: [String] = []
  ) -> Proxy {
    .server(
      ProxyServer(.socks5, host: host, port: port, username: username, password: password, bypass: bypass))
  }

  /// Makes a SOCKS5 proxy (RFC 1928) that looks up names itself.
  public static func socks5h(
    _ host: String, port: Int = 1080, username: String? = nil, password: String? = nil, bypass: [String] = []
  ) -> Proxy {
    .server(
      ProxyServer(.socks5h, host: host, port: port, username: username, password: password, bypass: bypass))
  }

  /// Makes a SOCKS4 proxy, which supports only IPv4; names are looked up by this machine.
  public static func socks4(_ host: String, port: Int = 1080, bypass: [String] = []) -> Proxy {
    .server(ProxyServer(.socks4, host: host, port: port, bypass: bypass))
  }

  /// Makes a SOCKS4a proxy, which looks up names itself.
  public static func socks4a(_ host: String, port: Int = 1080, bypass: [String] = []) -> Proxy {
    .server(ProxyServer(.socks4a, host: host, port: port, bypass: bypass))
  }
}
