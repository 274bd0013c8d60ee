package import FoundationEssentials

/// A request as it goes over the wire, complete: nothing is added to its fields but what the framing
/// needs (`Host`, `Content-Length`, `Transfer-Encoding`, `Connection`).
package struct WireRequest: Sendable {
  /// The absolute URL, ASCII only, without a fragment.
  package var url: String
  package var origin: Origin
  package var method: String
  /// The header fields in the order in which they are sent.
  package var fields: [HTTPHeader]
  package var body: RequestBody
  /// The longest silence, in either direction, that is endured; `nil` is without end.
  package var idleTimeout: Duration?
  /// When the request must be over, whatever moves; `nil` is never.
  package var deadline: ContinuousClock.Instant?
  /// From 0 (last) to 1 (first); orders requests that wait for the same host.
  package var priority: Float
  /// What decides which connection may carry the request.
  package var profile: ConnectionProfile

  package init(
    url: String, origin: Origin, method: String = "GET", fields: [HTTPHeader] = [],
    body: RequestBody = .none, idleTimeout: Duration? = .seconds(60),
    deadline: ContinuousClock.Instant? = nil, priority: Float = 0.5,
    profile: ConnectionProfile
  ) {
    self.url = url
    self.origin = origin
    self.method = method
    self.fields = fields
    self.body = body
    self.idleTimeout = idleTimeout
    self.deadline = deadline
    self.priority = priority
    self.profile = profile
  }
}

/// The content of a request.
package enum RequestBody: Sendable {
  case none
  case bytes(Data)
}

/// Scheme, host and port (RFC 6454 §4): two URLs of one origin may see each other's secrets.
package struct Origin: Hashable, Sendable {
  /// Lower case.
  package let scheme: String
  /// Lower case, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int

  package init(scheme: String, host: String, port: Int?) {
    self.scheme = scheme.lowercased()
    self.host = host.lowercased()
    self.port = port ?? (self.scheme == "https" ? 443 : 80)
  }
}
