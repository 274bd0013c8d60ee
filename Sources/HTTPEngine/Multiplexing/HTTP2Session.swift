import CNghttp2
package import HTTPWire

/// All streams of one connection of HTTP/2, on the side of the client (RFC 9113), over nghttp2.
///
/// It works on bytes in memory: its owner reads the connection and passes the bytes to ``receive(_:at:)``, then calls
/// ``makeOutput()``, and writes ``output``. So the frames of a turn leave in one write. Belongs to the loop's thread.
/// Therefore its properties have no run-time checks for overlapping access.
///
/// nghttp2 checks frames, windows and compression. Its rules for messages are switched off, because ``ResponseFields``
/// has them, as for HTTP/1.1: nghttp2 would not report which field of a response is malformed.
package final class HTTP2Session {
  /// The most streams at a time, whatever the server allows.
  package static let mostStreams = 100
  /// The default of `TransportOptions.headerSizeLimit`.
  package static let usualHeaderSizeLimit = 262_144
  /// The window of the connection. It is returned as soon as bytes arrive, so that streams cannot block one another.
  private static let connectionWindow: Int32 = 32 << 20
  /// The number of bytes that may wait for the connection before more content is asked for.
  static let mostOutput = 131_072
  private static let mostContinuations = 65_536
  /// The most bytes of a request's head, with what its compression may add. nghttp2 reckons with 12 more bytes for each
  /// field, and a field has at least one.
  private static let largestRequestHead = 14 * RequestHeadWriter.largestHead

  let session: OpaquePointer
  let frames = FrameOutput()
  /// The largest `headerSizeLimit` of any stream.
  @exclusivity(unchecked) private(set) var headerSizeLimit: Int
  /// The size of heads that the server was asked to keep to. Requests with another limit than the first may follow on
  /// the connection, so it is never below ``usualHeaderSizeLimit``.
  @exclusivity(unchecked) private var announcedLimit: Int
  @exclusivity(unchecked) var budget = WindowBudget()
  @exclusivity(unchecked) var meter = FloodMeter()
  @exclusivity(unchecked) private(set) var streams: [Int32: HTTP2Stream] = [:]
  /// The stream of the last callback. The next callback is mostly for the same stream.
  @exclusivity(unchecked) private var latest: HTTP2Stream?
  /// Whether nghttp2 is in a call. Then neither ``receive(_:at:)`` nor ``makeOutput()`` may be called.
  @exclusivity(unchecked) package private(set) var isInCall = false
  /// The number of bytes that the connection has accepted.
  @exclusivity(unchecked) private(set) var sentCount: UInt64 = 0
  /// The stream whose head or trailers are being added to the output.
  @exclusivity(unchecked) var encoding: HTTP2Stream?
  /// The failure that was found within a callback. nghttp2 then stops, and the session fails when it has returned.
  @exclusivity(unchecked) var failureOfCallback: (HTTP2Failure, code: UInt32?)?
  /// The violation that nghttp2 names in its GOAWAY.
  @exclusivity(unchecked) var violation: HTTP2Failure?
  /// Whether nothing is added to the output any more.
  @exclusivity(unchecked) private var isMute = false
  /// The field block that is being received.
  @exclusivity(unchecked) var block = FieldBlockProgress()
  /// The stream of the field block for which alone the session has failed; `nil` if it failed for another reason.
  @exclusivity(unchecked) package internal(set) var unreadableStream: Int32?

  /// The reason why the connection cannot continue. Then the owner writes the rest of ``output``, and closes the
  /// connection.
  @exclusivity(unchecked) package private(set) var failure: HTTP2Failure?
  /// The server's last GOAWAY; no streams are opened after it (RFC 9113 §6.8).
  @exclusivity(unchecked) package internal(set) var goAway: (lastStream: Int32, code: UInt32)?
  /// Whether the server's settings have arrived. Until then, its limit of streams is unknown.
  @exclusivity(unchecked) package internal(set) var hasSettings = false
  /// Called when the server changes the number of streams that it allows.
  @exclusivity(unchecked) package var streamLimitChanged: (() -> Void)?
  /// Called when a stream without an owner does not count any more, because its reset has been made.
  @exclusivity(unchecked) var streamFreed: (() -> Void)?

  /// Makes the session of a new connection, with its preface in the output. Returns `nil` if memory is short.
  ///
  /// - Parameter headerSizeLimit: The most bytes of all heads and trailers of a response.
  package init?(headerSizeLimit: Int = HTTP2Session.usualHeaderSizeLimit) {
    guard let session = Self.makeSession() else { return nil }
    self.session = session
    self.headerSizeLimit = headerSizeLimit
    announcedLimit = max(headerSizeLimit, Self.usualHeaderSizeLimit)
    nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    let settings = [
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
        value: UInt32(StreamWindow.initialSize)),
      Self.headerListSize(announcedLimit),
    ]
    guard nghttp2_submit_settings(session, 0, settings, settings.count) == 0,
      nghttp2_session_set_local_window_size(session, 0, 0, Self.connectionWindow) == 0
    else { return nil }
  }

  private static func headerListSize(_ limit: Int) -> nghttp2_settings_entry {
    nghttp2_settings_entry(
      settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(clamping: limit))
  }

  deinit {
    precondition(!isInCall, "a session was released while nghttp2 used it")
    nghttp2_session_del(session)
  }

  private static func makeSession() -> OpaquePointer? {
    var options: OpaquePointer?
    guard let callbacks, nghttp2_option_new(&options) == 0 else { return nil }
    defer { nghttp2_option_del(options) }
    nghttp2_option_set_no_auto_window_update(options, 1)
    nghttp2_option_set_no_http_messaging(options, 1)
    nghttp2_option_set_peer_max_concurrent_streams(options, UInt32(mostStreams))
    nghttp2_option_set_max_send_header_block_length(options, largestRequestHead)
    // Its default of 8 frames would refuse heads of more than 144 KiB. The meter counts small frames, and the size of a
    // head has a limit.
    cnghttp2_limit_continuations(options, mostContinuations)
    var session: OpaquePointer?
    guard nghttp2_session_client_new2(&session, callbacks, nil, options) == 0 else { return nil }
    return session
  }

  // MARK: Facts

  /// The number of streams that can be opened now.
  package var freeStreams: Int {
    guard failure == nil, !takesNoMoreStreams else { return 0 }
    return max(0, streamLimit - streams.count)
  }

  /// Whether the session can open no more streams: the server has sent GOAWAY, or the stream numbers are used up (RFC
  /// 9113 §5.1.1).
  package var takesNoMoreStreams: Bool {
    goAway != nil || nghttp2_session_check_request_allowed(session) == 0
  }

  /// The number of streams at a time: the server's limit, but at most ``mostStreams``. Before ``hasSettings``, there is
  /// no other limit.
  package var streamLimit: Int {
    let allowed = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    return min(Self.mostStreams, Int(allowed))
  }

  /// The number of open streams, including those with a reset that has not been sent yet.
  package var streamCount: Int { streams.count }

  /// Whether the connection is useless: it failed, or the server accepts no more streams and all have ended.
  package var isOver: Bool { failure != nil || streams.isEmpty && takesNoMoreStreams }

  /// The most bytes of a field block, for the whole connection. A head of the announced size fits, because the encoding
  /// of a field is shorter than the 32 bytes that its size includes beyond name and value (RFC 9113 §6.5.2).
  var largestBlock: Int { max(2 * headerSizeLimit + 65_536, announcedLimit + 16_384) }

  // MARK: Bytes

  /// Takes bytes of the server; calls the owners of the streams. Afterwards ``failure`` is set if nghttp2 has found a
  /// violation, unless too much output waits.
  ///
  /// - Parameter now: The time in nanoseconds, for the limit of frames without content.
  package func receive(_ bytes: UnsafeRawBufferPointer, at now: UInt64) {
    guard failure == nil, let base = bytes.assumingMemoryBound(to: UInt8.self).baseAddress else { return }
    let taken = call { nghttp2_session_mem_recv(session, base, bytes.count) }
    if taken < 0 {
      let failure = HTTP2Failure.library(taken)
      fail(failure, failure == .flood ? HTTP2ErrorCode.enhanceYourCalm : HTTP2ErrorCode.protocolError)
    } else if meter.received(bytes, at: now) {
      fail(.flood, HTTP2ErrorCode.enhanceYourCalm)
    } else if takesNoMoreStreams {
      // nghttp2 may have found a violation, which it names in its GOAWAY alone. The connection may end before the owner
      // asks for output.
      makeOutput()
    }
  }

  /// Appends frames to the output until all are in it, or enough wait for the connection. The owner calls it again when
  /// the connection has accepted them all. Asks the owners of the streams for content. Afterwards ``failure`` is set if
  /// nghttp2 has found a violation.
  package func makeOutput() { makeOutput(atMost: Self.mostOutput) }

  private func makeOutput(atMost limit: Int) {
    // Nothing follows the GOAWAY of a violation. Otherwise nghttp2 would report the requests in its queue as not sent,
    // before the session fails.
    while !isMute, violation == nil, frames.count < limit {
      var bytes: UnsafePointer<UInt8>?
      let count = call { nghttp2_session_mem_send(session, &bytes) }
      if count > 0, let bytes {
        frames.append(UnsafeRawBufferPointer(start: bytes, count: count))
        noteEndOfFields(flags: bytes[4])
        continue
      }
      if count < 0 { fail(.library(count), nil) }
      break
    }
    if let violation { fail(violation, nil) }
  }

  /// Notes the end of a head or of trailers, which CONTINUATION may have divided, once a frame is in the output.
  private func noteEndOfFields(flags: UInt8) {
    guard let stream = encoding, UInt32(flags) & NGHTTP2_FLAG_END_HEADERS.rawValue != 0 else { return }
    if stream.headEnd == nil { stream.headEnd = outputPosition } else { stream.requestEnd = outputPosition }
    encoding = nil
  }

  /// The bytes that wait for the connection. They are not moved until ``makeOutput()``.
  package var output: UnsafeRawBufferPointer { frames.bytes }

  /// Removes the first bytes of the output, which the connection has accepted.
  package func outputTaken(_ count: Int) {
    frames.drop(count)
    sentCount += UInt64(count)
  }

  /// The position in the stream of bytes at which the next frame begins.
  var outputPosition: UInt64 { sentCount + UInt64(frames.count) }

  /// Whether the connection has accepted the whole head of a stream.
  package func hasSentHead(of stream: HTTP2Stream) -> Bool {
    stream.headEnd.map { $0 <= sentCount } ?? false
  }

  /// Whether the connection has accepted the content of a stream as far as the owner has given it, and what ends it.
  func hasSentContent(of stream: HTTP2Stream) -> Bool {
    guard !stream.isSending else { return stream.contentEnd <= sentCount }
    return stream.requestEnd.map { $0 <= sentCount } ?? false
  }

  /// Calls nghttp2, which then may call back.
  private func call(_ body: () -> Int) -> Int {
    precondition(!isInCall, "a callback has called the session again")
    return withExtendedLifetime(self) {
      isInCall = true
      let result = body()
      isInCall = false
      if let (failure, code) = failureOfCallback {
        failureOfCallback = nil
        fail(failure, code)
      }
      return result
    }
  }

  // MARK: Ends of the connection

  /// Ends all streams, because the connection has ended. Frames that were not received do not come any more.
  package func connectionEnded() {
    // The output may have had no room for the GOAWAY that names a violation. It comes before requests and content.
    if failure == nil, !isInCall, goAway == nil, takesNoMoreStreams { makeOutput(atMost: .max) }
    fail(.closed(code: goAway?.code), nil)
  }

  /// Ends all streams, and adds GOAWAY to the output.
  package func close() {
    guard failure == nil else { return }
    fail(.closed(code: goAway?.code), HTTP2ErrorCode.none)
  }

  /// Ends the session. Requests that have not left yet are reported as such, so they must not leave afterwards.
  ///
  /// - Parameter code: The error code of the GOAWAY that is sent; `nil` if none is, or if nghttp2 has made it.
  func fail(_ failure: HTTP2Failure, _ code: UInt32?) {
    guard self.failure == nil else { return }
    guard !isInCall else {
      failureOfCallback = failureOfCallback ?? (failure, code)
      return
    }
    self.failure = failure
    // After GOAWAY, nghttp2 sends no request.
    if let code { nghttp2_session_terminate_session(session, code) } else { isMute = true }
    if streams.values.contains(where: isEncoded) {
      // Another message after a part of theirs could complete a record of TLS, so GOAWAY is left out, too.
      isMute = true
      frames.drop(frames.count)
    }
    let ended = streams.values.sorted { $0.id < $1.id }
    for stream in ended {
      forget(stream)
      let end: HTTP2StreamEnd =
        if stream.progress.hasHead, stream.progress.hasEnded {
          .complete
        } else if stream.headPosition == nil || isEncoded(stream) {
          .notSent
        } else {
          .failed((unreadableStream ?? stream.id) == stream.id ? failure : .otherResponse)
        }
      giveUp(stream)?.streamEnded(end, stream)
    }
  }

  /// Whether the head of a stream is in the output, and the connection has accepted no byte of it.
  private func isEncoded(_ stream: HTTP2Stream) -> Bool {
    stream.headPosition.map { $0 >= sentCount } ?? false
  }

  // MARK: Streams

  /// Finds a stream by its number.
  func stream(_ id: Int32) -> HTTP2Stream? {
    if let latest, latest.id == id { return latest }
    guard let stream = streams[id] else { return nil }
    latest = stream
    return stream
  }

  /// Removes a stream that nghttp2 does not know any more.
  func forget(_ stream: HTTP2Stream) {
    guard streams.removeValue(forKey: stream.id) != nil else { return }
    if latest === stream { latest = nil }
    stream.window.close(in: &budget)
  }

  /// Removes the owner of a stream, which is not called again, and returns it.
  func giveUp(_ stream: HTTP2Stream) -> (any HTTP2StreamOwner)? {
    let owner = stream.owner
    stream.owner = nil
    return owner
  }

  /// Opens a stream for a request. Its head is sent with the next output. Returns `nil` if no stream is free, or if
  /// nghttp2 does not accept the request.
  ///
  /// - Parameters:
  ///   - request: The fields of the request.
  ///   - method: Its method, which decides whether the response has a body.
  ///   - hasContent: Whether content follows the head, for which the owner is asked.
  ///   - headerSizeLimit: The most bytes of all heads and trailers of the response; `nil` uses the session's limit.
  package func open(
    _ request: RequestFields, method: String, hasContent: Bool, headerSizeLimit: Int? = nil,
    for owner: any HTTP2StreamOwner
  ) -> HTTP2Stream? {
    guard freeStreams > 0 else { return nil }
    let id = submit(request, hasContent: hasContent)
    guard id > 0 else { return nil }
    let limit = headerSizeLimit ?? self.headerSizeLimit
    self.headerSizeLimit = max(limit, self.headerSizeLimit)
    announce(limit)
    let stream = HTTP2Stream(
      owner, ResponseFields(to: method, headerSizeLimit: limit), hasContent: hasContent, in: &budget
    )
    stream.id = id
    streams[id] = stream
    meter.requestSent()
    return stream
  }

  /// Tells the server of a limit beyond the announced one. nghttp2 sends settings before the heads that wait, so that
  /// the server has them when the request arrives.
  private func announce(_ limit: Int) {
    guard limit > announcedLimit else { return }
    var setting = Self.headerListSize(limit)
    // Without memory for it the server keeps to the earlier limit, and the next request tries again.
    if nghttp2_submit_settings(session, 0, &setting, 1) == 0 { announcedLimit = limit }
  }

  private func submit(_ request: RequestFields, hasContent: Bool) -> Int32 {
    Self.withFields(request) { fields, count in
      guard hasContent else { return nghttp2_submit_request(session, nil, fields, count, nil, nil) }
      var provider = nghttp2_data_provider(
        source: nghttp2_data_source(ptr: nil), read_callback: Self.contentWanted)
      return nghttp2_submit_request(session, nil, fields, count, &provider, nil)
    }
  }

  /// Queues the trailers of a request, which end its side of the stream. Returns the failure if nghttp2 does not take
  /// them.
  func submitTrailers(_ trailers: RequestFields, on stream: HTTP2Stream) -> HTTP2Failure? {
    let result = Self.withFields(trailers) { nghttp2_submit_trailer(session, stream.id, $0, $1) }
    return result == 0 ? nil : .library(Int(result))
  }

  /// Calls `body` with fields in the form of nghttp2, which copies them.
  private static func withFields(
    _ fields: RequestFields, _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Int32
  ) -> Int32 {
    withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fields.lengths.count) { list in
      var index = 0
      return fields.bytes.withUnsafeBufferPointer { bytes in
        guard var address = bytes.baseAddress.map({ UnsafeMutablePointer(mutating: $0) }) else { return -1 }
        for length in fields.lengths {
          list[index] = nghttp2_nv(
            name: address, value: address + length.name, namelen: length.name, valuelen: length.value,
            flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
          address += length.name + length.value
          index += 1
        }
        return body(list.baseAddress, index)
      }
    }
  }

  /// Asks the owner of a stream for content again, after ``HTTP2ContentStep/wait``.
  package func resumeContent(of stream: HTTP2Stream) {
    guard stream.owner != nil, stream.isRequestOpen else { return }
    nghttp2_session_resume_data(session, stream.id)
  }

  /// Gives up a stream and notifies the server (RFC 9113 §5.4.2). The stream's owner is not called again.
  package func reset(_ stream: HTTP2Stream, _ code: UInt32 = HTTP2ErrorCode.cancel) {
    stream.owner = nil
    // A failed session sends GOAWAY alone.
    guard failure == nil, streams[stream.id] === stream else { return }
    nghttp2_submit_rst_stream(session, 0, stream.id, code)
    // The request is still in a queue, and will be dropped there.
    if stream.headPosition == nil { forget(stream) }
  }

  /// Stops sending the request's content. The stream ends with the response.
  package func stopSending(on stream: HTTP2Stream) {
    guard stream.isRequestOpen else { return }
    stream.isSendingStopped = true
    if stream.progress.hasEnded { endStopped(stream) }
  }

  /// Ends a stream with a complete response and a request that will stay incomplete.
  func endStopped(_ stream: HTTP2Stream) {
    guard let owner = stream.owner else { return }
    reset(stream)
    owner.streamEnded(.complete, stream)
  }

  /// Ends a stream with a malformed or too large response.
  func refuse(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd, _ code: UInt32) {
    guard let owner = stream.owner else { return }
    reset(stream, code)
    owner.streamEnded(end, stream)
  }

  /// Notes that bytes of the response were used, so that the server may send as many more. The window of a stream
  /// grows while its owner keeps pace.
  package func consumed(_ count: Int, of stream: HTTP2Stream) {
    guard count > 0, streams[stream.id] === stream else { return }
    let larger = stream.window.read(count, in: &budget)
    nghttp2_session_consume_stream(session, stream.id, count)
    if let larger { nghttp2_session_set_local_window_size(session, 0, stream.id, Int32(larger)) }
  }
}

