import CCurl
import HTTPWire

// libcurl hands over chunked bodies as they come (CURLOPT_HTTP_TRANSFER_DECODING 0), because it takes nearly everything
// for a chunk size line or a trailer. It still follows the chunks itself, to know where the body ends.
extension Transfer {
  /// Where the reading of a chunked body stands.
  struct Chunks {
    var reader = ChunkedReader()
    /// How many bytes of those that libcurl hands over again have been read already.
    var readAhead = 0
    var hasBegun = false
  }

  /// Bytes of the body as they came over the connection.
  func bytesReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    guard assembly.framing.isChunked, let bytes else { return bodyReceived(bytes, length) }
    if !chunks.hasBegun {
      chunks.hasBegun = true
      chunks.reader = ChunkedReader(trailerSizeLimit: assembly.headSizeLeft)
    }
    let raw = UnsafeRawBufferPointer(start: bytes, count: length)
    var position = min(chunks.readAhead, length)
    chunks.readAhead -= position
    while true {
      switch chunks.reader.read(raw, from: &position) {
      case .needsMore: return length
      case .content(let range):
        let result = bodyReceived(bytes + range.lowerBound, range.count)
        guard result == range.count else {
          // After a pause, libcurl hands over the same bytes again.
          if result == ccurl_write_pause { chunks.readAhead += range.lowerBound }
          return result
        }
        chunks.reader.contentTaken(range.count)
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
    guard chunks.hasBegun, !chunks.reader.isComplete else { return nil }
    return TransportFailure(
      .connectionLost, "\(request?.origin.host ?? "The host") ended the response before its last chunk.")
  }
}
