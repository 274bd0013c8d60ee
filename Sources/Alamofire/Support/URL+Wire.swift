import Foundation
import HTTPWire

// Bug in Foundation: if a component has a character that RFC 3986 does not allow there, `URL(string:)` escapes the
// whole component, including its escapes: `?a[]=1&b=%20` becomes `?a%5B%5D=1&b=%2520`.
extension URL {
  /// Makes the URL of a text that a server has named or that was sent. Its escapes are preserved.
  ///
  /// Every URL of such a text is created here. The caller's text is parsed as Foundation does.
  init?(wire text: String) {
    self.init(string: Self.wireText(text))
  }

  /// Returns the text of a URL in which each invalid character of path, query and fragment is escaped, once.
  package static func wireText(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { PercentEncoding.query.allows($0) || $0 == UInt8(ascii: "#") }
    return isPlain ? text : URIReference(text).strictText
  }
}

/// The schemes of WebSocket URLs (RFC 6455 §3) and of their handshakes.
enum WebSocketURL {
  /// Returns the URL of the handshake: `ws:` becomes `http:`, `wss:` becomes `https:`. Any other URL is unchanged.
  static func http(_ text: String) -> String {
    switch text.prefix(while: { $0 != ":" }).lowercased() {
    case "ws": "http" + text.dropFirst(2)
    case "wss": "https" + text.dropFirst(3)
    default: text
    }
  }

  /// Returns the WebSocket URL of a handshake with an `http:` or `https:` URL.
  static func webSocket(_ text: String) -> String {
    text.hasPrefix("http") ? "ws" + text.dropFirst(4) : text
  }
}
