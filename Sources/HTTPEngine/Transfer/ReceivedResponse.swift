import CCurl
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
  mutating func restart(headerSizeLimit: Int, bodySizeLimit: Int64?) {
    assembly.restart(headerSizeLimit: headerSizeLimit, bodySizeLimit: bodySizeLimit)
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
  /// The number of bytes that were read, and that libcurl delivers again.
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

// libcurl delivers chunked bodies as they are sent (CURLOPT_HTTP_TRANSFER_DECODING 0), because its own decoder accepts
// nearly everything as a chunk size line or a trailer. libcurl still follows the chunks to find the end of the body.
extension Transfer {
  /// Receives bytes of the body as they were sent, with their chunks.
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
          // After a pause, libcurl delivers the same bytes again.
          if result == ccurl_write_pause { response.chunks.readAhead += range.lowerBound }
          return result
        }
        response.chunks.reader.contentTaken(range.count)
        position = range.upperBound
      case .end:
        // The server sent more than the message, so the connection cannot be reused.
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

  /// The failure of a chunked body that libcurl takes for complete although its end has not arrived.
  var incompleteChunks: TransportFailure? {
    guard response.chunks.hasBegun, !response.chunks.reader.isComplete else { return nil }
    return TransportFailure(
      .connectionLost, "\(request?.origin.host ?? "The host") ended the response before its last chunk.")
  }
}

// A body of HTTP/1 without length and chunks ends with its connection. Over TLS, such an end counts only if the peer
// has announced it by an alert. Otherwise an attacker on the network could cut the body off (RFC 9112 §9.8). libcurl
// from 7.88.0 to before 8.14.1 does not check this. Documentation/ThreatModel.md lists the cuts that cannot be
// recognised.
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

  /// The failure of a body that libcurl takes for complete although it may have been cut off.
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
      "\(host) closed the connection without the TLS alert that ends a body without length. A part of the body may be missing."
    )
  }

  /// libcurl takes a stream for complete if it was reset with NO_ERROR, or if its connection failed because of another
  /// stream.
  private var cutOffStream: TransportFailure? {
    guard let connection = attempts.connection, let stream = attempts.stream,
      connection.isCutOff(stream) == true
    else { return nil }
    return brokenStream(connection.hasFailed, resetCode: stream.resetCode)
  }

  /// Returns the failure of a stream of HTTP/2 that ended without END_STREAM (RFC 9113 §8.1).
  func brokenStream(_ hasFailed: Bool, resetCode: UInt32?) -> TransportFailure {
    let host = request?.origin.host ?? "The host"
    let cause =
      hasFailed
      ? "sent something that is not HTTP/2"
      : resetCode.map { "reset the stream (code \($0))" } ?? "ended the stream"
    return TransportFailure(.connectionLost, "\(host) \(cause) before the response was complete.")
  }
}

/// The content codings of one response, and the state of decoding. A body without a coding costs one comparison.
struct BodyCoding {
  /// The codings in the order of decoding; empty if the body is delivered as it is.
  var codings: [ContentCoding] = []
  /// The decoder, which is made for the first bytes, so that a response without a body needs none.
  var decoder: BodyDecoder?
  /// The number of bytes at the beginning of the next call that were decoded before a pause.
  var decodedAhead = 0

  var isDecoded: Bool { !codings.isEmpty }
  /// The number of encoded bytes that were decoded; `nil` without a decoder.
  var consumed: Int64? { decoder?.consumed }
}

extension Transfer {
  /// The largest number of decoded bytes of one call of libcurl. After that, other transfers, commands and deadlines of
  /// the loop have their turn, even if a few kilobytes decode to much more.
  private static let decodingQuantum = 4 << 20

  /// Chooses the codings to decode. Returns false if the response is refused.
  func chooseCoding(of head: ResponseHead) -> Bool {
    guard head.block.marks.contains(.contentEncoding), request?.profile.options.decodesContent != false else {
      return true
    }
    switch ContentDecodingPlan(fieldValue: head.block.value(of: "Content-Encoding")) {
    case .asReceived: return true
    case .decoded(let codings):
      response.coding.codings = codings
      return true
    case .tooMany:
      abort(
        with: TransportFailure(
          .cannotDecodeContent,
          "The body from \(hostName) has more than \(ContentDecodingPlan.limit) content codings and is not decoded."
        ))
      return false
    }
  }

  /// Decodes bytes and delivers them piece by piece. If the sink is full, libcurl keeps the bytes, so that it does not
  /// take the body for complete, and delivers them again. The bytes that were decoded before are skipped then.
  func decode(_ bytes: UnsafeRawBufferPointer) -> Int {
    if response.coding.decoder == nil { response.coding.decoder = BodyDecoder(response.coding.codings) }
    guard let decoder = response.coding.decoder else { return refuse(.noMemoryToDecode) }
    let known = min(response.coding.decodedAhead, bytes.count)
    response.coding.decodedAhead -= known
    var input = UnsafeRawBufferPointer(rebasing: bytes[known...])
    var delivered = 0
    while true {
      switch decoder.nextPiece(from: &input) {
      case .needsInput: return bytes.count
      case .malformed(let detail): return refuse(undecodable(detail))
      case .outOfMemory: return refuse(.noMemoryToDecode)
      case .piece(let piece):
        switch deliver(piece) {
        case .failure(let failure): return refuse(failure)
        case .full:
          response.coding.decodedAhead += bytes.count - input.count
          return pauseReceiving(.sinkFull)
        case .taken:
          decoder.dropPiece()
          delivered += piece.count
        }
      }
      if delivered >= Self.decodingQuantum {
        response.coding.decodedAhead += bytes.count - input.count
        wakeUp()
        return pauseReceiving(.turnExhausted)
      }
    }
  }

  /// Returns the failure of a response that libcurl takes for complete although its body is not.
  func incompleteBody(of head: ResponseHead) -> TransportFailure? {
    // A range of an encoded representation may end anywhere (RFC 9110 §14.2).
    guard let decoder = response.coding.decoder, !decoder.isComplete, head.status != 206 else { return nil }
    return TransportFailure(
      .cannotDecodeContent,
      "The body from \(hostName) ended before its content coding (\(codingNames)) was complete. A part of the body is missing."
    )
  }

  private func undecodable(_ detail: String) -> TransportFailure {
    TransportFailure(
      .cannotDecodeContent,
      "The body from \(hostName) could not be decoded as \(codingNames), which its Content-Encoding field names: \(detail)."
    )
  }

  /// Ends the transfer from a callback of libcurl.
  private func refuse(_ failure: TransportFailure) -> Int {
    abort(with: failure)
    return 0
  }

  private var codingNames: String {
    response.coding.codings.reversed().map(\.rawValue).joined(separator: ", ")
  }

  private var hostName: String { request?.origin.host ?? "the host" }
}

extension TransportFailure {
  fileprivate static var noMemoryToDecode: TransportFailure {
    TransportFailure(.resourceUnavailable, "There is not enough memory to decode the body of the response.")
  }
}