/// The frames that wait for the connection, as bytes in one piece, so that the frames of a turn leave in one write.
/// Belongs to the loop's thread.
final class FrameOutput {
  private static let smallest = 4_096
  /// A larger block is returned when it is empty.
  private static let largestKept = 16_384

  @exclusivity(unchecked) private var block: UnsafeMutableRawBufferPointer
  @exclusivity(unchecked) private var start = 0
  @exclusivity(unchecked) private var end = 0

  init() { block = UnsafeMutableRawBufferPointer(start: nil, count: 0) }

  deinit { block.deallocate() }

  var count: Int { end - start }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[start..<end]) }

  func append(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    reserve(bytes.count).copyMemory(from: bytes)
    end += bytes.count
  }

  /// Returns memory after the bytes, which becomes part of them by ``commit(_:)``. It is valid until then.
  func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer {
    if block.count - end < count { makeRoom(for: count) }
    return UnsafeMutableRawBufferPointer(rebasing: block[end..<end + count])
  }

  func commit(_ count: Int) {
    precondition(count >= 0 && count <= block.count - end, "more bytes than reserved")
    end += count
  }

  /// Removes the first bytes, which the connection has accepted.
  func drop(_ count: Int) {
    precondition(count >= 0 && count <= self.count, "more bytes taken than there are")
    start += count
    guard start == end else { return }
    start = 0
    end = 0
    guard block.count > Self.largestKept else { return }
    block.deallocate()
    block = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  private func makeRoom(for count: Int) {
    let length = self.count
    var capacity = max(block.count, Self.smallest)
    while capacity < length + count { capacity *= 2 }
    guard capacity > block.count else {
      // Only the position is used up, not the memory.
      if let base = block.baseAddress { base.copyMemory(from: base + start, byteCount: length) }
      start = 0
      end = length
      return
    }
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    larger.copyMemory(from: bytes)
    block.deallocate()
    block = larger
    start = 0
    end = length
  }
}
