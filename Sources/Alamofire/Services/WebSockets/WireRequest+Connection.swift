import HTTPWire

extension WireRequest {
  /// The request for the connection only: proxies are asked for a tunnel for it (RFC 6455 §4.1).
  var forConnection: WireRequest {
    let host = origin.host.utf8.contains(UInt8(ascii: ":")) ? "[\(origin.host)]" : origin.host
    return changing { parts in
      parts.url = "http://\(host):\(origin.port)/"
      parts.method = "GET"
      parts.fields = []
      parts.body = .none
      parts.sink = nil
    }
  }
}
