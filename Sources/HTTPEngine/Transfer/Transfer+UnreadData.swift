import CCurl
import COpenSSL

// A server that sends more than it announced leaves bytes on a connection that is kept, and could have them
// taken for the answer to the next request. libcurl 7.88 looks whether there is something to read, and
// takes the connection nevertheless.
extension Transfer {
  /// Whether nothing has come on the connection that libcurl has found. A kept connection of HTTP/1.1 with unread bytes, or
  /// at its end, cannot be used.
  func isSilent(_ ports: RetainedSockets.Ports) -> Bool {
    guard ccurl_new_connections(easy.raw) == 0 else {
      loop.sockets.connected(ports, over: connection.sockets)
      return true
    }
    // What OpenSSL has read is not at the socket any more.
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    let hasPending = session.map { SSL_has_pending($0) != 0 } ?? false
    return !hasPending && loop.sockets.isSilent(ports)
  }

  /// Whether the connection that libcurl has found speaks HTTP/2.
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
