import HTTPWire

/// An exchange on its stream of HTTP/2. Belongs to the loop's thread.
///
/// Bytes that the exchange cannot accept yet are buffered here. They hold back the window of the stream, so that a
/// server cannot send more than that window. Heads that arrive while the exchange is suspended are kept, too; they have
/// the limit of all heads of a response. The connection itself goes on, so that other streams do.
final class StreamedExchange: HTTP2StreamOwner {
  /// A head of the response, with what was known of the stream when the head arrived.
  private struct ArrivedHead {
    let head: ResponseHead
    /// Whether it belongs to the final response.
    let isFinal: Bool
    let framing: MessageFraming
    let length: Int64?
    /// Whether a part of the request's content had still to be sent.
    let isRequestOpen: Bool
  }

  private unowned let connection: HTTP2Connection
  private let ticket: UInt64
  /// `nil` once the exchange has ended, or has left the stream.
  @exclusivity(unchecked) private var exchange: Exchange?
  @exclusivity(unchecked) private var stream: HTTP2Stream?
  /// The heads that have arrived while the exchange was suspended. Bytes that follow them are in ``unread``.
  @exclusivity(unchecked) private var heads: [ArrivedHead] = []
  /// Empty once the exchange has accepted all bytes.
  @exclusivity(unchecked) private var unread: [UInt8] = []
  /// The number of bytes at the beginning of ``unread`` that the exchange has accepted.
  @exclusivity(unchecked) private var accepted = 0
  /// The end of the stream, while the exchange still has to take bytes.
  @exclusivity(unchecked) private var end: HTTP2StreamEnd?
  private let hasContent: Bool
  /// The position in the output at which content begins that the system has not accepted; `nil` without any.
  @exclusivity(unchecked) private var contentStart: UInt64?
  /// Whether the content waits for the response 100.
  @exclusivity(unchecked) private var awaitsContinue: Bool

  /// Opens a stream for an exchange. Returns `nil` if none is free. ``isOver`` is set if the request cannot be sent.
  init?(_ exchange: Exchange, on connection: HTTP2Connection, isReused: Bool) {
    guard let request = exchange.request else { return nil }
    self.connection = connection
    self.exchange = exchange
    ticket = exchange.ticket
    let content = RequestHeadWriter.Content(of: request)
    hasContent = content != .none && content != .length(0)
    awaitsContinue = hasContent && !exchange.omitsExpect && request.expectsContinue
    exchange.connection = connection
    exchange.phase = .running
    exchange.isReused = isReused
    do throws(RequestFields.Violation) {
      guard try open(request, exchange) else {
        exchange.connection = nil
        exchange.phase = .connecting
        return nil
      }
    } catch {
      fail(HTTP2Connection.failure(error, of: request))
    }
  }

  /// The queue that has admitted the exchange.
  var hostQueue: HostQueues.Queue? { exchange?.hostQueue }

  /// Whether the exchange has got a complete response, although its request is not sent completely.
  var isAnswered: Bool { stream?.hasResponseEnded == true && hasDelivered }

  /// Whether the exchange has got everything that has arrived before the end.
  private var hasDelivered: Bool { heads.isEmpty && unread.isEmpty }

  /// Whether the exchange has left the stream.
  var isOver: Bool { exchange == nil }

  private func open(_ request: WireRequest, _ exchange: Exchange) throws(RequestFields.Violation) -> Bool {
    let head = try RequestFields(request, omitsExpect: exchange.omitsExpect)
    let stream = connection.session.open(
      head, method: request.method, hasContent: hasContent,
      headerSizeLimit: request.profile.options.headerSizeLimit, for: self)
    guard let stream else { return false }
    self.stream = stream
    exchange.sizes.requestHead = Int64(head.lineSize)
    exchange.times.requestStart = Clock.now()
    exchange.noteActivity()
    exchange.noteTime { [hasContent] in $0.requestBegan($1, hasBody: hasContent) }
    if let observer = request.wireObserver {
      exchange.sentHead = head.lines
      exchange.sentHead.withUnsafeBytes { observer.bytesMoved(.requestHead, $0) }
    }
    if awaitsContinue {
      exchange.continueTime = Clock.now(plus: HTTP1Exchange.continueTimeout)
      connection.table.noteExpiry(of: exchange)
    }
    if exchange.phaseTimer?.overdue != nil, let failure = exchange.timeout() { fail(failure) }
    return true
  }

  /// Notes that the system has accepted the head. Returns false if it has not, and still may.
  func noteSentHead() -> Bool {
    guard let exchange, let stream else { return true }
    guard connection.session.hasSentHead(of: stream) else { return false }
    exchange.noteActivity()
    if !hasContent { noteSentRequest(exchange) }
    return true
  }

