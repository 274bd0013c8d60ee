import CCurl
import HTTPWire

// A body of HTTP/1 without length and chunks ends with its connection. Over TLS, such an end counts only if the peer has
// announced it; otherwise anyone on the way could cut the body off (RFC 9112 §9.8). libcurl from 7.88.0 to before 8.14.1
// does not look. Documentation/ThreatModel.md says which cuts cannot be recognised.
extension Transfer {
  /// Prepares for the end of a body whose length is not announced.
  func observeBodyEnd(of head: ResponseHead) {
    guard head.version == .http1_1 || head.version == .http1_0, !assembly.framing.isChunked,
      applied.method != "HEAD", head.status >= 200, head.status != 204, head.status != 304
    else { return }
    closure = ConnectionClosure.of(ccurl_tls_session(easy.raw).map { OpaquePointer($0) })
  }

  /// The failure of a body that libcurl takes for complete, but which may have been cut off.
  var cutOffBody: TransportFailure? {
    guard let closure, !closure.isAnnounced else { return nil }
    let host = request?.origin.host ?? "The host"
    return TransportFailure(
      .connectionLost,
      "\(host) closed the connection without the alert of TLS that ends a body without length: a part of it may be missing."
    )
  }
}
