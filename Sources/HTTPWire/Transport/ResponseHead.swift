package import FoundationEssentials

/// The status line and the header fields of a response (RFC 9112 §4), kept as they came and parsed
/// on demand.
package struct ResponseHead: Sendable {
  /// The role of a response for its request.
  package enum Role: Sendable, Equatable {
    /// A response of HTTP, which may lead elsewhere or ask for credentials.
    case hop
    /// The final response, whatever its status, because its transport follows redirects in another way.
    case answer
    /// No response of HTTP, such as the content of a file. The status is 200 and means nothing.
    case other
  }

  package let status: Int
  package let version: HTTPVersion
  package let block: FieldBlock
  package var role = Role.hop

  package init(status: Int, version: HTTPVersion, block: FieldBlock) {
    self.status = status
    self.version = version
    self.block = block
  }

  /// For fakes and tests: a head of parsed fields.
  package init(status: Int, version: HTTPVersion = .http1_1, fields: [HTTPHeader] = []) {
    self.init(status: status, version: version, block: FieldBlock(fields))
  }
}

/// A version of HTTP as a response told it.
package enum HTTPVersion: UInt8, Sendable {
  case http1_0, http1_1, http2, http3

  /// The version as in a status line: `HTTP/1.1`, `HTTP/2`.
  package var text: String {
    switch self {
    case .http1_0: "HTTP/1.0"
    case .http1_1: "HTTP/1.1"
    case .http2: "HTTP/2"
    case .http3: "HTTP/3"
    }
  }

  /// Its ALPN identifier (RFC 7301), which is how metrics name it.
  package var alpn: String {
    switch self {
    case .http1_0: "http/1.0"
    case .http1_1: "http/1.1"
    case .http2: "h2"
    case .http3: "h3"
    }
  }
}

/// The response of one hop.
package struct WireResponse: Sendable {
  package let head: ResponseHead
  /// The decoded body; `nil` when there was none or it was empty.
  package let body: Data?
  package let metrics: TransferMetrics

  package init(head: ResponseHead, body: Data?, metrics: TransferMetrics) {
    self.head = head
    self.body = body
    self.metrics = metrics
  }
}