  /// Notes which content the system has accepted. Returns false while some of it is in the output.
  func noteSentContent() -> Bool {
    guard let exchange, let stream, let contentStart else { return true }
    let session = connection.session
    // Bytes of other streams may come first.
    if session.sentCount > contentStart { exchange.noteActivity() }
    guard session.hasSentContent(of: stream) else { return false }
    self.contentStart = nil
    if !stream.isSending { noteSentRequest(exchange) }
    return true
  }

  private func noteSentRequest(_ exchange: Exchange) {
    exchange.times.requestEnd = Clock.now()
    exchange.noteTime { $0.requestSent($1) }
  }

  // MARK: Ends

  /// Releases the exchange; the stream is reset unless it has ended.
  private func leave() -> Exchange? {
    guard let exchange else { return nil }
    self.exchange = nil
    heads = []
    unread = []
    accepted = 0
    if let stream { connection.session.reset(stream) }
    stream = nil
    connection.left(exchange)
    return exchange
  }

  func abandon() { _ = leave() }

  private func complete() {
    guard let exchange else { return }
    let outcome = exchange.completed()
    _ = leave()
    connection.table.end(exchange, outcome)
  }

  private func fail(_ failure: TransportFailure) {
    guard let exchange else { return }
    // The caller did not want the rest of this body, so losing it is not a failure.
    guard exchange.dropped == nil else { return complete() }
    let failure = failure.with(metrics: exchange.metrics())
    _ = leave()
    connection.table.end(exchange, .failure(failure))
  }

  func streamEnded(_ end: HTTP2StreamEnd, _ stream: HTTP2Stream) {
    self.stream = nil
    guard let exchange else { return }
    // A sink that has received all bytes, and is full now, does not delay the end.
    guard hasDelivered, !exchange.flow.isSuspended else {
      self.end = end
      // The server does not count the stream any more, so an exchange that waits can begin before this one leaves.
      return connection.streamsChanged()
    }
    finish(end)
  }

  private func finish(_ end: HTTP2StreamEnd) {
    guard let exchange else { return }
    // The request is not the cause, even if it is the first one of its connection.
    if connection.session.unreadableStream != nil { exchange.mayFollowAnEnd = true }
    switch end {
    case .complete: complete()
    case .notSent:
      // A server that has sent GOAWAY accepts the request on another connection.
      guard let goAway = connection.session.goAway else { return lost(violation(exchange), .notSent) }
      refused(goAway.code, exchange)
    case .overLimit:
      // Without pauses, a server that allows no streams would get one connection after another.
      lost(overLimit(exchange), .refused, isBusy: !connection.allowsStreams)
    case .refused(let code): refused(code, exchange)
    case .reset(let code):
      fail(
        TransportFailure(
          .connectionLost,
          "\(exchange.hostName) reset the stream (\(HTTP2Failure.name(of: code))) before the response was complete.\(exchange.warning(.unknown))"
        ))
    case .invalid(let text):
      fail(
        TransportFailure(.badServerResponse, HTTP2Failure.violation(text).message(host: exchange.hostName)))
    case .headTooLarge: fail(exchange.headTooLarge)
    case .failed(let failure): connectionFailed(failure, exchange)
    }
  }

  /// Returns the failure of a request that was not sent before the server has violated HTTP/2, or has refused the
  /// connection; `nil` if the connection has ended for another reason.
  private func violation(_ exchange: Exchange) -> TransportFailure? {
    guard let failure = connection.session.failure else { return nil }
    switch failure {
    case .violation, .flood:
      return TransportFailure(.badServerResponse, failure.message(host: exchange.hostName))
    case .closed: return connection.endFailure.flatMap { $0.kind == .connectionLost ? nil : $0 }
    case .fieldTooLarge, .otherResponse, .system: return nil
    }
  }

  /// Returns the reason for the end of the connection; `nil` if there is none. The code of GOAWAY says more than the
  /// failure of a connection that the server has broken afterwards.
  private func reason(ofGoAway code: UInt32?, _ message: String) -> TransportFailure? {
    if let code, code != HTTP2ErrorCode.none { return TransportFailure(.connectionLost, message) }
    return connection.endFailure
  }

  /// Returns the failure of a request that did not get a stream on any connection.
  private func overLimit(_ exchange: Exchange) -> TransportFailure {
    TransportFailure(
      .connectionLost,
      "\(exchange.hostName) allows too few streams on its connections (SETTINGS_MAX_CONCURRENT_STREAMS), so the \(exchange.request?.method ?? "GET") request was not sent. Try it again later."
    )
  }

