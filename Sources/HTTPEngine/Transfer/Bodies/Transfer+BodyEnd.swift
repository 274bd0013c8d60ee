import CCurl
import HTTPWire

// A body of HTTP/1 without length and chunks ends with its connection. Over TLS, such an end counts only if the peer has
// announced it; otherwise anyone on the way could cut the body off (RFC 9112 §9.8). libcurl from 7.88.0 to before 8.14.1
// does not look. Documentation/ThreatModel.md says which cuts cannot be recognised.
extension Transfer {
  /// Prepares for the end of a body whose length is not announced.
  func observeBodyEnd(of head: ResponseHead) {
    guard applied.method != "HEAD", head.status >= 200, head.status != 204, head.status != 304 else { return }
    guard head.version == .http1_1 || head.version == .http1_0 else {
      if head.version == .http2 { response.bodyEnd = .stream }
      return
    }
    guard !response.assembly.framing.isChunked else { return }
    let session = ccurl_tls_session(easy.raw).map { OpaquePointer($0) }
    if let closure = ConnectionClosure.of(session) { response.bodyEnd = .secureConnection(closure) }
  }

  /// The failure of a body that libcurl takes for complete, but which may have been cut off.
  var cutOffBody: TransportFailure? {
    switch response.bodyEnd {
    case .framed: return nil
    case .stream: return cutOffStream
    case .secureConnection(let closure):
      if closure.isAnnounced { return nil }
    }
    let host = request?.origin.host ?? "The host"
    return TransportFailure(
      .connectionLost,
      "\(host) closed the connection without the alert of TLS that ends a body without length: a part of it may be missing."
    )
  }

  /// libcurl takes a stream for complete that was reset with NO_ERROR, or whose connection failed for another stream.
  private var cutOffStream: TransportFailure? {
    guard let connection = attempts.connection, let stream = attempts.stream,
      connection.isCutOff(stream) == true
    else { return nil }
    return brokenStream(connection.hasFailed, resetCode: stream.resetCode)
  }

  /// The failure of a stream of HTTP/2 that ended otherwise than by END_STREAM (RFC 9113 §8.1).
  func brokenStream(_ hasFailed: Bool, resetCode: UInt32?) -> TransportFailure {
    let host = request?.origin.host ?? "The host"
    let cause =
      hasFailed
      ? "sent something that is not HTTP/2"
      : resetCode.map { "reset the stream (code \($0))" } ?? "ended the stream"
    return TransportFailure(.connectionLost, "\(host) \(cause) before the response was complete.")
  }
}
