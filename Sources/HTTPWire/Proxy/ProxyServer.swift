/// One proxy, and how to come in.
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
    /// SOCKS4: IPv4 addresses alone.
    case socks4
    /// SOCKS4a: names, too.
    case socks4a
    /// SOCKS5 (RFC 1928), told addresses.
    case socks5
    /// SOCKS5 (RFC 1928), told names.
    case socks5h
  }

  /// The authentication to a proxy that speaks HTTP.
  public enum Authentication: Sendable, Hashable {
    /// At once, as Basic (RFC 7617).
    case basic
    /// When the proxy asks, by the strongest of Basic, Digest and NTLM that it offers and libcurl has. With an empty name
    /// Negotiate, too, which takes the ticket of the process (Kerberos). Costs another exchange; a body that
    /// is a stream cannot go this way over `http`.
    case negotiated
  }

  /// The protocol.
  public var kind: Kind
  /// Its name or address; an IPv6 address without brackets.
  public var host: String
  /// Where it listens.
  public var port: Int
  /// The user; `nil` sends no credentials.
  public var username: String?
  /// The password of the user.
  public var password: String?
  /// The authentication to the proxy. Default: ``Authentication/basic``. SOCKS has its own (RFC 1929).
  public var authentication: Authentication = .basic
  /// The hosts for which the proxy is not used, as in `no_proxy`. An entry is `*` for all hosts, a name for a host and all
  /// below it (a dot or `*.` before it has no effect), an address, or a range of addresses (`10.0.0.0/8`). An entry with
  /// `:port` is for that port alone. Default: none.
  public var bypass: [String]
  /// The trusted certificates for a proxy over TLS. Default: the system's certificates, whatever the trust store for
  /// servers is.
  public var trustStore: TransportOptions.TrustStore = .system

  /// Makes one; see the properties.
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
  /// Basic ends the name at its first colon (RFC 7617 §2); a NUL ends both for libcurl.
  package var credentialFault: String? {
    for (part, text) in [("name", username), ("password", password)] {
      if text?.utf8.contains(0) == true { return "The \(part) for the proxy \(self) contains a NUL." }
    }
    switch kind {
    case .http, .https:
      guard username?.utf8.contains(UInt8(ascii: ":")) == true else { return nil }
      return "The name for the proxy \(self) contains a colon, which HTTP does not allow (RFC 7617 §2)."
    case .socks4, .socks4a, .socks5, .socks5h: return nil
    }
  }

  /// Reads what stands in a variable: `[scheme://][user:password@]host[:port]`; a text without a scheme is one of
  /// HTTP. `nil` for anything else.
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
