/// The proxies of both schemes.
package struct ProxyTable: Sendable, Hashable {
  package enum Choice: Sendable, Hashable {
    case direct
    case server(ProxyServer)
    /// The proxy that the environment of the process names. The engine has read it.
    case environment
    /// The setting of a proxy is unreadable; the text names the setting. Nothing is sent, because it would bypass the
    /// proxy.
    case unreadable(String)
  }

  /// The proxy of one scheme.
  package struct Entry: Sendable, Hashable {
    package var choice: Choice
    /// The hosts for which the proxy is not used.
    package var bypass: [String]
    /// Names without a dot are reached without a proxy.
    package var excludesSimpleNames: Bool

    package init(_ choice: Choice = .direct, bypass: [String] = [], excludesSimpleNames: Bool = false) {
      self.choice = choice
      self.bypass = bypass
      self.excludesSimpleNames = excludesSimpleNames
    }
  }

  package var http: Entry
  package var https: Entry

  package init(http: Entry = Entry(), https: Entry = Entry()) {
    self.http = http
    self.https = https
  }

  /// Makes a table with one proxy for everything.
  package init(_ server: ProxyServer) {
    http = Entry(.server(server), bypass: server.bypass)
    https = http
  }

  /// Returns the table of the options; `nil` for the proxies of the process environment.
  ///
  /// - Parameter system: The proxies of the session's configuration, which replace those of the environment.
  package static func named(by options: TransportOptions, system: ProxyTable?) -> ProxyTable? {
    named(by: options.proxy, system)
  }

  private static func named(by proxy: Proxy, _ system: ProxyTable?) -> ProxyTable? {
    switch proxy {
    case .none: ProxyTable()
    case .environment: system
    case .server(let server): ProxyTable(server)
    case .perScheme(let http, let https):
      ProxyTable(
        http: named(by: http, system)?.http ?? Entry(.environment),
        https: named(by: https, system)?.https ?? Entry(.environment))
    }
  }

  /// Reads the variables of an environment.
  package init(environment: [String: String]) {
    func first(_ names: [String]) -> Choice? {
      for name in names {
        guard let value = environment[name], !value.isEmpty else { continue }
        return ProxyServer(value, bypass: []).map { .server($0) } ?? .unreadable(name)
      }
      return nil
    }
    let all = first(["all_proxy", "ALL_PROXY"]) ?? .direct
    let text = environment["no_proxy"].flatMap { $0.isEmpty ? nil : $0 } ?? environment["NO_PROXY"]
    let bypass = ProxyBypass.words(text ?? "")
    http = Entry(first(["http_proxy"]) ?? all, bypass: bypass)
    https = Entry(first(["https_proxy", "HTTPS_PROXY"]) ?? all, bypass: bypass)
  }

  /// Whether nothing ever goes through a proxy.
  package var isDirect: Bool {
    http.choice == .direct && https.choice == .direct
  }

  /// Returns the proxy for requests to an origin.
  ///
  /// - Returns: ``Choice/environment`` only from a table with different settings for the schemes.
  package func choice(for origin: Origin) -> Choice {
    let entry = origin.scheme == "https" ? https : http
    guard entry.choice != .direct, !ProxyBypass(entry.bypass).covers(origin) else { return .direct }
    if entry.excludesSimpleNames, !origin.host.contains("."), !origin.host.contains(":") { return .direct }
    return entry.choice
  }
}
