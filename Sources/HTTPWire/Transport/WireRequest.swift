package import FoundationEssentials

/// A request as it goes over the wire, complete: nothing is added to its fields but what the framing
/// needs (`Host`, `Content-Length`, `Transfer-Encoding`, `Connection`). A class, since it is handed
/// through many hands and never changed: another hop is another request.
package final class WireRequest: Sendable {
  /// The absolute URL, ASCII only, without user and password. Its fragment is not sent; redirects inherit
  /// it (RFC 9110 §10.2.2).
  package let url: String
  package let origin: Origin
  package let method: String
  /// The header fields in the order in which they are sent.
  package let fields: [HTTPHeader]
  package let body: RequestBody
  /// Takes the body of the response; `nil` collects it in memory.
  package let sink: (any BodySink)?
  /// The longest silence, in either direction, that is endured; `nil` is without end.
  package let idleTimeout: Duration?
  /// When the request must be over, whatever moves; `nil` is never.
  package let deadline: ContinuousClock.Instant?
  /// From 0 (last) to 1 (first); orders requests that wait for the same host.
  package let priority: Float
  /// What decides which connection may carry the request.
  package let profile: ConnectionProfile
  /// What its connection is authenticated with; mostly nothing.
  package let login: ConnectionLogin?
  /// Where to connect to in place of the origin; mostly nowhere else.
  package let alternative: AlternativeService?
  /// The addresses of the host, when they were found out before.
  package let addresses: KnownAddresses?
  /// Whether nothing is sent: whoever asks wants the connection, through a tunnel where a proxy stands in between.
  package let connectsOnly: Bool

  package init(
    url: String, origin: Origin, method: String = "GET", fields: [HTTPHeader] = [],
    body: RequestBody = .none, sink: (any BodySink)? = nil, idleTimeout: Duration? = .seconds(60),
    deadline: ContinuousClock.Instant? = nil, priority: Float = 0.5,
    profile: ConnectionProfile, login: ConnectionLogin? = nil, alternative: AlternativeService? = nil,
    addresses: KnownAddresses? = nil, connectsOnly: Bool = false
  ) {
    self.connectsOnly = connectsOnly
    self.addresses = addresses
    self.login = login
    self.alternative = alternative
    self.url = url
    self.origin = origin
    self.method = method
    self.fields = fields
    self.body = body
    self.sink = sink
    self.idleTimeout = idleTimeout
    self.deadline = deadline
    self.priority = priority
    self.profile = profile
  }

  /// Whether the request offers to switch to another protocol (RFC 9110 §7.8).
  package var asksForUpgrade: Bool { fields.contains { FieldName.equal($0.name, "Upgrade") } }

  /// The same request with other parts, for another hop. Another target is reached without the login.
  package func with(
    url: String? = nil, origin: Origin? = nil, method: String? = nil, fields: [HTTPHeader]? = nil,
    body: RequestBody? = nil, profile: ConnectionProfile? = nil
  ) -> WireRequest {
    WireRequest(
      url: url ?? self.url, origin: origin ?? self.origin, method: method ?? self.method,
      fields: fields ?? self.fields, body: body ?? self.body, sink: sink, idleTimeout: idleTimeout,
      deadline: deadline, priority: priority, profile: profile ?? self.profile,
      login: url == nil ? login : nil)
  }

  /// The same request by way of another place, which is told that it is one (RFC 7838 §5).
  package func led(to service: AlternativeService) -> WireRequest {
    WireRequest(
      url: url, origin: origin, method: method,
      fields: fields + [HTTPHeader(name: "Alt-Used", value: service.text)], body: body, sink: sink,
      idleTimeout: idleTimeout, deadline: deadline, priority: priority, profile: profile, login: login,
      alternative: service)
  }

  /// The same request, whose host is at these addresses.
  package func with(_ addresses: KnownAddresses) -> WireRequest {
    WireRequest(
      url: url, origin: origin, method: method, fields: fields, body: body, sink: sink,
      idleTimeout: idleTimeout,
      deadline: deadline, priority: priority, profile: profile, login: login, alternative: alternative,
      addresses: addresses, connectsOnly: connectsOnly)
  }

  /// The same request, which must be over by then.
  package func ending(by deadline: ContinuousClock.Instant?) -> WireRequest {
    WireRequest(
      url: url, origin: origin, method: method, fields: fields, body: body, sink: sink,
      idleTimeout: idleTimeout, deadline: deadline, priority: priority, profile: profile, login: login,
      alternative: alternative, addresses: addresses, connectsOnly: connectsOnly)
  }

  /// The same request with other fields, whose response is collected in memory.
  package func collecting(fields: [HTTPHeader]) -> WireRequest {
    WireRequest(
      url: url, origin: origin, method: method, fields: fields, body: body, idleTimeout: idleTimeout,
      deadline: deadline, priority: priority, profile: profile, login: login)
  }

  /// The same request with other fields, and with or without a login.
  package func with(fields: [HTTPHeader], login: ConnectionLogin?) -> WireRequest {
    WireRequest(
      url: url, origin: origin, method: method, fields: fields, body: body, sink: sink,
      idleTimeout: idleTimeout, deadline: deadline, priority: priority, profile: profile, login: login)
  }
}

/// The content of a request.
package enum RequestBody: Sendable {
  case none
  case bytes(Data)
  case source(any BodySource)

  /// The most bytes that go over HTTP/2 where early answers make libcurl spin.
  package static var largestMultiplexed: Int64 { 65_536 }
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

  /// For parts that are in lower case already.
  init(plainScheme scheme: String, host: String, port: Int) {
    self.scheme = scheme
    self.host = host
    self.port = port
  }
}
