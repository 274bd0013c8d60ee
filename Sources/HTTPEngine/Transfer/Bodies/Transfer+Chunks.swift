import CCurl
import HTTPWire

// libcurl hands over chunked bodies as they come (CURLOPT_HTTP_TRANSFER_DECODING 0), because it takes nearly everything
// for a chunk size line or a trailer. It still follows the chunks itself, to know where the body ends.
extension Transfer {
  /// Bytes of the body as they came over the connection.
  func bytesReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    guard response.assembly.framing.isChunked, let bytes else { return bodyReceived(bytes, length) }
    if !response.chunks.hasBegun {
      response.chunks.hasBegun = true
      response.chunks.reader = ChunkedReader(trailerSizeLimit: response.assembly.headSizeLeft)
    }
    let raw = UnsafeRawBufferPointer(start: bytes, count: length)
    var position = min(response.chunks.readAhead, length)
    response.chunks.readAhead -= position
    while true {
      switch response.chunks.reader.read(raw, from: &position) {
      case .needsMore: return length
      case .content(let range):
        let result = bodyReceived(bytes + range.lowerBound, range.count)
        guard result == range.count else {
          // After a pause, libcurl hands over the same bytes again.
          if result == ccurl_write_pause { response.chunks.readAhead += range.lowerBound }
          return result
        }
        response.chunks.reader.contentTaken(range.count)
        position = range.upperBound
      case .end:
        // More than the message: the connection is of no use any more.
        if position < length { setClosing(true) }
        return length
      case .refuseTrailers:
        refuseHead()
        return 0
      case .refuse(let violation):
        refuse(violation)
        return 0
      }
    }
  }

  /// The failure of a chunked body that libcurl took for complete before its end had come.
  var incompleteChunks: TransportFailure? {
    guard response.chunks.hasBegun, !response.chunks.reader.isComplete else { return nil }
    return TransportFailure(
      .connectionLost, "\(request?.origin.host ?? "The host") ended the response before its last chunk.")
  }
}
