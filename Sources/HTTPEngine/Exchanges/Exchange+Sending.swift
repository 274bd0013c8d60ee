import FoundationEssentials
import HTTPSystem
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

  /// The file whose next bytes may be sent without reading them, as nothing else has to see or to count them; `nil`
  /// without one.
  var fileToSend: FileSource? {
    guard flow.maySend, trailerReply == nil, bandwidth == nil, let request, !request.isObserved,
      let file = request.source as? FileSource, count.sent < file.length
    else { return nil }
    return file
  }

  /// Ends the content once its trailers are known, which may run the caller's code on another thread.
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

  /// Notes that the rest of the content is not sent. Neither its source nor its trailers delay the time limits any
  /// more, because only the server can continue the exchange.
  func sendingStopped() {
    guard flow.sending != nil else { return }
    flow.sendingEnded()
    noteActivity()
    alignPhaseTimer()
  }

  /// Counts bytes of the content that the connection has accepted.
  func contentSent(_ length: Int) {
    guard length > 0 else { return }
    count.sent += Int64(length)
    noteActivity()
    if bandwidth != nil { moved(length, .upload) }
    observer?.bytesMoved(count)
  }
}

// The rounds of a login. All but the last response are dropped.
extension Exchange {
  /// Begins the login of the request. Returns the first step; `nil` if the request has no login.
  func beginLogin(in pool: Pool) -> ExchangeLogin.ExchangeLoginStep? {
    guard let request, request.hasLogin || pool.forwards else { return nil }
    let login = ExchangeLogin(request, pool.route) { [weak pool] challenge in
      pool?.proxyTicket(answering: challenge) ?? .first(for: challenge)
    }
    guard let login else { return nil }
    self.login = login
    let step = login.begin { pool.proxyProof.take() }
    // The first token belongs to a connection that has not carried another request.
    if login.bindsConnection { needsNewConnection = true }
    return step
  }

  /// Returns whether a response only continues the login. Then its body is dropped, and the next request follows when
  /// it has ended.
  ///
  /// - Parameters:
  ///   - framing: The framing of the body, as the head declares it.
  ///   - isReusable: Whether the connection can carry another request after the body.
  func continuesLogin(_ head: ResponseHead, _ framing: MessageFraming, isReusable: Bool) -> Bool {
    guard let login, isRepeatable else { return false }
    let dropped = DroppedBody(
      head, framing, method: request?.method ?? "GET", isReusable: isReusable, now: table.now,
      isPatient: true)
    let keepsConnection = isReusable && dropped.decision == .read
    if head.status != 407, let proof = login.acceptedProof { pool?.keep(proof) }
    let step = login.received(head, keepsConnection: keepsConnection) { [pool] in pool?.proxyProof.take() }
    if case .deliver = step { return false }
    // The head of a 407 is the proxy's.
    if head.status != 407 { observer?.loginHeadReceived(head) }
    login.next = step
    self.head = head
    self.dropped = dropped
    destination = .discarded
    return true
  }
}

extension LoopExchanges {
  /// Performs a step of a login: sends the request, or waits for a token.
  func perform(_ step: ExchangeLogin.ExchangeLoginStep, of exchange: Exchange) {
    switch step {
    case .send: send(exchange)
    case .ask(let conversation, let challenge):
      exchange.noteActivity()
      exchange.login?.pendingToken = core.tokens.make(with: conversation, answering: challenge) {
        [weak self, ticket = exchange.ticket] in self?.tokenMade($0, ticket)
      }
    case .deliver:
      let message = "There is no token that answers the challenge of \(exchange.hostName)."
      abandon(exchange, TransportFailure(.userAuthenticationRequired, message))
    }
  }

  private func tokenMade(_ token: [UInt8]?, _ ticket: UInt64) {
    guard let exchange = exchanges[ticket], let step = exchange.login?.answered(token) else { return }
    perform(step, of: exchange)
  }

  /// Sends the request of the next round: on the connection that the exchange still has, or on another one.
  private func send(_ exchange: Exchange) {
    guard exchange.phase != .running else {
      (exchange.connection as? HTTP1Connection)?.startRound()
      return
    }
    exchange.phase = .connecting
    // The time until now does not count as silence of the host.
    exchange.noteActivity()
    serveRound(exchange)
  }

  /// Continues a login on another connection, because the last response has ended its own.
  func reconnect(_ exchange: Exchange, for step: ExchangeLogin.ExchangeLoginStep) {
    exchange.restart()
    exchange.connection = nil
    exchange.isReused = false
    if exchange.bindsConnection { exchange.needsNewConnection = true }
    exchange.phase = .connecting
    if let failure = exchange.startSource() { return end(exchange, .failure(failure)) }
    perform(step, of: exchange)
  }
}

// The login of forwarded requests, which share the nonces of their proxy.
extension Pool {
  fileprivate func proxyTicket(answering challenge: DigestChallenge) -> DigestTicket {
    guard let proxy = route.proxy else { return .first(for: challenge) }
    return proxyProof.ticket(answering: challenge, from: proxy.origin, &table.core.proxyNonces)
  }

  fileprivate func keep(_ proof: AuthenticationProof) {
    guard let proxy = route.proxy else { return }
    proxyProof.keep(proof, from: proxy.origin, table.core.proxyNonces)
  }
}
