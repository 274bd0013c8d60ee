import CCurl
package import FoundationEssentials
import Glibc
package import HTTPWire

// The bytes of bodies: from memory or a source to libcurl, and from libcurl to memory or a sink.
extension Transfer {
  // MARK: Receiving

  /// Chooses the destination of the body. Returns false when the sink refuses the response.
  func openDestination(of head: ResponseHead, _ disposition: HeadDisposition) -> Bool {
    let chosen = BodyDestination(sink: request?.sink, disposition)
    switch chosen {
    case .memory, .discarded: break
    case .sink(let sink):
      guard let failure = sink.begin(head, wake: wakeUp) else { break }
      abort(with: failure)
      return false
    }
    destination = chosen
    return true
  }

  /// Makes the response complete without its body. Returns false if the transfer ends at once.
  func dropBody(of head: ResponseHead) -> Bool {
    destination = .discarded
    response.ignoreBody()
    let hasSent = applied.content != .read || timing.bodyEnd != 0
    let dropped = DroppedBody(
      head, response.assembly.framing, method: applied.method, isReusable: hasSent && !applied.isClosing,
      now: loop.now)
    self.dropped = dropped
    loop.nextSweep = min(loop.nextSweep, dropped.deadline)
    return dropped.decision == .read
  }

  /// Counts bytes of a body that is not wanted. Returns 0 if the transfer ends here.
  private func drop(_ length: Int) -> Int {
    _ = response.assembly.bodyReceived(length)
    return dropped?.received(length) == .close ? 0 : length
  }

  func bodyReceived(_ bytes: UnsafeMutablePointer<CChar>?, _ length: Int) -> Int {
    bytesMoved()
    if login.isHolding, !releaseHead() { return 0 }
    if destination.isDiscarded { return drop(length) }
    if flow.stopIfSuspended() { return ccurl_write_pause }
    guard let bytes, length > 0 else { return length }
    let received = UnsafeRawBufferPointer(start: bytes, count: length)
    guard bandwidth != nil else { return take(received) }
    if mustWait(.download) { return pauseReceiving(.throttled) }
    let taken = take(received)
    // libcurl delivers bytes again that were not taken.
    if taken == length { moved(length, .download) }
    return taken
  }

  private func take(_ received: UnsafeRawBufferPointer) -> Int {
    if response.coding.isDecoded { return decode(received) }
    switch deliver(received) {
    case .taken: return received.count
    case .full: return pauseReceiving(.sinkFull)
    case .failure(let failure):
      abort(with: failure)
      return 0
    }
  }

  /// Pauses libcurl, which delivers the same bytes again when the transfer continues.
  func pauseReceiving(_ reason: ByteFlow.Reason) -> Int {
    stop(reason)
    return ccurl_write_pause
  }

  /// Gives decoded bytes to the sink or the buffer, all or none of them.
  func deliver(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard let base = bytes.baseAddress else { return .taken }
    switch destination {
    case .discarded: return .taken
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
    var room = room
    if bandwidth != nil {
      if mustWait(.upload) {
        stop(.throttled)
        return ccurl_read_pause
      }
      room = min(room, BandwidthMeter.largestPiece)
    }
    let length: Int
    switch request?.body {
    case .bytes(let data): length = copy(data, target, room)
    case .source(let source): length = read(source, UnsafeMutableRawBufferPointer(start: target, count: room))
    case .some(.none), nil: return 0
    }
    guard length > 0, length <= room else {
      if length == 0 { bodyEnded() }
      return length
    }
    count.sent += Int64(length)
    if bandwidth != nil { moved(length, .upload) }
    if count.sent == count.expectedToSend { bodyEnded() }
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
      stop(.sourceEmpty)
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
  /// The body is not wanted; see ``DroppedBody``.
  case discarded

  /// Makes the destination of a body after the decision about its head.
  package init(sink: (any BodySink)?, _ disposition: HeadDisposition) {
    switch disposition {
    case .discard: self = .discarded
    case .proceed, .hold: self = sink.map { .sink($0) } ?? .memory
    }
  }

  package var isDiscarded: Bool {
    if case .discarded = self { true } else { false }
  }
}

/// The bytes of one body. A small body is copied, and the buffer is used for the next transfer. A large body leaves
/// with the memory of the buffer, so that it is never in memory twice.
package struct BodyBuffer: ~Copyable {
  private static let largestCopy = 32_768
  /// The largest reservation for a length that a server has announced.
  private static let largestReservation = 64 << 20

  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  package private(set) var count = 0

  package init() {}

  deinit {
    free(base)
  }

  package mutating func reserve(_ bytes: Int) -> Bool {
    grow(to: min(bytes, Self.largestReservation))
  }

  /// Returns false if there is no memory.
  package mutating func append(_ bytes: UnsafeRawPointer, count added: Int) -> Bool {
    let (needed, overflow) = count.addingReportingOverflow(added)
    guard !overflow else { return false }
    if needed > capacity, !grow(to: max(needed, capacity * 2, 4096)) { return false }
    guard let base else { return added == 0 }
    memcpy(base + count, bytes, added)
    count = needed
    return true
  }

  /// Removes and returns the bytes; `nil` if there are none.
  package mutating func take() -> Data? {
    guard count > 0, let base else { return nil }
    defer { count = 0 }
    if count <= Self.largestCopy { return Data(bytes: base, count: count) }
    let exact = capacity - count > count / 8 ? realloc(base, count) ?? base : base
    let data = Data(bytesNoCopy: exact, count: count, deallocator: .free)
    self.base = nil
    capacity = 0
    return data
  }

  package mutating func clear() {
    count = 0
    guard capacity > Self.largestCopy * 2 else { return }
    free(base)
    base = nil
    capacity = 0
  }

  private mutating func grow(to size: Int) -> Bool {
    guard size > capacity else { return true }
    guard let larger = realloc(base, size) else { return false }
    base = larger
    capacity = size
    return true
  }
}
