package import FoundationEssentials

/// The metrics of one transfer. Times are microseconds since ``start``; −1 means that the phase did not happen (a
/// reused connection has no look-up, no connection and no handshake).
package final class TransferMetrics: Sendable {
  /// Plain numbers, filled in one go where the transfer ends.
  package struct Values: Sendable {
    /// The time at which the transport began: seconds since 1970.
    package var start: Double = 0
    /// The time at which the transfer left its queue.
    package var queueEnd: Int64 = 0
    package var lookupEnd: Int64 = -1
    package var connectEnd: Int64 = -1
    package var secureEnd: Int64 = -1
    package var requestStart: Int64 = -1
    package var requestEnd: Int64 = -1
    package var responseStart: Int64 = -1
    package var end: Int64 = -1
    package var requestHeaderBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    /// The body as it came over the wire, before decoding.
    package var responseBodyBytes: Int64 = 0
    package var decodedBodyBytes: Int64 = 0
    package var isReusedConnection = false
    package var isProxyConnection = false
    package var localPort: Int32 = 0
    package var remotePort: Int32 = 0

    package init() {}
  }

  package let values: Values
  package let version: HTTPVersion
  /// The facts that the transfers of one connection share.
  package let connection: ConnectionDetails
  /// The head of the request as it was sent, if its bytes were observed.
  package let requestHead: String?

  package init(
    values: Values = Values(), version: HTTPVersion = .http1_1, connection: ConnectionDetails = .unknown,
    requestHead: String? = nil
  ) {
    self.values = values
    self.version = version
    self.connection = connection
    self.requestHead = requestHead
  }

  package var localAddress: String { connection.localAddress }
  package var remoteAddress: String { connection.remoteAddress }
  package var tlsVersion: String? { connection.tlsVersion }
  package var tlsCipher: UInt16? { connection.tlsCipher }
}

/// The facts about one connection, which all of its transfers share.
package final class ConnectionDetails: Sendable {
  /// The facts about a connection of which nothing is known, or about none.
  package static let unknown = ConnectionDetails()

  package let localAddress: String
  package let remoteAddress: String
  /// The version of TLS as OpenSSL names it (`TLSv1.3`), or `nil` without TLS.
  package let tlsVersion: String?
  /// The number of the cipher suite in a handshake (0x1302), or `nil` without TLS.
  package let tlsCipher: UInt16?

  package init(
    localAddress: String = "", remoteAddress: String = "", tlsVersion: String? = nil,
    tlsCipher: UInt16? = nil
  ) {
    self.localAddress = localAddress
    self.remoteAddress = remoteAddress
    self.tlsVersion = tlsVersion
    self.tlsCipher = tlsCipher
  }
}

/// The response of one hop.
package struct WireResponse: Sendable {
  package let head: ResponseHead
  /// The decoded body; `nil` when there was none or it was empty.
  package let body: Data?
  /// The trailer fields (RFC 9110 §6.5); `nil` without any.
  package let trailers: FieldBlock?
  package let metrics: TransferMetrics

  package init(head: ResponseHead, body: Data?, trailers: FieldBlock? = nil, metrics: TransferMetrics) {
    self.head = head
    self.body = body
    self.trailers = trailers
    self.metrics = metrics
  }
}
