import HTTPWire

// The response on its connection.
extension HTTP1Connection {
  /// Reads as much of the response as has arrived and the exchange takes.
  func receive() {
    if let exchange { receive(for: exchange) }
  }

  private func receive(for exchange: Exchange) {
    if !unread.isEmpty, exchange.flow.mayReceive {
      let bytes = unread
      unread = []
      bytes.withUnsafeBytes { process($0, of: exchange) }
    }
    let room = table.lendRoom()
    defer { table.giveBack(room) }
    var left = Self.turnSize
    // While its exchange waits for a token, the connection has nothing to read.
    while carries(exchange), machine != nil, unread.isEmpty {
      let limit = exchange.readLimit()
      guard limit > 0 else { return }
      guard left > 0 else { return continueLater() }
      let most = exchange.bandwidth == nil ? limit : BandwidthMeter.largestPiece
      switch read(into: UnsafeMutableRawBufferPointer(rebasing: room.prefix(most))) {
      case .moved(let count):
        left -= max(count, Self.turnSize / Self.mostSteps)
        // Bytes after the response are no reason to wait for the end of the request.
        if !isAnswered(exchange) { exchange.noteActivity() }
        process(UnsafeRawBufferPointer(rebasing: room.prefix(count)), of: exchange)
      case .waitsToRead, .waitsToWrite: return
      case .ended: return peerClosed(isAnnounced: true, nil)
      case .failed(let failure): return peerClosed(isAnnounced: false, failure)
      case .undecided, .asksForIdentity: return identityAsked(of: exchange)
      }
    }
  }

  /// Processes bytes of the response. Retains the bytes that the exchange cannot accept yet.
  private func process(_ bytes: UnsafeRawBufferPointer, of exchange: Exchange) {
    var position = 0
    let isFirst = exchange.times.responseStart == 0
    while carries(exchange), let receiving = machine?.receiving {
      // The response is over, and the request is still being sent.
      if case .done = receiving { return act(on: machine?.handle(.excessBytes) ?? .none) }
      noteFirstByte(of: exchange)
      let start = position
      let isBody = exchange.head != nil
      let step = reader.read(bytes, from: &position)
      // Not at the end of the exchange, because a limit or a cancellation may end it.
      exchange.sizes.responseHead = Int64(reader.headSize)
      note(UnsafeRawBufferPointer(rebasing: bytes[start..<position]), isBody: isBody, of: exchange)
      switch step {
      case .needsMore: return mayWrite()
      case .informational(let head):
        exchange.informationalHeadReceived(head)
        act(on: machine?.handle(.informational(head.status)) ?? .none)
      case .head(let head): headReceived(head, of: exchange)
      case .content(let range):
        guard contentReceived(bytes, range, &position, of: exchange) else { return }
      case .end:
        if reader.hasTrailers, let trailers = reader.trailers { exchange.trailersReceived(trailers) }
        let action = machine?.handle(.responseEnded(hasMore: position < bytes.count)) ?? .none
        // Otherwise the exchange goes on, because the request is still being sent.
        if isFirst, case .complete = action { exchange.times.responseEnd = exchange.times.responseStart }
        return act(on: action)
      case .refuseHead: return fail(exchange.headTooLarge)
      case .refuse(let violation): return fail(exchange.invalid(violation))
      }
    }
  }

  /// Sends what an informational response has allowed to be sent.
  private func mayWrite() { if isSendingContent { write() } }

  private func noteFirstByte(of exchange: Exchange) {
    guard exchange.times.responseStart == 0 else { return }
    exchange.times.responseStart = Clock.now()
    machine?.bytesReceived()
  }

  /// Counts and reports bytes that the reader has passed.
  private func note(_ bytes: UnsafeRawBufferPointer, isBody: Bool, of exchange: Exchange) {
    guard !bytes.isEmpty else { return }
    if isBody { exchange.sizes.responseBody += Int64(bytes.count) }
    guard exchange.isObserved else { return }
    exchange.request?.wireObserver?.bytesMoved(isBody ? .responseBody : .responseHead, bytes)
  }