  /// Repeats a request that the server did not process, if that is possible.
  private func refused(_ code: UInt32, _ exchange: Exchange) {
    // nghttp2 closes the streams above the last one of GOAWAY with REFUSED_STREAM, whatever code GOAWAY gives.
    let reason = connection.session.goAway?.code ?? code
    if code == HTTP2ErrorCode.http11Required || reason == HTTP2ErrorCode.http11Required {
      exchange.requiresHTTP1 = true
    }
    lost(
      exchange.unanswered(.refused, code: reason), .refused, isBusy: Self.isBusy(reason),
      takesNone: connection.session.goAway?.lastStream == 0)
  }

  private func connectionFailed(_ failure: HTTP2Failure, _ exchange: Exchange) {
    let message = failure.message(host: exchange.hostName)
    switch failure {
    case .violation, .flood: fail(TransportFailure(.badServerResponse, message))
    case .system: fail(TransportFailure(.unknown, message))
    case .fieldTooLarge: fail(exchange.fieldTooLarge(failure))
    case .otherResponse where exchange.times.responseStart == 0:
      lost(TransportFailure(.connectionLost, message), .unknown)
    case .otherResponse: fail(TransportFailure(.connectionLost, message))
    case .closed(let code) where exchange.times.responseStart == 0:
      lost(reason(ofGoAway: code, message), .unknown)
    case .closed(let code):
      fail(reason(ofGoAway: code, message) ?? TransportFailure(.connectionLost, message))
    }
  }

  /// Releases an exchange that got no response, and repeats the request if that is safe.
  private func lost(
    _ failure: TransportFailure?, _ evidence: RepeatDecision.Evidence, isBusy: Bool = false,
    takesNone: Bool = false
  ) {
    guard let exchange = leave() else { return }
    connection.table.lost(
      exchange,
      failure.map { exchange.warned($0, evidence) } ?? exchange.unanswered(evidence),
      evidence, isBusy: isBusy, takesNone: takesNone)
  }

  /// Whether a server that refuses with this code should be left alone for a while.
  private static func isBusy(_ code: UInt32) -> Bool {
    code != HTTP2ErrorCode.none && code != HTTP2ErrorCode.http11Required
  }

  // MARK: The response

  func responseBegan(_ stream: HTTP2Stream) {
    guard let exchange else { return }
    exchange.times.responseStart = Clock.now()
    exchange.noteActivity()
  }

  func informationalHeadReceived(_ head: ResponseHead, _ stream: HTTP2Stream) {
    received(head, isFinal: false, stream)
  }

  func headReceived(_ head: ResponseHead, _ stream: HTTP2Stream) {
    exchange?.continueTime = .max
    received(head, isFinal: true, stream)
  }

  private func received(_ head: ResponseHead, isFinal: Bool, _ stream: HTTP2Stream) {
    guard let exchange else { return }
    note(head, exchange)
    let arrived = ArrivedHead(
      head: head, isFinal: isFinal, framing: stream.framing, length: stream.announcedLength,
      isRequestOpen: stream.isRequestOpen)
    guard !exchange.flow.isSuspended else { return heads.append(arrived) }
    deliver(arrived, to: exchange)
  }

  private func note(_ head: ResponseHead, _ exchange: Exchange) {
    exchange.noteActivity()
    let line = "\(head.version.text) \(head.status) \r\n"
    exchange.sizes.responseHead += Int64(line.utf8.count + head.block.bytes.count + 2)
    guard let observer = exchange.request?.wireObserver else { return }
    let text = Array(line.utf8) + head.block.bytes + Array("\r\n".utf8)
    text.withUnsafeBytes { observer.bytesMoved(.responseHead, $0) }
  }

  private func deliver(_ arrived: ArrivedHead, to exchange: Exchange) {
    let head = arrived.head
    guard arrived.isFinal else {
      exchange.informationalHeadReceived(head)
      if head.status == 100 { mayContinue() }
      return
    }
    if head.status == 417, hasContent, !exchange.omitsExpect, exchange.request?.expectsContinue == true,
      arrived.isRequestOpen, exchange.isRepeatable
    {
      exchange.omitsExpect = true
      guard let exchange = leave() else { return }
      return connection.table.sendAgain(exchange)
    }
    // A server that refuses a request does not want its content, and content that has not begun is not sent any more.
    let stops = head.status >= 400 || awaitsContinue
    if stops {
      awaitsContinue = false
      exchange.sendingStopped()
    }
    let isReusable = stops || !arrived.isRequestOpen
    switch exchange.headReceived(head, arrived.framing, length: arrived.length, isReusable: isReusable) {
    case .goOn, .hold:
      if exchange.flow.isSuspended { exchange.alignPhaseTimer() }
      // After the delivery, because the stream ends with that if its response is complete.
      if stops, let stream { connection.session.stopSending(on: stream) }
    case .complete: complete()
    case .fail(let failure): fail(failure)
    }
  }

