/// A measured way of using a client.
package enum Row: String, CaseIterable, Codable, Sendable {
  /// A small GET whose body is handed over as bytes, awaited.
  case getData = "get-data"
  /// A small GET whose body is decoded into a value, awaited.
  case getDecodable = "get-decodable"
  /// A small GET whose bytes are handed to a closure on a queue.
  case getCallback = "get-callback"
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
