import CCurl
import COpenSSL
import Glibc
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

// If a server sends more than it announced, the rest stays on the connection, and could be taken for the response to
// the next request. libcurl 7.88 checks for unread bytes and reuses the connection nevertheless.
extension Transfer {
  /// Whether the connection that libcurl has chosen has no unread bytes. A connection of HTTP/1.1 with unread bytes, or
  /// with its end, cannot be reused.
  func hasNoUnreadBytes(_ ports: RetainedSockets.Ports) -> Bool {
    guard ccurl_new_connections(easy.raw) == 0 else {
      loop.sockets.connected(ports, over: connection.sockets)
      return true
    }
    // Bytes that OpenSSL has read are not at the socket any more.
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    let hasPending = session.map { SSL_has_pending($0) != 0 } ?? false
    return !hasPending && loop.sockets.hasNoUnreadBytes(ports)
  }

  /// Whether the connection that libcurl has chosen speaks HTTP/2.
  var speaksHTTP2: Bool {
    if applied.httpVersion == Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE) { return true }
    guard applied.httpVersion == Int(CURL_HTTP_VERSION_2TLS) else { return false }
    return ccurl_tls_session(easy.raw).map { Self.speaksHTTP2(OpaquePointer($0)) } ?? false
  }

  static func speaksHTTP2(_ session: OpaquePointer) -> Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &length)
    guard let name, length == 2 else { return false }
    return name[0] == UInt8(ascii: "h") && name[1] == UInt8(ascii: "2")
  }
}

/// The sockets of connections that libcurl may reuse, by their ports. libcurl reports the ports of a connection before
/// it sends a request, and not its socket. Belongs to the loop's thread.
struct RetainedSockets {
  struct Ports: Hashable {
    let local: Int32
    let remote: Int32
  }

  private var sockets: [Ports: Int32] = [:]
  /// The number of entries above which those of closed connections are removed.
  private var bound = 128

  /// Notes a new connection over one of the sockets.
  mutating func connected(_ ports: Ports, over candidates: [Int32]) {
    guard let socket = candidates.first(where: { Self.localPort(of: $0) == ports.local }) else { return }
    sockets[ports] = socket
    guard sockets.count > bound else { return }
    sockets = sockets.filter { Self.localPort(of: $0.value) == $0.key.local }
    bound = max(128, sockets.count * 2)
  }

  /// Whether a connection has neither unread bytes nor its end.
  func hasNoUnreadBytes(_ ports: Ports) -> Bool {
    guard let socket = sockets[ports] else { return true }
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK) | ccurl_do_not_wait) < 0
  }

  /// Returns the local port; 0 if the descriptor is no socket any more.
  private static func localPort(of socket: Int32) -> Int32 {
    var address = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
    }
    guard result == 0 else { return 0 }
    // Both address families have the port at the same offset.
    return withUnsafeBytes(of: &address) { bytes in
      Int32(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
    }
  }
}
