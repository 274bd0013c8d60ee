package import FoundationEssentials

/// What a server shows of itself in a TLS handshake, and to whom.
package struct PresentedChain: Sendable, Hashable {
  /// The host that was to be reached, as in the URL, without the brackets of an IPv6 address.
  package let host: String
  package let port: Int
  /// DER, the server's own certificate first, the others in the order in which they came.
  package let certificates: [Data]
  /// The OCSP response that the server stapled to it (RFC 6066 §8), if it did and somebody wants it.
  package let stapledResponse: Data?

  package init(host: String, port: Int, certificates: [Data], stapledResponse: Data? = nil) {
    self.host = host
    self.port = port
    self.certificates = certificates
    self.stapledResponse = stapledResponse
  }
}
