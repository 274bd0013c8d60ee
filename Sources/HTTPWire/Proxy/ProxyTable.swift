/// Which proxy serves which scheme.
package struct ProxyTable: Sendable, Hashable {
  package enum Choice: Sendable, Hashable {
    case direct
    case server(ProxyServer)
    /// The setting of a proxy is unreadable; the text names the setting. Nothing is sent, because it would bypass the
    /// proxy.
    case unreadable(String)
  }

  package var http: Choice = .direct
  package var https: Choice = .direct
  package var bypass: [String] = []
  /// Names without a dot are reached without a proxy.
  package var excludesSimpleNames = false

  package init() {}

  /// One proxy for everything.
  package init(_ server: ProxyServer) {
    http = .server(server)
    https = .server(server)
    bypass = server.bypass
  }

  /// Returns the table of the options; `nil` for the proxies of the process environment.
  ///
  /// - Parameter system: The proxies of the session's configuration, which replace those of the environment.
  package static func named(by options: TransportOptions, system: ProxyTable?) -> ProxyTable? {
    switch options.proxy {
    case .none: ProxyTable()
    case .environment: system
    case .server(let server): ProxyTable(server)
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
    http = first(["http_proxy"]) ?? all
    https = first(["https_proxy", "HTTPS_PROXY"]) ?? all
    let text = environment["no_proxy"].flatMap { $0.isEmpty ? nil : $0 } ?? environment["NO_PROXY"]
    bypass = ProxyBypass.words(text ?? "")
  }

  /// Whether nothing ever goes through a proxy.
  package var isDirect: Bool {
    guard case .direct = http, case .direct = https else { return false }
    return true
  }

  /// Returns the proxy for requests to an origin.
  package func choice(for origin: Origin) -> Choice {
    let choice = origin.scheme == "https" ? https : http
    guard choice != .direct, !ProxyBypass(bypass).covers(origin) else { return .direct }
    if excludesSimpleNames, !origin.host.contains("."), !origin.host.contains(":") { return .direct }
    return choice
  }
}
