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
  /// in capitals. `HTTP_PROXY` is ignored, because in a CGI program a client could set it. With
  /// ``TransportOptions/unixSocket``, the variables are not used.
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

/// A proxy and the credentials for it.
///
/// ```swift
/// var server = ProxyServer(
///   .http, host: "proxy.example.com", port: 3128, username: "ann", password: secret)
/// server.authentication = .negotiated
/// server.bypass = ["localhost", ".internal.example.com", "10.0.0.0/8"]
/// options.proxy = .server(server)
/// ```
public struct ProxyServer: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The protocol of a proxy. The raw value is the scheme of its URL.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// HTTP.
    case http
    /// HTTP over TLS.
    case https
    /// SOCKS4: only IPv4 addresses.
    case socks4
    /// SOCKS4a: also host names.
    case socks4a
    /// SOCKS5 (RFC 1928) with addresses.
    case socks5
    /// SOCKS5 (RFC 1928) with host names.
    case socks5h
  }

  /// The authentication to an HTTP proxy.
  public enum Authentication: Sendable, Hashable {
    /// Preemptively, as Basic (RFC 7617).
    case basic
    /// Credentials after a challenge, by the strongest of Basic, Digest and NTLM that the proxy offers.
    /// With an empty user name, Negotiate with the Kerberos ticket of the process is possible, too, where the
    /// system's GSSAPI is installed (`libgssapi-krb5-2`). A body that can be read only once cannot be sent again after
    /// the challenge of an `http` request; that request ends with the response 407.
    case negotiated
  }

  /// The protocol.
  public var kind: Kind
  /// The name or address of the proxy; an IPv6 address without brackets.
  public var host: String
  /// The port of the proxy.
  public var port: Int
  /// The user name; with `nil`, no credentials are sent.
  public var username: String?
  /// The password of the user.
  public var password: String?
  /// The authentication to the proxy. Default: ``Authentication/basic``. SOCKS has its own (RFC 1929).
  public var authentication: Authentication = .basic
  /// The hosts for which the proxy is not used, as in `no_proxy`. An entry is `*` for all hosts, a name for a host
  /// and its subdomains, an address, or a range of addresses (`10.0.0.0/8`). A leading dot or `*.` of a name has no
  /// effect. An entry with `:port` applies to that port only. In a URL, an address also counts in another spelling
  /// (`http://10.1/`). Default: none.
  public var bypass: [String]
  /// The trust store for a proxy over TLS. Default: the system's, regardless of the trust store for servers.
  public var trustStore: TransportOptions.TrustStore = .system

  /// Makes a proxy; see the properties.
  public init(
    _ kind: Kind, host: String, port: Int, username: String? = nil, password: String? = nil,
    bypass: [String] = []
  ) {
    self.kind = kind
    self.host = host
    self.port = port
    self.username = username
    self.password = password
    self.bypass = bypass
  }

  /// Whether both are the same proxy with the same credentials. Texts are compared by their bytes, as servers do.
  public static func == (left: ProxyServer, right: ProxyServer) -> Bool {
    left.kind == right.kind && left.port == right.port && left.authentication == right.authentication
      && left.trustStore == right.trustStore
      && left.texts.elementsEqual(right.texts) { $0.map { ByteText($0) } == $1.map { ByteText($0) } }
  }

  private var texts: [String?] { [host, username, password] + bypass }

  /// Kind, host and port; never the credentials.
  public var description: String { "\(kind.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }
  /// The ``description``.
  public var debugDescription: String { description }
  /// Without the credentials.
  public var customMirror: Mirror {
    Mirror(self, children: ["kind": kind, "host": host, "port": port, "bypass": bypass])
  }
}

extension ProxyServer {
  /// One sentence about a name or a password that cannot be sent as it is, without either of them; `nil` when both can.
  /// Basic ends the name at its first colon (RFC 7617 §2); a NUL would end both in SOCKS4.
  package var credentialFault: String? {
    let isHTTP = kind == .http || kind == .https
    for (part, text) in [("name", username), ("password", password)] {
      if text?.utf8.contains(0) == true { return "The \(part) for the proxy \(self) contains a NUL." }
      guard isHTTP, text?.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) == true else { continue }
      return
        "The \(part) for the proxy \(self) contains a line break or another control character (RFC 7617 §2)."
    }
    guard isHTTP, username?.utf8.contains(UInt8(ascii: ":")) == true else { return nil }
    return "The name for the proxy \(self) contains a colon, which HTTP does not allow (RFC 7617 §2)."
  }

  /// Reads the value of an environment variable: `[scheme://][user:password@]host[:port]`; without a scheme it is an
  /// HTTP proxy. `nil` for any other text.
  package init?(_ text: String, bypass: [String]) {
    var kind = Kind.http
    var rest = text[...]
    if let mark = text.firstRange(of: "://") {
      guard let named = Self.kinds[text[..<mark.lowerBound].lowercased()] else { return nil }
      kind = named
      rest = text[mark.upperBound...]
    }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
    guard let authority = Authority(String(rest[..<end])) else { return nil }
    let parts = authority.userInfo?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    self.init(
      kind, host: authority.host, port: authority.port ?? (kind == .https ? 443 : 1080),
      username: parts.map { PercentDecoding.text($0[0]) },
      password: parts.map { $0.count > 1 ? PercentDecoding.text($0[1]) : "" }, bypass: bypass)
  }

  private static let kinds: [String: Kind] = [
    "http": .http, "https": .https, "socks4": .socks4, "socks4a": .socks4a, "socks": .socks4,
    "socks5": .socks5,
    "socks5h": .socks5h,
  ]
}
