import HTTPWire

/// The response of a transfer as far as it has arrived.
struct ReceivedResponse {
  var assembly = ResponseAssembly()
  /// Whether the last output of libcurl was a part of a line of the head, and not its end.
  var endsInsideLine = false
  var chunks = ChunkedBody()
  var coding = BodyCoding()
  var bodyEnd = BodyEnd.framed

  /// Forgets everything, because another response begins.
  mutating func restart(headSizeLimit: Int, bodySizeLimit: Int64?) {
    assembly.restart(headSizeLimit: headSizeLimit, bodySizeLimit: bodySizeLimit)
    endsInsideLine = false
    if chunks.hasBegun { chunks = ChunkedBody() }
    coding = BodyCoding()
    bodyEnd = .framed
  }

  /// Makes neither the coding nor the end of the body matter, because the body is dropped.
  mutating func ignoreBody() {
    coding = BodyCoding()
    bodyEnd = .framed
  }
}

/// The progress of reading a chunked body.
struct ChunkedBody {
  var reader = ChunkedReader()
  /// The number of bytes that were read and that libcurl hands over again.
  var readAhead = 0
  var hasBegun = false
}

/// The event that ends a response body.
enum BodyEnd {
  /// The length, the last chunk or nothing that could be cut off.
  case framed
  /// The end of a stream of HTTP/2.
  case stream
  /// The end of a connection that is secured by TLS.
  case secureConnection(ConnectionClosure)
}
