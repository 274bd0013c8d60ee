package import FoundationEssentials

extension WireRequest {
  /// The names of the fields that belong to the handshake, or to a body that it does not have.
  private static let ownedFields = [
    "host", "connection", "upgrade", "keep-alive", "sec-websocket-key", "sec-websocket-version",
    "sec-websocket-extensions", "sec-websocket-protocol", "sec-websocket-accept", "accept-encoding", "te",
    "content-length", "transfer-encoding", "expect",
  ]

  /// The subprotocols that the fields of the request name, in their order.
  package var namedSubprotocols: [String] {
    fields.filter { FieldName.equal($0.name, "Sec-WebSocket-Protocol") }
      .flatMap { WebSocketClientHandshake.subprotocols(in: $0.value) }
  }

  /// Returns the bytes of the request that opens a WebSocket connection (RFC 6455 §4.1). The request line and the
  /// fields were validated before; see `HeaderFieldRules`.
  ///
  /// Fields of the caller that belong to the handshake are left out, except for `Host`.
  package func upgradeHead(_ handshake: WebSocketClientHandshake) -> Data {
    let host = fields.first { FieldName.equal($0.name, "Host") }?.value ?? Self.authority(of: origin)
    var lines = ["GET \(target) HTTP/1.1", "Host: \(host)"]
    let kept = fields.filter { !Self.ownedFields.contains($0.name.lowercased()) }
    for field in kept + handshake.fields { lines.append("\(field.name): \(field.value)") }
    return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  /// The path and the query (RFC 9112 §3.2.1).
  private var target: String {
    let text = url.utf8.prefix { $0 != UInt8(ascii: "#") }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return "/" }
    let rest = text[colon...].dropFirst(3)
    let start = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    let path = String(Substring(rest[start...]))
    return path.hasPrefix("/") ? path : "/" + path
  }

  private static func authority(of origin: Origin) -> String {
    let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
    return origin.port == (origin.scheme == "https" ? 443 : 80) ? host : "\(host):\(origin.port)"
  }
}

extension WebSocketClientHandshake {
  /// Returns the names in a list of subprotocols.
  package static func subprotocols(in list: String) -> [String] {
    list.split(separator: ",").map { name in
      let isSpace = { (character: Character) in character == " " || character == "\t" }
      var name = name.drop(while: isSpace)
      while let last = name.last, isSpace(last) { name = name.dropLast() }
      return String(name)
    }.filter { !$0.isEmpty }
  }
}
