import HTTPWire

// The rounds of a login. All but the last response are dropped.
extension Exchange {
  /// Begins the login of the request. Returns the first step; `nil` if the request has no login.
  func beginLogin(in pool: Pool) -> ExchangeLogin.Step? {
    guard let request, request.hasLogin || pool.forwards, let login = ExchangeLogin(request, pool.route)
    else {
      return nil
    }
    self.login = login
    let step = login.begin(pool.proxyProof)
    // The first token belongs to a connection that has carried nothing else.
    if login.bindsConnection { needsNewConnection = true }
    return step
  }

  /// Returns whether a response only continues the login. Then its body is dropped, and the next request follows when
  /// it has ended.
  ///
  /// - Parameters:
  ///   - framing: The framing of the body, as the head declares it.
  ///   - isReusable: Whether the connection can carry another request behind the body.
  func continuesLogin(_ head: ResponseHead, _ framing: MessageFraming, isReusable: Bool) -> Bool {
    guard let login, isRepeatable else { return false }
    let dropped = DroppedBody(
      head, framing, method: request?.method ?? "GET", isReusable: isReusable, now: table.now,
      isPatient: true)
    let keepsConnection = isReusable && dropped.decision == .read
    let step = login.received(head, keepsConnection: keepsConnection)
    if case .deliver = step {
      if head.status != 407, let proof = login.acceptedProof { pool?.proxyProof = proof }
      return false
    }
    login.next = step
    self.head = head
    self.dropped = dropped
    destination = .discarded
    return true
  }
}

extension LoopExchanges {
  /// Performs a step of a login: sends the request, or waits for a token.
  func perform(_ step: ExchangeLogin.Step, of exchange: Exchange) {
    switch step {
    case .send: send(exchange)
    case .ask(let conversation, let challenge):
      exchange.noteActivity()
      core.tokens.make(with: conversation, answering: challenge) { [weak self, ticket = exchange.ticket] in
        self?.tokenMade($0, ticket)
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
    exchange.pool?.serve(exchange)
  }

  /// Goes on with a login on another connection, because the last response has ended its own.
  func reconnect(_ exchange: Exchange, for step: ExchangeLogin.Step) {
    exchange.restart()
    exchange.connection = nil
    exchange.isReused = false
    if exchange.login?.bindsConnection == true { exchange.needsNewConnection = true }
    exchange.phase = .connecting
    if let failure = exchange.startSource() { return end(exchange, .failure(failure)) }
    perform(step, of: exchange)
  }
}
