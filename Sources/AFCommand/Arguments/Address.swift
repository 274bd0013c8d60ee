import Alamofire
import Foundation

/// The URL of an abbreviated argument.
package enum Address {
  /// Returns the whole URL for `:8080/path`, `example.com`, `localhost:3000/x` and the like.
  ///
  /// - Parameter isWebSocket: Whether `ws` and `wss` are allowed, too.
  package static func expand(_ typed: String, isWebSocket: Bool = false) throws(UsageError) -> String {
    // Foundation would escape the escapes beside a character that has no place in a URL.
    let url = URL.wireText(withScheme(typed))
    guard let components = URLComponents(string: url), let scheme = components.scheme?.lowercased() else {
      throw UsageError("'\(typed)' is not a URL; check its host and port.")
    }
    if scheme == "ws" || scheme == "wss", !isWebSocket {
      throw UsageError("'\(typed)' is for WebSocket connections; write 'af ws \(typed)'.")
    }
    guard ["http", "https", "ws", "wss"].contains(scheme) else {
      throw UsageError("'\(typed)' is for \(scheme), but only http and https are supported.")
    }
    guard let host = components.host, !host.isEmpty else {
      throw UsageError("'\(typed)' has no host.")
    }
    return url
  }

  private static func withScheme(_ typed: String) -> String {
    if hasScheme(typed) { return typed }
    if typed.hasPrefix("//") { return "https:" + typed }
    if typed == ":" || typed.hasPrefix(":/") { return "http://localhost" + typed.dropFirst() }
    if typed.first == ":", typed.dropFirst().first?.isNumber == true { return "http://localhost" + typed }
    return (isLocal(typed) ? "http://" : "https://") + typed
  }

  /// Whether a scheme stands in front. A query can have a URL in it.
  private static func hasScheme(_ typed: String) -> Bool {
    guard let end = typed.range(of: "://") else { return false }
    return !typed[..<end.lowerBound].contains { "/?#".contains($0) }
  }

  /// Whether the host is this machine, where servers under development speak without TLS.
  private static func isLocal(_ typed: String) -> Bool {
    let authority = typed.prefix { !"/?#".contains($0) }
    let hostAndPort =
      authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    if hostAndPort.hasPrefix("[::1]") { return true }
    let host = hostAndPort.prefix { $0 != ":" }.lowercased()
    return host == "localhost" || host.hasSuffix(".localhost") || host == "127.0.0.1"
  }
}
