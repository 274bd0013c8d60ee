/// The addresses of a host, found out before its request is sent.
package struct KnownAddresses: Equatable, Sendable {
  package let host: String
  package let port: Int
  package let addresses: [IPAddress]

  package init(host: String, port: Int, addresses: [IPAddress]) {
    self.host = host
    self.port = port
    self.addresses = addresses
  }
}

extension IPAddress {
  /// The address as in a URL: `127.0.0.1`, `[0:0:0:0:0:0:0:1]`.
  package var literal: String {
    switch family {
    case .v4: bytes.map(String.init).joined(separator: ".")
    case .v6:
      "["
        + stride(from: 0, to: 16, by: 2).map {
          String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
        }.joined(separator: ":") + "]"
    }
  }
}
