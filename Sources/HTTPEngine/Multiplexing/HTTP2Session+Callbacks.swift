import CNghttp2
import HTTPWire

// The callbacks of nghttp2, which come while it reads and writes.
extension HTTP2Session {
  private static let frameHead = 9
  private static let failed = Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
  private static let isDeferred = Int(NGHTTP2_ERR_DEFERRED.rawValue)

  /// The functions that nghttp2 calls. `nonisolated(unsafe)`, because it is a pointer to a table that never changes.
  nonisolated(unsafe) static let callbacks: OpaquePointer? = {
    var callbacks: OpaquePointer?
    guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
    setReceiving(callbacks)
    setSending(callbacks)
    return callbacks
  }()

  private static func setReceiving(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, head, context in
      HTTP2Session.with(context, head) { $0.frameBegan($1) }
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
      HTTP2Session.with(context, frame) { $0.fieldsBegan($1) }
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      _, frame, name, nameLength, value, valueLength, _, context in
      HTTP2Session.with(context, frame) {
        $0.fieldReceived(
          $1.hd.stream_id, UnsafeRawBufferPointer(start: name, count: nameLength),
          UnsafeRawBufferPointer(start: value, count: valueLength))
      }
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
      HTTP2Session.with(context, frame) { $0.frameReceived($1) }
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
      _, _, stream, bytes, count, context in
      HTTP2Session.with(context) {
        $0.contentReceived(stream, UnsafeRawBufferPointer(start: bytes, count: count))
      }
    }
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, error, context in
      HTTP2Session.with(context, frame) { $0.frameRefused($1, error) }
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, context in
      HTTP2Session.with(context) { $0.streamClosed(stream, code) }
    }
  }

  private static func setSending(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks) { _, frame, context in
      HTTP2Session.with(context, frame) { $0.frameWillBeSent($1) }
    }
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, context in
      HTTP2Session.with(context, frame) { $0.frameNotSent($1) }
    }
    nghttp2_session_callbacks_set_send_data_callback(callbacks) { _, frame, head, length, _, context in
      guard let head else { return HTTP2Session.failed }
      return HTTP2Session.with(context, UnsafePointer(frame)) {
        $0.contentSent($1, UnsafeRawBufferPointer(start: head, count: HTTP2Session.frameHead), length)
      }
    }
  }

  /// Calls `body` with the session of a callback. nghttp2 keeps no reference to it: it ends with the session.
  private static func with(_ context: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> Int32) -> Int32 {
    guard let context else { return failed }
    return Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef { session in
      let result = body(session)
      return session.failureOfCallback == nil ? result : failed
    }
  }

  private static func with<Part>(
    _ context: UnsafeMutableRawPointer?, _ part: UnsafePointer<Part>?, _ body: (HTTP2Session, Part) -> Int32
  ) -> Int32 {
    guard let part else { return failed }
    return with(context) { body($0, part.pointee) }
  }

  // MARK: Receiving

  /// Stops nghttp2, and then the session.
  private func stop(_ failure: HTTP2Failure, _ code: UInt32 = HTTP2ErrorCode.protocolError) -> Int32 {
    fail(failure, code)
    return Self.failed
  }

  private func frameBegan(_ head: nghttp2_frame_hd) -> Int32 {
    switch UInt32(head.type) {
    case NGHTTP2_PUSH_PROMISE.rawValue:
      return stop(.violation("it pushes a response, although that is switched off (RFC 9113 §8.4)."))
    case NGHTTP2_HEADERS.rawValue:
      block = FieldBlockProgress(stream: head.stream_id)
      block.frameBegan(head)
    case NGHTTP2_CONTINUATION.rawValue:
      block.frameBegan(head)
      // Otherwise full frames without a field could continue without end.
      if block.size > largestBlock {
        unreadableStream = block.stream
        return stop(
          .violation("a head goes on beyond the limit of its size."), HTTP2ErrorCode.enhanceYourCalm)
      }
    default: break
    }
    return 0
  }

  private func fieldsBegan(_ frame: nghttp2_frame) -> Int32 {
    guard let stream = stream(frame.hd.stream_id), let owner = stream.owner else { return 0 }
    if !stream.progress.hasFrame {
      stream.progress.hasFrame = true
      owner.responseBegan(stream)
    }
    return 0
  }

  private func fieldReceived(
    _ id: Int32, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) -> Int32 {
    guard let stream = stream(id), let owner = stream.owner else { return 0 }
    perform(stream.fields.received(name: name, value: value), stream, owner)
    return 0
  }

  private func perform(_ action: ResponseFields.Action, _ stream: HTTP2Stream, _ owner: any HTTP2StreamOwner)
  {
    switch action {
    case .keep: break
    case .inform(let head): owner.informationalHeadReceived(head, stream)
    case .deliver(let head):
      stream.progress.hasHead = true
      owner.headReceived(head, stream)
    case .trailers(let trailers): owner.trailersReceived(trailers, stream)
    case .refuseHead: refuse(stream, .headTooLarge, HTTP2ErrorCode.cancel)
    case .refuse(let violation): refuse(stream, .invalid(violation.message), HTTP2ErrorCode.protocolError)
    }
  }

  private func contentReceived(_ id: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32 {
    nghttp2_session_consume_connection(session, bytes.count)
    guard let stream = stream(id), let owner = stream.owner else { return 0 }
    stream.progress.hasFrame = true
    if let violation = stream.fields.dataReceived(bytes.count) {
      refuse(stream, .invalid(violation.message), HTTP2ErrorCode.protocolError)
    } else {
      stream.window.received(bytes.count)
      owner.contentReceived(bytes, stream)
    }
    return 0
  }

  private func frameReceived(_ frame: nghttp2_frame) -> Int32 {
    switch UInt32(frame.hd.type) {
    case NGHTTP2_HEADERS.rawValue: fieldsEnded(frame.hd)
    case NGHTTP2_DATA.rawValue where Self.endsStream(frame.hd): contentEnded(frame.hd.stream_id)
    case NGHTTP2_RST_STREAM.rawValue: stream(frame.hd.stream_id)?.isResetByServer = true
    case NGHTTP2_SETTINGS.rawValue where UInt32(frame.hd.flags) & NGHTTP2_FLAG_ACK.rawValue == 0:
      settingsReceived()
    case NGHTTP2_GOAWAY.rawValue: goAwayReceived(frame.goaway)
    default: break
    }
    return 0
  }

  private static func endsStream(_ head: nghttp2_frame_hd) -> Bool {
    UInt32(head.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
  }

  private func fieldsEnded(_ head: nghttp2_frame_hd) {
    guard let stream = stream(head.stream_id), let owner = stream.owner else { return }
    perform(stream.fields.sectionEnded(endsStream: Self.endsStream(head)), stream, owner)
    if Self.endsStream(head) { responseEnded(stream) }
  }

  private func contentEnded(_ id: Int32) {
    guard let stream = stream(id), stream.owner != nil else { return }
    stream.progress.hasFrame = true
    if let violation = stream.fields.streamEnded() {
      refuse(stream, .invalid(violation.message), HTTP2ErrorCode.protocolError)
    } else {
      responseEnded(stream)
    }
  }

  private func responseEnded(_ stream: HTTP2Stream) {
    // The owner may have given up the stream when it received the head or the trailers.
    guard let owner = stream.owner else { return }
    stream.progress.hasEnded = true
    owner.responseEnded(stream)
    if stream.isSending, stream.isSendingStopped { endStopped(stream) }
  }

  /// Gives back the last requests that the server's limit does not allow any more. nghttp2 would keep them until other
  /// streams have ended, while another connection may have a stream for them.
  private func settingsReceived() {
    hasSettings = true
    streamLimitChanged?()
    let excess = streams.count - streamLimit
    guard excess > 0 else { return }
    for stream in unsentStreams.suffix(excess) { giveBack(stream, .overLimit) }
  }

  private func goAwayReceived(_ frame: nghttp2_goaway) {
    goAway = (frame.last_stream_id, frame.error_code)
    // nghttp2 closes streams above the last one, but not those with a head that was not encoded.
    for stream in unsentStreams { giveBack(stream, .notSent) }
    streamLimitChanged?()
  }

  /// The streams with a head that was not encoded, in the order in which they were opened.
  private var unsentStreams: [HTTP2Stream] {
    streams.values.filter { $0.headPosition == nil }.sorted { $0.id < $1.id }
  }

  /// Drops a request that was not encoded.
  private func giveBack(_ stream: HTTP2Stream, _ end: HTTP2StreamEnd) {
    let owner = stream.owner
    reset(stream)
    owner?.streamEnded(end, stream)
  }

  /// Notes the violation for which nghttp2 will reset a stream.
  private func frameRefused(_ frame: nghttp2_frame, _ error: Int32) -> Int32 {
    guard frame.hd.stream_id > 0, let stream = stream(frame.hd.stream_id) else { return 0 }
    stream.violation = "a frame violates HTTP/2 (\(String(cString: nghttp2_strerror(error))), RFC 9113)."
    return 0
  }

  private func streamClosed(_ id: Int32, _ code: UInt32) -> Int32 {
    guard let stream = stream(id) else { return 0 }
    forget(stream)
    guard let owner = giveUp(stream) else {
      // Its owner has left before.
      streamFreed?()
      return 0
    }
    owner.streamEnded(stream.end(closedWith: code), stream)
    return 0
  }

  // MARK: Sending

  private func frameWillBeSent(_ frame: nghttp2_frame) -> Int32 {
    switch UInt32(frame.hd.type) {
    case NGHTTP2_HEADERS.rawValue:
      guard let stream = stream(frame.hd.stream_id) else { return 0 }
      encoding = stream
      // Trailers follow the head.
      guard stream.headPosition == nil else { return 0 }
      stream.headPosition = outputPosition
      stream.progress.wasSent = true
    case NGHTTP2_GOAWAY.rawValue where frame.goaway.error_code != HTTP2ErrorCode.none:
      violation = cause(of: frame.goaway)
    default: break
    }
    return 0
  }

  /// Returns the failure for which nghttp2 sends GOAWAY.
  private func cause(of frame: nghttp2_goaway) -> HTTP2Failure {
    // nghttp2 refuses a field that is too large as soon as it has read the length. Such a field does not fit into the
    // frame in which it begins.
    if frame.error_code == UInt32(NGHTTP2_COMPRESSION_ERROR.rawValue), block.goesOn {
      unreadableStream = block.stream
      return .fieldTooLarge
    }
    let text = UnsafeBufferPointer(start: frame.opaque_data, count: frame.opaque_data_len)
    return .violation(
      HTTP2Failure.violationText(code: frame.error_code, reason: String(decoding: text, as: UTF8.self)))
  }

  private func frameNotSent(_ frame: nghttp2_frame) -> Int32 {
    guard UInt32(frame.hd.type) == NGHTTP2_HEADERS.rawValue, let stream = stream(frame.hd.stream_id),
      stream.headPosition == nil
    else { return 0 }
    forget(stream)
    guard let owner = giveUp(stream) else {
      streamFreed?()
      return 0
    }
    owner.streamEnded(.notSent, stream)
    return 0
  }

  /// Reads content directly to the output, after the space for its frame's head.
  static let contentWanted: nghttp2_data_source_read_callback = { _, id, _, length, flags, _, context in
    guard let context, let flags else { return Int(failed) }
    return Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
      $0.readContent(id, atMost: length, &flags.pointee)
    }
  }

  private func readContent(_ id: Int32, atMost length: Int, _ flags: inout UInt32) -> Int {
    guard let stream = stream(id), let owner = stream.owner, stream.isRequestOpen else {
      return Self.isDeferred
    }
    let room = frames.reserve(Self.frameHead + length)
    let step = owner.contentWanted(
      into: UnsafeMutableRawBufferPointer(rebasing: room[Self.frameHead...]), stream)
    // The owner may have given up the stream, or have stopped it.
    guard stream.owner != nil, stream.isRequestOpen else { return Self.isDeferred }
    switch step {
    case .bytes(let count, let isLast):
      precondition(count > 0 && count <= length, "more content than there is room for")
      return ready(count, isLast, stream, &flags)
    case .end: return ready(0, true, stream, &flags)
    case .trailers(let fields):
      if let failure = submitTrailers(fields, on: stream) {
        refuse(stream, .failed(failure), HTTP2ErrorCode.cancel)
        return Self.isDeferred
      }
      flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
      return ready(0, true, stream, &flags)
    case .wait: return Self.isDeferred
    case .failed:
      reset(stream)
      return Self.isDeferred
    }
  }

  private func ready(_ count: Int, _ isLast: Bool, _ stream: HTTP2Stream, _ flags: inout UInt32) -> Int {
    flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
    if isLast {
      flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
      stream.isSending = false
    }
    return count
  }

  private func contentSent(_ frame: nghttp2_frame, _ head: UnsafeRawBufferPointer, _ length: Int) -> Int32 {
    frames.reserve(Self.frameHead + length).copyMemory(from: head)
    frames.commit(Self.frameHead + length)
    noteContent(frame.hd)
    meter.dataSent(length)
    // Otherwise nghttp2 would continue as long as content is available and the windows are open.
    return frames.count < Self.mostOutput ? 0 : NGHTTP2_ERR_PAUSE.rawValue
  }

  /// Notes where a frame of content ends in the output.
  private func noteContent(_ head: nghttp2_frame_hd) {
    guard let stream = stream(head.stream_id) else { return }
    stream.contentEnd = outputPosition
    // Otherwise trailers end the request.
    if Self.endsStream(head) { stream.requestEnd = outputPosition }
  }
}
