import Foundation
package import HTTPWire

extension ProxyTable {
  /// Reads a `connectionProxyDictionary` with the keys of Apple's systems: `HTTPEnable`, `HTTPProxy`, `HTTPPort`, the
  /// corresponding keys of `HTTPS` and `SOCKS`, `ExceptionsList`, `ExcludeSimpleHostnames`, `kCFProxyUsernameKey` and
  /// `kCFProxyPasswordKey`. A proxy for HTTP or HTTPS takes precedence over SOCKS; an empty dictionary means no
  /// proxy. The scripts of `ProxyAutoConfigEnable` and `ProxyAutoDiscoveryEnable` are not evaluated: if one is enabled,
  /// a scheme without a proxy in the dictionary is unreadable, because its requests would bypass the proxy.
  package init(dictionary: [AnyHashable: Any]) {
    func number(_ key: String) -> Int? {
      (dictionary[key] as? NSNumber)?.intValue ?? (dictionary[key] as? Int)
        ?? (dictionary[key] as? String).flatMap { Int($0) }
    }
    func isOn(_ key: String) -> Bool { (dictionary[key] as? Bool) ?? (number(key) ?? 0 != 0) }
    let user = dictionary["kCFProxyUsernameKey"] as? String
    let password = dictionary["kCFProxyPasswordKey"] as? String
    func choice(_ prefix: String, _ kind: ProxyServer.Kind, port: Int) -> Choice? {
      guard isOn("\(prefix)Enable") else { return nil }
      guard let host = dictionary["\(prefix)Proxy"] as? String, !host.isEmpty else {
        return .unreadable("connectionProxyDictionary")
      }
      return .server(
        ProxyServer(
          kind, host: host, port: number("\(prefix)Port") ?? port, username: user, password: password))
    }
    let hasScript = isOn("ProxyAutoConfigEnable") || isOn("ProxyAutoDiscoveryEnable")
    let rest =
      choice("SOCKS", .socks5h, port: 1080)
      ?? (hasScript ? .unreadable("connectionProxyDictionary") : .direct)
    func entry(_ choice: Choice?) -> ProxyEntry {
      ProxyEntry(
        choice ?? rest, bypass: dictionary["ExceptionsList"] as? [String] ?? [],
        excludesSimpleNames: isOn("ExcludeSimpleHostnames"))
    }
    // The connection to the proxy for https is plain HTTP; TLS is tunnelled.
    self.init(
      http: entry(choice("HTTP", .http, port: 80)), https: entry(choice("HTTPS", .http, port: 443)))
  }
}
