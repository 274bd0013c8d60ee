import FoundationEssentials
import HTTPWire

/// The next bytes of a request's content.
enum ContentPiece {
  case bytes(Int)
  /// The exchange waits for its source, for bandwidth or for the caller.
  case wait
  /// The end of the content, with the trailers that follow it.
  case end([HTTPHeader])
  case fail(TransportFailure)
}

// The content of a request, from memory or a source to its connection.
extension Exchange {
  /// Starts the source of the body, unless it was started and nothing of it was read. Returns the failure of a source
  /// that cannot be read.
  func startSource() -> TransportFailure? {
    guard !hasStartedSource || hasReadSource, let source = request?.source else { return nil }
    hasStartedSource = true
    hasReadSource = false
    return source.start(wake: wakeUp)
  }

  /// Whether the request can be sent once more.
  var isRepeatable: Bool {
    guard let request else { return false }
    return request.isRepeatable || !hasReadSource
  }

  /// Puts the next bytes of the content into `room`.
  func nextContent(into room: UnsafeMutableRawBufferPointer) -> ContentPiece {
    guard flow.maySend else { return .wait }
    guard trailerReply == nil else { return endOfContent() }
    var room = room
    if bandwidth != nil {
      if mustWait(.upload) {
        flow.stopSending(.throttled)
        return .wait
      }
      room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(BandwidthMeter.largestPiece))
    }
    switch request?.body {
    case .some(.none), nil: return endOfContent()
    case .bytes(let data):
      let offset = Int(clamping: count.sent)
      guard offset < data.count else { return endOfContent() }
      let length = min(room.count, data.count - offset)
      data.withUnsafeBytes {
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + length]))
      }
      return .bytes(length)
    case .source(let source): return read(source, room)
    }
  }

  private func read(_ source: any BodySource, _ room: UnsafeMutableRawBufferPointer) -> ContentPiece {
    let length = source.length
    if length >= 0, count.sent >= length { return endOfContent() }
    switch source.read(into: room) {
    case .bytes(let count):
      hasReadSource = true
      return .bytes(count)
    case .wait:
      flow.stopSending(.sourceEmpty)
      return .wait
    case .end:
      guard length >= 0 else { return endOfContent() }
      return .fail(
        TransportFailure(
          .cannotReadBody,
          "The body of the request ended after \(count.sent) bytes, but \(length) were announced."))
    case .failure(let failure): return .fail(failure)
    }
  }

  /// Ends the content once its trailers are known, which may run code of the caller on another thread.
  private func endOfContent() -> ContentPiece {
    guard let trailers = request?.trailers else { return .end([]) }
    let reply = trailerReply ?? ask(for: trailers)
    if let fields = reply.fields { return .end(fields) }
    flow.stopSending(.sourceEmpty)
    return .wait
  }

  private func ask(for trailers: RequestTrailers) -> TrailerReply {
    let reply = TrailerReply()
    trailerReply = reply
    trailers.make { [wakeUp] fields in
      reply.set(fields)
      wakeUp()
    }
    return reply
  }

  /// Counts bytes of the content that the connection has taken over.
  func contentSent(_ length: Int) {
    guard length > 0 else { return }
    count.sent += Int64(length)
    noteActivity()
    if bandwidth != nil { moved(length, .upload) }
    observer?.bytesMoved(count)
  }
}
