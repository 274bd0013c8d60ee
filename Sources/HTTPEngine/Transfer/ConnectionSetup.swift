import COpenSSL
package import HTTPWire

/// The steps of connecting one transfer: the sockets that libcurl opened, and the handshakes on the newest of them.
package struct ConnectionSetup {
  package private(set) var sockets: [Int32] = []
  /// The number of TLS handshakes that have begun on the newest socket.
  private var handshakeCount = 0
  /// The TLS session with a proxy through which the transfer only connects. It belongs to libcurl.
  package var proxySession: OpaquePointer?

  package init() {}

  /// Forgets the connection of another request. The memory of the list is kept.
  package mutating func restart() {
    if !sockets.isEmpty { sockets.removeAll(keepingCapacity: true) }
    handshakeCount = 0
    proxySession = nil
  }

  package mutating func socketOpened(_ socket: Int32) {
    sockets.append(socket)
    handshakeCount = 0
  }

  package mutating func handshakeBegan() { handshakeCount += 1 }

  /// Whether the next handshake is that with the proxy, which comes before that with the server.
  package func nextHandshakeIsOfProxy(_ kind: ProxyServer.Kind?) -> Bool {
    kind == .https && handshakeCount == 0
  }

  /// Whether the handshake with the proxy was the last one to begin.
  package func lastHandshakeIsOfProxy(_ kind: ProxyServer.Kind?) -> Bool {
    kind == .https && handshakeCount == 1
  }
}

/// The TLS parameters of a connection. OpenSSL owns the text, which never changes.
struct TLSFacts {
  var version: UnsafePointer<CChar>?
  var cipher: UInt16?

  /// No TLS.
  init() {}

  init(of session: OpaquePointer) {
    version = SSL_get_version(session)
    cipher = SSL_get_current_cipher(session).map { SSL_CIPHER_get_protocol_id($0) }
  }
}
