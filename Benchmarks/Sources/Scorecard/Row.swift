/// A measured way of using a client.
package enum Row: String, CaseIterable, Codable, Sendable {
  /// A small GET that delivers its body as bytes, awaited.
  case getData = "get-data"
  /// A small GET that decodes its body into a value, awaited.
  case getDecodable = "get-decodable"
  /// A small GET that passes its bytes to a closure on a queue.
  case getCallback = "get-callback"

  /// A small GET to which an adapter adds a token.
  case adapted = "use-adapter"
  /// A small GET that is validated, with a policy for retries.
  case validated = "use-validation"
  /// A value that is sent as JSON.
  case posted = "use-json"
  /// A small GET that sends a cookie and receives it again.
  case withCookies = "use-cookies"
  /// A small GET that follows one redirect.
  case redirected = "use-redirect"
  /// A small GET with a body that is compressed with gzip.
  case compressed = "use-gzip"
  /// A small GET with a login by Digest.
  case authenticated = "use-digest"

  /// A small GET over a new connection, with a full handshake of TLS.
  case handshake = "handshake"
  /// A small GET over a new connection that resumes a session of TLS.
  case resumption = "handshake-resumed"

  /// The ways of handing over a response, which are compared with the floor.
  package static let plain: [Row] = [.getData, .getDecodable, .getCallback]

  /// Requests as programs make them every day. These are compared with ``getData`` of this package.
  package static let everyday: [Row] = [
    .adapted, .validated, .posted, .withCookies, .redirected, .compressed, .authenticated,
  ]

  /// The ways of opening a connection, which are compared with the floor.
  package static let handshakes: [Row] = [.handshake, .resumption]

  /// The path of the request at the server of the benchmarks.
  package var path: String {
    switch self {
    case .getData, .getDecodable, .getCallback, .adapted, .validated, .posted: "/item"
    case .withCookies: "/cookies"
    case .redirected: "/redirect"
    case .compressed: "/compressed"
    case .authenticated: "/digest"
    case .handshake: "/closed"
    case .resumption: "/closed"
    }
  }

  /// Whether each request needs a new connection.
  package var isHandshake: Bool { Self.handshakes.contains(self) }
}

/// A measured client.
package enum Client: String, CaseIterable, Codable, Sendable {
  /// Bare libcurl in C.
  case floor
  /// Foundation's `URLSession` with its default configuration.
  case urlsession
  /// The engine of this package.
  case alamofire
}

/// The protocol between the client and the server.
package enum WireProtocol: String, CaseIterable, Codable, Sendable {
  /// HTTP/1.1 in clear text.
  case http1
  /// HTTP/1.1 over TLS.
  case https1
  /// HTTP/2 over TLS.
  case h2
}
