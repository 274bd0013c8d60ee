/// The schemes of WebSocket URLs (RFC 6455 §3) and of their handshakes.
enum WebSocketURL {
  /// Returns the URL of the handshake: `ws:` becomes `http:`, `wss:` becomes `https:`. Another URL stays as it is.
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
