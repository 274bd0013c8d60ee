import CCurl
import FoundationEssentials
import Glibc
package import HTTPWire

// The bytes of bodies: from memory or a source to libcurl, and from libcurl to memory or a sink.
extension Transfer {
  // MARK: Receiving

  /// Chooses the destination of the body. Returns false when the sink refuses the response.
  func openDestination(of head: ResponseHead, _ disposition: HeadDisposition) -> Bool {
    let chosen = BodyDestination(sink: request?.sink, disposition)
    switch chosen {
    case .memory: break
    case .discarded: response.ignoreBody()
    case .sink(let sink):
      guard let failure = sink.begin(head, wake: wakeUp) else { break }
      abort(with: failure)
      return false
    }
    destination = chosen
    return true
  }

  func bodyReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    bytesMoved()
    if login.isHolding, !releaseHead() { return 0 }
    if flow.stopIfSuspended() { return ccurl_write_pause }
    guard let bytes, length > 0 else { return length }
    let received = UnsafeRawBufferPointer(start: bytes, count: length)
    if response.coding.isDecoded { return decode(received) }
    switch deliver(received) {
    case .taken: return length
    case .full: return pauseReceiving(.sinkFull)
    case .failure(let failure):
      abort(with: failure)
      return 0
    }
  }

  /// Pauses libcurl, which delivers the same bytes again when the transfer continues.
  func pauseReceiving(_ reason: ByteFlow.Reason) -> Int {
    flow.stop(reason)
    return ccurl_write_pause
  }

  /// Gives decoded bytes to the sink or the buffer, all or none of them.
  func deliver(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard let base = bytes.baseAddress else { return .taken }
    switch destination {
    case .discarded: break
    case .sink(let sink):
      let reception = sink.receive(bytes)
      guard case .taken = reception else { return reception }
    case .memory:
      guard !body.append(base, count: bytes.count) else { break }
      return .failure(
        TransportFailure(.resourceUnavailable, "There is not enough memory for the body of the response."))
    }
    return countDelivered(bytes.count)
  }

  /// Whether the ratio of decoding is so high that the body is an attack on the memory.
  private var isBloated: Bool {
    // The decoder's count is used because libcurl 8 counts the bytes of a call only after the call. Transfer codings
    // are refused.
    guard let limit = request?.profile.options.decodingRatioLimit, response.assembly.bodyCount > 65_536,
      let consumed = response.coding.consumed
    else { return false }
    return response.assembly.bodyCount / max(1, consumed) >= Int64(max(1, limit))
  }

  /// Counts bytes that were delivered, and refuses the body if it is too large.
  private func countDelivered(_ length: Int) -> BodyReception {
    switch response.assembly.bodyReceived(length) {
    case .store where isBloated:
      return .failure(
        TransportFailure(
          .dataLengthExceedsMaximum,
          "The body of the response grows too much when it is decoded. Raise decodingRatioLimit if such responses are expected."
        ))
    case .store:
      count.received = response.assembly.bodyCount
      observer?.bytesMoved(count)
      return .taken
    case .refuseBody:
      return .failure(
        TransportFailure(
          .dataLengthExceedsMaximum,
          "The body of the response is larger than \(request?.profile.options.bodySizeLimit ?? 0) bytes. Raise bodySizeLimit if such responses are expected."
        ))
    }
  }

  // MARK: Sending

  func bodyWanted(_ target: UnsafeMutablePointer<CChar>?, _ room: Int) -> Int {
    bytesMoved()
    if flow.stopIfSuspended() { return ccurl_read_pause }
    guard let target else { return 0 }
    let length: Int
    switch request?.body {
    case .bytes(let data): length = copy(data, target, room)
    case .source(let source): length = read(source, UnsafeMutableRawBufferPointer(start: target, count: room))
    case .some(.none), nil: return 0
    }
    guard length > 0, length <= room else { return length }
    count.sent += Int64(length)
    observer?.bytesMoved(count)
    return length
  }

  private func copy(_ data: Data, _ target: UnsafeMutablePointer<CChar>, _ room: Int) -> Int {
    let offset = Int(count.sent)
    guard offset >= 0, offset < data.count else { return 0 }
    let length = min(room, data.count - offset)
    data.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      memcpy(target, base + offset, length)
    }
    return length
  }

  private func read(_ source: any BodySource, _ room: UnsafeMutableRawBufferPointer) -> Int {
    switch source.read(into: room) {
    case .bytes(let length): return length
    case .wait:
      flow.stop(.sourceEmpty)
      return ccurl_read_pause
    case .end:
      guard source.length >= 0, count.sent < source.length else { return 0 }
      abort(
        with: TransportFailure(
          .cannotReadBody,
          "The body of the request ended after \(count.sent) bytes, but \(source.length) were announced."))
      return ccurl_read_abort
    case .failure(let failure):
      abort(with: failure)
      return ccurl_read_abort
    }
  }

  /// Rewinds the body, because libcurl sends it again from `offset` on another connection.
  func bodyRewound(to offset: Int64) -> Int {
    if case .source(let source)? = request?.body {
      guard offset == 0 else { return Int(CURL_SEEKFUNC_CANTSEEK) }
      if let failure = startBody(source) {
        abort(with: applied.login == nil && !negotiatesWithProxy ? lostConnection : failure)
        return Int(CURL_SEEKFUNC_FAIL)
      }
    }
    count.sent = offset
    return Int(CURL_SEEKFUNC_OK)
  }

  /// The failure of a request whose connection was closed without a response, and whose body cannot be read again.
  private var lostConnection: TransportFailure {
    TransportFailure(
      .connectionLost,
      "\(request?.origin.host ?? "The host") closed the connection before it answered. The body of the request is a stream that cannot be read again, so the request was not repeated; use Data or a file to allow that."
    )
  }

  func startBody(_ source: any BodySource) -> TransportFailure? {
    source.start(wake: wakeUp)
  }

  /// The function that a source calls when it has more bytes, and a sink when it has room. Callable from any thread.
  var wakeUp: @Sendable () -> Void {
    guard let owner = loop.owner else { return {} }
    let ticket = ticket
    return { [weak owner] in owner?.post(.proceed(ticket: ticket)) }
  }

  // MARK: The end

  /// Releases source and sink. Returns the failure of a sink that cannot finish.
  func closeBodies() -> TransportFailure? {
    if case .source(let source)? = request?.body { source.stop() }
    response.ignoreBody()
    defer { destination = .memory }
    guard case .sink(let sink) = destination else { return nil }
    return sink.finish()
  }
}

/// The destination of a response body.
package enum BodyDestination {
  case memory
  case sink(any BodySink)
  /// The body is read, so that the connection can be used again, and dropped.
  case discarded

  /// - Parameter sink: The sink of the request. Without one, a body is not discarded: it stays small and in memory.
  package init(sink: (any BodySink)?, _ disposition: HeadDisposition) {
    switch (sink, disposition) {
    case (nil, _): self = .memory
    case (.some, .discard): self = .discarded
    case (let sink?, .proceed), (let sink?, .hold): self = .sink(sink)
    }
  }

  package var isDiscarded: Bool {
    if case .discarded = self { true } else { false }
  }
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
