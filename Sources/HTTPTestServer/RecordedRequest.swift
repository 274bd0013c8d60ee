public import HTTPWire

/// One request as the server read it off the wire.
///
/// ```swift
/// let request = try await server.takeRequest()
/// #expect(request.method == "POST")
/// #expect(request.header("Content-Type") == "application/json")
/// ```
public struct RecordedRequest: Sendable {
  /// The method as received; methods are case-sensitive (RFC 9110 §9.1).
  public let method: String
  /// The target of the request line as received, with its query (RFC 9112 §3.2).
  public let target: String
  /// The path of the target as it was sent, percent-escapes included, without the query.
  public let path: String
  /// The pairs of the query in their order, names and values decoded, `+` read as a space.
  public let query: [(name: String, value: String)]
  /// `HTTP/1.1` or `HTTP/1.0`.
  public let version: String
  /// The header fields in the order and the spelling in which they came, with repeated ones separate.
  public let headers: [HTTPHeader]
  /// The body without its chunked coding; empty where the reply or route does not keep it.
  public let body: [UInt8]
  /// The length of the body in bytes, whether the bytes are recorded or not.
  public let bodyLength: Int
  /// Whether the body came to its end; `false` when the client broke it off or the reply did not
  /// wait for it.
  public let isBodyComplete: Bool
  /// Whether the body came in the chunked coding (RFC 9112 §7.1).
  public let isChunked: Bool
  /// The fields that came after a chunked body (RFC 9110 §6.5).
  public let trailers: [HTTPHeader]
  /// The number of the connection, counted from 0 in the order in which the server accepted them.
  public let connection: Int
  /// The number of the request on its connection, counted from 0.
  public let indexOnConnection: Int
  /// The result of the TLS handshake; `nil` on a plain connection.
  public let tls: TLSDetails?

  /// The parameters negotiated in a TLS handshake.
  public struct TLSDetails: Sendable, Equatable {
    /// The version as OpenSSL names it, such as `TLSv1.3`.
    public let version: String
    /// The cipher as OpenSSL names it, such as `TLS_AES_256_GCM_SHA384`.
    public let cipher: String
    /// The requested host name (SNI, RFC 6066 §3), or `nil`.
    public let serverName: String?
    /// The protocol that was chosen by ALPN (RFC 7301), or `nil`.
    public let applicationProtocol: String?
    /// Whether the handshake resumed an earlier session.
    public let isResumed: Bool
    /// The certificate of the client as PEM, or `nil` when it showed none.
    public let clientCertificatePEM: String?
  }

  /// The version of TLS as OpenSSL names it (`TLSv1.3`), or `nil` without TLS.
  public var tlsVersion: String? { tls?.version }

  /// Returns the value of the first field of this name, compared without regard to case, or `nil`.
  public func header(_ name: String) -> String? {
    headers.first { FieldName.equal($0.name, name) }?.value
  }

  /// Returns the values of all fields of this name, in their order.
  public func headers(named name: String) -> [String] {
    headers.filter { FieldName.equal($0.name, name) }.map(\.value)
  }

  /// Returns the decoded value of the first pair of the query with this name, or `nil`.
  public func queryValue(_ name: String) -> String? {
    query.first { $0.name == name }?.value
  }

  /// The body as UTF-8; bytes that are not UTF-8 become U+FFFD.
  public var bodyText: String { String(decoding: body, as: UTF8.self) }
}

/// The connection of a request.
struct RequestOrigin: Sendable {
  var connection: Int
  var indexOnConnection: Int
  var tls: RecordedRequest.TLSDetails?
}

/// The received part of a request body.
struct ReceivedBody: Sendable {
  var bytes: [UInt8] = []
  var length = 0
  var isComplete = true
  var isChunked = false
  var trailers: [HTTPHeader] = []
}

extension RecordedRequest {
  init(head: RequestHead, body: ReceivedBody, origin: RequestOrigin) {
    let parts = RequestTarget(head.target)
    method = head.method
    target = head.target
    path = parts.path
    query = PercentCoding.pairs(parts.query)
    version = "HTTP/1.\(head.minorVersion)"
    headers = head.headers
    self.body = body.bytes
    bodyLength = body.length
    isBodyComplete = body.isComplete
    isChunked = body.isChunked
    trailers = body.trailers
    connection = origin.connection
    indexOnConnection = origin.indexOnConnection
    tls = origin.tls
  }
}