  private func headReceived(_ head: ResponseHead, of exchange: Exchange) {
    let persistence = ConnectionPersistence(head, framing: reader.framing, isFromProxy: pool.forwards)
    idleTime = persistence.idleTime
    // Content that can be read once may have been read since the exchange began.
    machine?.isRepeatable = exchange.isRepeatable
    let action =
      machine?.handle(
        .final(
          status: head.status, keepsAlive: persistence.isPersistent,
          endsWithConnection: reader.endsWithConnection)) ?? .none
    switch action {
    case .fail(.unrequestedUpgrade):
      return fail(exchange.invalid(.unrequestedUpgrade))
    case .sendAgainWithoutExpect, .fail: return act(on: action)
    default: break
    }
    exchange.continueTime = .max
    let isReusable = persistence.isPersistent && hasSentAll
    if exchange.login != nil, exchange.continuesLogin(head, reader.framing, isReusable: isReusable) {
      return exchange.dropped?.decision == .close ? complete(reuse: false) : act(on: action)
    }
    let step = exchange.headReceived(
      head, reader.framing, length: reader.announcedLength,
      isReusable: isReusable && !exchange.bindsConnection)
    switch step {
    case .goOn, .hold:
      if exchange.flow.isSuspended { exchange.alignPhaseTimer() }
      act(on: action)
    case .complete: complete(reuse: false)
    case .fail(let failure): fail(failure)
    }
  }

  /// Delivers content. Returns false if the bytes that follow are not processed now.
  private func contentReceived(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, _ position: inout Int, of exchange: Exchange
  ) -> Bool {
    guard exchange.flow.mayReceive else { return hold(bytes, from: range.lowerBound, of: exchange) }
    let piece = UnsafeRawBufferPointer(rebasing: bytes[range.prefix(exchange.pieceLimit)])
    switch exchange.deliver(piece) {
    case .goOn:
      let start = position
      reader.contentTaken(piece.count, from: &position)
      note(UnsafeRawBufferPointer(rebasing: bytes[start..<position]), isBody: true, of: exchange)
      return true
    case .hold: return hold(bytes, from: range.lowerBound, of: exchange)
    case .complete: complete(reuse: false)
    case .fail(let failure): fail(failure)
    }
    return false
  }

  private func hold(_ bytes: UnsafeRawBufferPointer, from position: Int, of exchange: Exchange) -> Bool {
    unread = Array(bytes[position...])
    exchange.alignPhaseTimer()
    return false
  }

  /// Ends an exchange because the server requests a client certificate, which is chosen outside of the engine. The
  /// server does not process the request without the certificate, so it may be sent again with one.
  private func identityAsked(of exchange: Exchange) {
    let message = "\(exchange.hostName) asks for a client certificate for this request."
    guard exchange.times.responseStart == 0, exchange.isRepeatable else {
      let reason =
        exchange.isRepeatable ? "its response has begun" : "its body can be read only once"
      return fail(
        TransportFailure(
          .clientCertificateRequired,
          "\(message) It cannot be sent again with one, because \(reason). Set the client identity beforehand."
        ))
    }
    fail(TransportFailure(.identityUndecided, message))
  }

  // MARK: The end of the connection

  private func peerClosed(isAnnounced: Bool, _ failure: TransportFailure?) {
    let action = machine?.handle(.peerClosed(isAnnounced: isAnnounced)) ?? .none
    if case .fail = action, let refusal = tls?.refusal { return fail(refusal) }
    switch action {
    case .fail(.unanswered): unanswered(failure ?? outgoing.failure)
    case .fail(.cutOff): fail(failure.flatMap { explained($0) } ?? explained(.cutOff))
    default: act(on: action)
    }
  }

  /// Returns a failure of the connection within a response, unless there is a better explanation of it.
  private func explained(_ failure: TransportFailure) -> TransportFailure? {
    reader.endsWithConnection && tls != nil ? nil : failure
  }

  func explained(_ failure: HTTP1Exchange.Failure) -> TransportFailure {
    let host = exchange?.hostName ?? "the host"
    let message =
      switch failure {
      case .unanswered: "\(host) closed the connection without a response."
      case .unrequestedUpgrade: HeadViolation.unrequestedUpgrade.message
      case .cutOff where exchange?.head == nil:
        "\(host) closed the connection before the head of its response was complete."
      case .cutOff where reader.framing.isChunked: "\(host) ended the response before its last chunk."
      case .cutOff where reader.endsWithConnection && tls != nil:
        "\(host) closed the connection without the TLS alert that ends a body without length. A part of the body may be missing."
      case .cutOff: "\(host) closed the connection before the response was complete."
      }
    return TransportFailure(failure == .unrequestedUpgrade ? .badServerResponse : .connectionLost, message)
  }
}
