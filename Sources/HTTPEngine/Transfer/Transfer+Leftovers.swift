import CCurl
import COpenSSL

// A server that sends more than it announced leaves bytes on a connection that is kept, and could have them
// taken for the answer to the next request. libcurl 7.88 looks whether there is something to read, and
// takes the connection nevertheless.
extension Transfer {
  /// Whether the request may go out on the connection that libcurl has found for it. One that was kept, and
  /// does not carry many requests at a time, has to be silent: with bytes, or an end, it is of no use.
  func mayUseConnection(_ ports: KeptSockets.Ports) -> Bool {
    if lane?.multiplexes == true || applied.isConnecting { return true }
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    if let session, Self.speaksHTTP2(session) { return true }
    guard ccurl_new_connections(easy.raw) == 0 else {
      loop.sockets.connected(ports, over: newSockets)
      return true
    }
    // What OpenSSL has read is not at the socket any more.
    let hasPending = session.map { SSL_has_pending($0) != 0 } ?? false
    hasMetLeftovers = hasPending || !loop.sockets.isSilent(ports)
    return !hasMetLeftovers
  }

  static func speaksHTTP2(_ session: OpaquePointer) -> Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &length)
    guard let name, length == 2 else { return false }
    return name[0] == UInt8(ascii: "h") && name[1] == UInt8(ascii: "2")
  }
}
