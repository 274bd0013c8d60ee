import HTTPWire

/// A connection that is being established for a pool, from the first address to the end of the handshake. Belongs to
/// the loop's thread.
final class PendingConnection {
  private enum State {
    case idle
    case connecting(ConnectionAttempt)
    case securing(TLSConnection, over: any Pipe)
    case over
  }

  private unowned let pool: Pool
  private let request: WireRequest
  /// The exchange that the connection is established for; `nil` if it was suspended since. Another one may get the
  /// connection.
  var ticket: UInt64?
  /// Whether the connection may become one of HTTP/2.
  let mayMultiplex: Bool
  private var state = State.idle
  private var times = ConnectionFacts.Times()
  /// The end of the time for connecting, which includes the handshake.
  private var connectLimit: UInt64 = .max
  /// The end of the time for the handshake alone.
  private var handshakeLimit: UInt64 = .max
  /// The end of the time for which the host may be silent in the handshake. The exchange has the same limit, but it may
  /// have got another connection.
  private var idleLimit: UInt64 = .max

  /// Makes a connection that has not begun.
  ///
  /// - Parameters:
  ///   - request: The request that the connection is established for. Its limits apply.
  ///   - ticket: The ticket of its exchange.
  ///   - mayMultiplex: Whether the connection may become one of HTTP/2.
  init(_ request: WireRequest, _ ticket: UInt64, mayMultiplex: Bool, for pool: Pool) {
    self.request = request
    self.ticket = ticket
    self.mayMultiplex = mayMultiplex
    self.pool = pool
  }

  private var host: String { request.origin.host }

  /// The ends of the steps so far.
  var progress: ConnectionFacts.Times {
    if case .connecting(let attempt) = state { attempt.times } else { times }
  }

  func begin() {
    guard case .idle = state else { return }
    connectLimit = request.connectTimeout.map { Clock.now(plus: $0) } ?? .max
    let attempt = ConnectionAttempt(request, pool.route, pool.table.core, for: self)
    state = .connecting(attempt)
    pool.table.watch(self)
    attempt.begin()
    pool.table.noteExpiry(of: self)
  }

  /// Ends without an answer.
  func cancel() {
    switch state {
    case .idle, .over: break
    case .connecting(let attempt): attempt.cancel()
    case .securing(_, let pipe): pipe.close()
    }
    end()
  }

  private func end() {
    state = .over
    pool.table.unwatch(self)
  }

  private func fail(_ failure: TransportFailure) {
    guard case .over = state else {
      cancel()
      return pool.failed(failure, times, by: self)
    }
  }

  // MARK: The handshake

  private func secure(_ pipe: any Pipe) {
    // Bytes after the answer of a proxy came before this handshake, so an attacker could have sent them.
    if let unread = pipe as? UnreadPipe, unread.hasUnread {
      pipe.close()
      state = .idle
      return fail(
        TransportFailure(
          .secureConnectionFailed,
          "The proxy sent bytes before the TLS handshake with \(host), so the connection is not used."))
    }
    let protocols = mayMultiplex ? ["h2", "http/1.1"] : ["http/1.1"]
    let peer = TLSPeer(request.origin, request.profile, protocols: protocols)
    let core = pool.table.core!
    switch TLSConnection.over(
      pipe, with: peer, core.contexts, resumption: (pool.table.sessions, pool.key))
    {
    case .failure(let failure):
      pipe.close()
      fail(failure)
    case .success(let tls):
      handshakeLimit = request.profile.options.timeLimits.tlsHandshake.map { Clock.now(plus: $0) } ?? .max
      idleLimit = request.idleTimeout.map { Clock.now(plus: $0) } ?? .max
      state = .securing(tls, over: pipe)
      pool.table.noteExpiry(of: self)
      shakeHands()
    }
  }

  private func shakeHands() {
    guard case .securing(let tls, let pipe) = state else { return }
    switch tls.handshake() {
    case .waitsToRead, .waitsToWrite: break
    case .moved:
      times.secureEnd = Clock.now()
      open(pipe, tls)
    case .ended: fail(handshakeLost)
    case .failed(let failure): fail(failure)
    case .undecided: fail(tls.failure ?? handshakeLost)
    case .asksForIdentity:
      // The identity is chosen outside of the engine, and another connection shows it.
      fail(TransportFailure(.identityUndecided, "\(host) asks for a client certificate."))
    }
  }

  private var handshakeLost: TransportFailure {
    TransportFailure(
      .secureConnectionFailed, "\(host) ended the connection during the TLS handshake.")
  }

  private func open(_ pipe: any Pipe, _ tls: TLSConnection?) {
    var failure = timeout(Clock.now())
    // The service has to speak the protocol that was announced (RFC 7838 §2.4).
    if request.alternative != nil, !speaksHTTP2(tls) { failure = failure ?? .alternativeUnfit(request) }
    if let failure {
      pipe.close()
      return fail(failure)
    }
    end()
    let facts = ConnectionFacts(of: pipe, tls, times, isProxied: pool.route.proxy != nil)
    guard speaksHTTP2(tls) else {
      return pool.opened(HTTP1Connection(pipe, tls, facts, for: pool), by: self)
    }
    let limit = request.profile.options.headerSizeLimit
    guard let connection = HTTP2Connection(pipe, tls, facts, headerSizeLimit: limit, for: pool) else {
      pipe.close()
      let message = "There is not enough memory for a connection of HTTP/2 to \(host)."
      return pool.failed(TransportFailure(.resourceUnavailable, message), times, by: self)
    }
    pool.opened(connection, by: self)
  }

  /// Whether the server has chosen HTTP/2 (ALPN), or is known to speak it.
  private func speaksHTTP2(_ tls: TLSConnection?) -> Bool {
    tls.map { $0.selectedProtocol == "h2" } ?? mayMultiplex
  }

  // MARK: Time

  /// The time at which ``expire(_:)`` is to be called.
  var expiry: UInt64 {
    switch state {
    case .idle, .over: .max
    case .connecting(let attempt): attempt.expiry
    case .securing: min(connectLimit, handshakeLimit, idleLimit)
    }
  }

  func expire(_ now: UInt64) {
    switch state {
    case .idle, .over: break
    case .connecting(let attempt): attempt.expire(now)
    case .securing: if let failure = timeout(now) { fail(failure) }
    }
  }

  private func timeout(_ now: UInt64) -> TransportFailure? {
    if handshakeLimit <= now, let limit = request.profile.options.timeLimits.tlsHandshake {
      let phase = PhaseTimer.Phase.tlsHandshake
      return TransportFailure(.timedOut, phase.message(host: host, limit: limit), phase: phase)
    }
    if connectLimit <= now { return RouteFailure.timedOut(host, in: .tlsHandshake) }
    guard idleLimit <= now, let limit = request.idleTimeout else { return nil }
    return RouteFailure.idle(host, limit, request.profile.options)
  }
}

extension PendingConnection: ConnectionAttemptOwner {
  func attemptChanged() { pool.table.noteExpiry(of: self) }

  func attemptEnded(_ outcome: Result<any Pipe, TransportFailure>) {
    guard case .connecting(let attempt) = state else { return }
    times = attempt.times
    state = .idle
    switch outcome {
    case .failure(let failure): fail(failure)
    case .success(let pipe):
      pipe.owner = self
      if pool.key.isSecure { secure(pipe) } else { open(pipe, nil) }
    }
  }
}

extension PendingConnection: PipeOwner {
  func pipeIsReady() { shakeHands() }
}
