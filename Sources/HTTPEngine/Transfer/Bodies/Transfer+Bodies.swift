import CCurl
import FoundationEssentials
import Glibc
package import HTTPWire

// Bytes of bodies, in and out: from memory or a source, into memory or a sink.
extension Transfer {
  // MARK: In

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
    if response.coding.isUndone { return decode(received) }
    switch deliver(received) {
    case .taken: return length
    case .full: return pauseReceiving(.sinkFull)
    case .failure(let failure):
      abort(with: failure)
      return 0
    }
  }

  /// Makes libcurl hand the same bytes over again once the transfer goes on.
  func pauseReceiving(_ reason: ByteFlow.Reason) -> Int {
    flow.stop(reason)
    return ccurl_write_pause
  }

  /// Hands decoded bytes to the sink or the buffer, all or none of them.
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
    return moved(bytes.count)
  }

  /// Whether decoding makes so much of so little that it is meant to fill the memory.
  private var isBloated: Bool {
    // The decoder counts, because libcurl 8 counts the bytes of a call only after it. Transfer codings are refused.
    guard let limit = request?.profile.options.decodingRatioLimit, response.assembly.bodyCount > 65_536,
      let consumed = response.coding.consumed
    else { return false }
    return response.assembly.bodyCount / max(1, consumed) >= Int64(max(1, limit))
  }

  /// Bytes have found their place; refuses them afterwards if they are too many.
  private func moved(_ length: Int) -> BodyReception {
    switch response.assembly.bodyReceived(length) {
    case .store where isBloated:
      return .failure(
        TransportFailure(
          .dataLengthExceedsMaximum,
          "The body of the response grows too much by decoding; raise decodingRatioLimit if that is right."))
    case .store:
      count.received = response.assembly.bodyCount
      observer?.bytesMoved(count)
      return .taken
    case .refuseBody:
      return .failure(
        TransportFailure(
          .dataLengthExceedsMaximum,
          "The body of the response is larger than \(request?.profile.options.bodySizeLimit ?? 0) bytes; raise bodySizeLimit if that is right."
        ))
    }
  }

  // MARK: Out

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

  /// libcurl sends the body again from `offset`, on another connection.
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

  /// The failure of a request whose connection was closed before an answer, and whose body is gone.
  private var lostConnection: TransportFailure {
    TransportFailure(
      .connectionLost,
      "\(request?.origin.host ?? "The host") closed the connection before it answered. The body of the request is a stream that cannot be read again, so the request was not repeated; use Data or a file to allow that."
    )
  }

  func startBody(_ source: any BodySource) -> TransportFailure? {
    source.start(wake: wakeUp)
  }

  /// Called by a source that has more, or a sink that has room again; from any thread.
  var wakeUp: @Sendable () -> Void {
    guard let owner = loop.owner else { return {} }
    let ticket = ticket
    return { [weak owner] in owner?.post(.proceed(ticket: ticket)) }
  }

  // MARK: The end

  /// Lets go of source and sink. A sink that cannot finish says why.
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