  /// Gives the exchange the heads that have arrived while it was suspended.
  private func deliverHeads() {
    while let exchange, !exchange.flow.isSuspended, !heads.isEmpty {
      deliver(heads.removeFirst(), to: exchange)
    }
  }

  func contentReceived(_ bytes: UnsafeRawBufferPointer, _ stream: HTTP2Stream) {
    guard let exchange else { return }
    exchange.sizes.responseBody += Int64(bytes.count)
    exchange.request?.wireObserver?.bytesMoved(.responseBody, bytes)
    guard unread.isEmpty, exchange.flow.mayReceive else {
      unread += bytes
      return
    }
    exchange.noteActivity()
    let count = deliver(bytes)
    if !isOver { unread += bytes[count...] }
  }

  /// Gives bytes to the exchange, and returns the number of those that it has accepted.
  private func deliver(_ bytes: UnsafeRawBufferPointer) -> Int {
    var rest = bytes
    while let exchange, !rest.isEmpty {
      guard exchange.flow.mayReceive else { break }
      let most = exchange.bandwidth == nil ? exchange.pieceLimit : BandwidthMeter.largestPiece
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(most))
      switch exchange.deliver(piece) {
      case .goOn:
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
        if let stream { connection.session.consumed(piece.count, of: stream) }
        continue
      case .hold: exchange.alignPhaseTimer()
      case .complete: complete()
      case .fail(let failure): fail(failure)
      }
      break
    }
    return bytes.count - rest.count
  }

  /// Gives the exchange the bytes that it could not accept before. Each byte is moved at most twice, however small the
  /// pieces are that it accepts.
  private func deliverUnread() {
    // The exchange may end, and release the bytes.
    let bytes = unread
    let count = bytes.withUnsafeBytes { deliver(UnsafeRawBufferPointer(rebasing: $0[accepted...])) }
    _ = consume bytes
    accepted += count
    guard accepted > unread.count / 2 else { return }
    if accepted < unread.count { unread.removeFirst(accepted) } else { unread = [] }
    accepted = 0
  }

  func trailersReceived(_ trailers: FieldBlock, _ stream: HTTP2Stream) {
    guard let exchange else { return }
    exchange.sizes.responseHead += Int64(trailers.bytes.count)
    if !trailers.bytes.isEmpty { exchange.trailersReceived(trailers) }
  }

  func responseEnded(_ stream: HTTP2Stream) {}

  // MARK: The request

  /// Sends the content that has waited for the response 100.
  func mayContinue() {
    guard awaitsContinue, let exchange else { return }
    awaitsContinue = false
    exchange.continueTime = .max
    if let stream { connection.session.resumeContent(of: stream) }
  }

  /// Continues in both directions after a wait.
  func goOn() {
    deliverHeads()
    if !unread.isEmpty, exchange?.flow.mayReceive == true { deliverUnread() }
    guard let exchange else { return }
    if let end, hasDelivered, !exchange.flow.isSuspended { return finish(end) }
    if let stream { connection.session.resumeContent(of: stream) }
  }

  func contentWanted(into room: UnsafeMutableRawBufferPointer, _ stream: HTTP2Stream) -> HTTP2ContentStep {
    guard let exchange, !awaitsContinue else { return .wait }
    switch exchange.nextContent(into: room) {
    case .bytes(let count):
      noteOutput()
      exchange.request?.wireObserver?.bytesMoved(
        .requestBody, UnsafeRawBufferPointer(rebasing: room.prefix(count)))
      exchange.contentSent(count)
      let isLast =
        exchange.count.sent == exchange.count.expectedToSend && exchange.request?.trailers == nil
      if isLast { exchange.noteTime { $0.bodyEnded($1) } }
      return .bytes(count, isLast: isLast)
    case .wait:
      exchange.alignPhaseTimer()
      return .wait
    case .end(let trailers):
      noteOutput()
      exchange.noteTime { $0.bodyEnded($1) }
      return trailers.isEmpty ? .end : send(trailers, of: exchange)
    case .fail(let failure):
      fail(failure)
      return .failed
    }
  }

  /// Sends the trailers after the content.
  private func send(_ trailers: [HTTPHeader], of exchange: Exchange) -> HTTP2ContentStep {
    guard let request = exchange.request else { return .wait }
    do throws(RequestFields.Violation) {
      let fields = try RequestFields(trailers: trailers)
      if let observer = request.wireObserver {
        fields.trailerLines.withUnsafeBytes { observer.bytesMoved(.requestHead, $0) }
      }
      return .trailers(fields)
    } catch {
      fail(HTTP2Connection.failure(error, of: request))
      return .failed
    }
  }

  /// Notes that content, or its end, is about to be added to the output, where it waits until the system accepts it.
  private func noteOutput() {
    guard contentStart == nil else { return }
    contentStart = connection.session.outputPosition
    connection.noteContent(of: self)
  }
}
