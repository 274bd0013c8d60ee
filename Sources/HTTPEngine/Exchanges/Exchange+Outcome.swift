import HTTPWire

// The end of an exchange.
extension Exchange {
  /// Returns the outcome of an exchange with a complete response, or with a body that is discarded.
  func completed() -> Outcome {
    guard let head else { return .failure(unanswered(.unknown).with(metrics: metrics())) }
    if dropped == nil, let failure = undecodedFailure { return .failure(failure.with(metrics: metrics())) }
    return .success(
      WireResponse(
        head: head, body: body.take(), trailers: trailers, metrics: allMetrics(),
        isBodyDiscarded: dropped != nil))
  }

  /// Returns the failure of a request that is not sent again although its connection ended before a byte of a response.
  ///
  /// - Parameter code: The error code of HTTP/2 with which the server has refused the request.
  func unanswered(_ evidence: RepeatDecision.Evidence, code: UInt32? = nil) -> TransportFailure {
    let method = request?.method ?? "GET"
    let message =
      switch evidence {
      case .refused:
        "\(hostName) refused the \(method) request without processing it\(code.map { " (\(HTTP2Failure.name(of: $0)))" } ?? ""); it was not sent again\(refusal)."
      case .notSent: "The connection to \(hostName) ended before the \(method) request was sent."
      case .unknown:
        "\(hostName) closed the connection without a response.\(schemeAdvice)\(warning(evidence))"
      }
    return TransportFailure(.connectionLost, message)
  }

  /// A sentence about the port; an empty text if the port has answered before, or belongs to a proxy. Most servers for
  /// TLS end a connection that begins with plain HTTP.
  var schemeAdvice: String {
    guard request?.origin.scheme == "http", pool?.route.proxy == nil, !isReused else { return "" }
    if let connection = connection as? HTTP2Connection, connection.session.hasSettings { return "" }
    return " It failed, or this is a port for TLS; then use https://."
  }

  /// Returns the failure of a response that violates HTTP.
  func invalid(_ violation: HeadViolation) -> TransportFailure {
    let mayBeTLS = violation == .statusLine && !schemeAdvice.isEmpty
    let advice = mayBeTLS ? " If this is a port for TLS, use https://." : ""
    return TransportFailure(
      .badServerResponse, "The response of \(hostName) is not valid HTTP: \(violation.message)\(advice)")
  }

  /// The failure of a response with more fields than allowed.
  var headTooLarge: TransportFailure {
    let limit = request?.profile.options.headerSizeLimit ?? 0
    return TransportFailure(
      .dataLengthExceedsMaximum,
      "The header of the response, with its trailers, is larger than \(limit) bytes. Raise headerSizeLimit if such responses are expected."
    )
  }

  /// Returns the failure of a response with a field that HTTP/2 does not carry, unless the header is too large anyway.
  func fieldTooLarge(_ failure: HTTP2Failure) -> TransportFailure {
    let limit = request?.profile.options.headerSizeLimit ?? 0
    guard limit > HTTP2Failure.largestField else { return headTooLarge }
    return TransportFailure(.dataLengthExceedsMaximum, failure.message(host: hostName))
  }

  /// Whether nothing was sent because other code has to decide about the connection first. The request is then sent
  /// again, and counts once for the rate of its host.
  func isUndecided(_ outcome: Outcome) -> Bool {
    guard times.requestStart == 0, case .failure(let failure) = outcome else { return false }
    switch failure.kind {
    case .trustUndecided, .identityUndecided, .alternativeUnfit: return true
    default: return false
    }
  }

  private var refusal: String {
    isRepeatable ? " because the server did so too often" : " because its body can be read only once"
  }

  /// Returns a sentence for a request that the server may have processed; an empty text if it may be sent again.
  func warning(_ evidence: RepeatDecision.Evidence) -> String {
    guard evidence == .unknown, times.responseStart == 0 else { return "" }
    if !isRepeatable {
      return
        " The body of the request is a stream that cannot be read again, so the request was not repeated; use Data or a file to allow that."
    }
    guard !decision.isIdempotent, let method = request?.method else { return "" }
    return " The server may have processed the \(method) request, so it was not sent again."
  }

  /// Returns a failure of the connection with a sentence for a request that the server may have processed. A server
  /// that has refused the connection, such as one that requires a client certificate, has processed nothing.
  ///
  /// - Parameter advice: Another sentence about a connection that was lost.
  func warned(
    _ failure: TransportFailure, _ evidence: RepeatDecision.Evidence, advice: String = ""
  ) -> TransportFailure {
    switch failure.kind {
    case .clientCertificateRequired, .clientCertificateRejected: failure
    case .connectionLost: failure.with(addition: advice + warning(evidence))
    default: failure.with(addition: warning(evidence))
    }
  }

  /// Whether the request is sent again after its connection has ended without a response.
  ///
  /// - Parameters:
  ///   - isBusy: Whether the server has refused it because it is busy.
  ///   - takesNone: Whether the server has refused all requests on the connection.
  func mayRepeat(
    after evidence: RepeatDecision.Evidence, isBusy: Bool = false, takesNone: Bool = false
  ) -> Bool {
    guard times.responseStart == 0, isRepeatable,
      decision.mayRepeat(after: evidence, usedConnection: mayFollowAnEnd, isBusy: isBusy)
    else { return false }
    // The origin can answer at once.
    return !mayLeaveAlternative || !takesNone && decision.pause == 0
  }

  /// Whether the request can be sent to its origin if its alternative service does not process it.
  private var mayLeaveAlternative: Bool {
    request?.alternative != nil && !decision.hasRepeatedUncertainly
  }

  /// Returns the failure of a request that got no response, and is not sent again.
  func unrepeated(
    _ failure: TransportFailure, _ evidence: RepeatDecision.Evidence
  ) -> TransportFailure {
    let leavesAlternative = evidence != .unknown && mayLeaveAlternative
    // Otherwise the metrics would say that the request was sent.
    if evidence == .notSent || leavesAlternative { restart() }
    guard leavesAlternative else { return failure.with(metrics: metrics()) }
    let message = "The alternative service of \(hostName) did not process the request, or refused it."
    return TransportFailure(.alternativeUnfit, message, metrics: metrics())
  }

  /// Returns the metrics so far; `nil` while the exchange waits for its turn.
  func metrics() -> TransferMetrics? { phase.isAdmitted ? allMetrics() : nil }

  private func allMetrics() -> TransferMetrics {
    var values = TransferMetrics.Values()
    let facts = connection?.facts
    values.start = timing.start
    values.queueEnd = max(0, timing.microseconds(timing.started))
    values.mayHaveArrived = decision.hasRepeatedUncertainly
    values.isConnecting = phase == .connecting && pool?.pending.isEmpty == false
    values.isReusedConnection = isReused
    values.isProxyConnection = facts?.isProxied ?? (pool?.route.proxy != nil)
    if !isReused {
      let connecting = facts?.times ?? pool?.progress(for: ticket) ?? times.connecting
      values.lookupEnd = timing.microseconds(connecting.lookupEnd)
      values.connectEnd = timing.microseconds(connecting.connectEnd)
      values.secureEnd = timing.microseconds(connecting.secureEnd)
    }
    values.requestStart = timing.microseconds(times.requestStart)
    values.requestEnd = timing.microseconds(times.requestEnd)
    values.responseStart = timing.microseconds(times.responseStart)
    values.end = timing.microseconds(times.responseEnd == 0 ? Clock.now() : times.responseEnd)
    values.requestHeaderBytes = sizes.requestHead
    values.requestBodyBytes = count.sent
    values.responseHeaderBytes = sizes.responseHead
    values.responseBodyBytes = sizes.responseBody
    values.decodedBodyBytes = count.received
    values.localPort = facts?.localPort ?? 0
    values.remotePort = facts?.remotePort ?? 0
    // Without a head, only the connection says which version carried the request.
    let version: HTTPVersion = connection?.multiplexes == true ? .http2 : .http1_1
    return TransferMetrics(
      values: values, version: head?.version ?? version, connection: facts?.details ?? .unknown,
      requestHead: sentHead.isEmpty ? nil : String(decoding: sentHead, as: UTF8.self))
  }
}

extension TransportFailure {
  static func alternativeUnfit(_ request: WireRequest) -> TransportFailure {
    TransportFailure(
      .alternativeUnfit,
      "The alternative service of \(request.origin.host) cannot be used: it does not speak HTTP/2, or the request has a proxy."
    )
  }
}

// The time limits of an exchange, and its bandwidth.
extension Exchange {
  /// The time at which a limit may end the exchange, or at which it continues without an answer.
  var expiry: UInt64 {
    var expiry = min(timing.deadline, dropped?.deadline ?? .max, continueTime, repeatTime)
    guard phase.isAdmitted, flow.isMoving else { return expiry }
    expiry = min(expiry, idleExpiry)
    guard phase == .running, let phaseTimer else { return expiry }
    return min(expiry, phaseTimer.expiry)
  }

  private var idleExpiry: UInt64 {
    var activity = timing.lastActivity
    if phase == .connecting, login?.pendingToken == nil {
      // While all connections of the host are in use, its silence is not a timeout. A token comes from another host.
      guard let pool, !pool.pending.isEmpty else { return .max }
      activity = max(activity, pool.pendingSince)
    } else if timing.limitsAnswer, times.requestStart > 0 {
      // Otherwise a name service could delay a request for ever by sending a byte now and then.
      activity = times.requestStart
    }
    let idle = activity.addingReportingOverflow(timing.idleLimit)
    return idle.overflow ? .max : idle.partialValue
  }

  /// Notes that bytes have moved, or may move now.
  func noteActivity() {
    timing.lastActivity = table.now
    table.noteExpiry(of: self)
  }

  /// Passes the time of an event to the timer of the phases, if there is one.
  func noteTime(_ event: (inout PhaseTimer, UInt64) -> Void) {
    guard var timer = phaseTimer else { return }
    // Not the time of the turn, because the work of other exchanges in this turn belongs to no phase.
    event(&timer, Clock.now())
    phaseTimer = timer
    table.noteExpiry(of: self)
  }

  /// Stops the timer of the phases while the exchange waits for the caller, its source or its sink.
  func alignPhaseTimer() {
    guard phaseTimer != nil else { return }
    noteTime { [flow] timer, now in
      if flow.isMoving { timer.resume(now) } else { timer.pause(now) }
    }
  }

  /// Returns the failure of an exchange that has timed out; `nil` if no limit is exceeded yet.
  func timeout() -> TransportFailure? {
    exceededPhase().map { TransportFailure(.timedOut, message(of: $0), metrics: metrics(), phase: $0) }
  }

  private func exceededPhase() -> PhaseTimer.Phase? {
    let now = table.now
    if timing.deadline <= now { return .total }
    guard phase.isAdmitted else { return nil }
    if phase == .running, let expiry = phaseTimer?.expiry, expiry <= now {
      let progress = PhaseTimer.Progress(
        isSent: times.requestEnd != 0, hasResponse: times.responseStart != 0)
      if let exceeded = phaseTimer?.exceeded(now, progress) { return exceeded }
    }
    return flow.isMoving && idleExpiry <= now ? .idle : nil
  }

  private func message(of exceeded: PhaseTimer.Phase) -> String {
    let host = pool?.route.proxy.map { "\(hostName) through the proxy \($0)" } ?? hostName
    if exceeded == .idle, phase == .connecting, login?.pendingToken == nil, let request {
      let limit = Duration.nanoseconds(Int64(clamping: timing.idleLimit))
      return RouteFailure.idle(host, limit, request.profile.options).message
    }
    if let limit = request?.profile.options.timeLimits[exceeded], !timing.limitsAnswer {
      return exceeded.message(host: host, limit: limit)
    }
    guard exceeded == .idle else {
      return "The transfer from \(host) was not complete in time (timeoutIntervalForResource)."
    }
    let limit = Duration.nanoseconds(Int64(clamping: timing.idleLimit)).shownSeconds
    guard timing.limitsAnswer else { return "\(host) was silent for \(limit) (timeoutIntervalForRequest)." }
    let setting = request?.profile.options.timeLimits.idleSetting ?? "timeoutIntervalForRequest"
    return "\(host) did not answer within \(limit) (\(setting))."
  }

  // MARK: Bandwidth

  func beginThrottling(_ request: WireRequest) {
    throttlePositions = [:]
    // A question to a name service is small, and the wait for bandwidth is no silence of the service.
    let profile = request.isThrottled && !request.isQuestion ? request.profile : nil
    bandwidth = profile.map { BandwidthMeter($0.options.requestBandwidth) }
    if let profile { core.throttle.limit(profile.sessionBandwidth) }
  }

  /// Whether the bandwidth of the exchange or of the session is exhausted. Then the loop continues the exchange in
  /// time.
  func mustWait(_ direction: BandwidthMeter.Direction) -> Bool {
    let time = max(bandwidth?.readyTime(direction) ?? 0, core.throttle.meter?.readyTime(direction) ?? 0)
    guard time > Clock.now() else { return false }
    let position = throttlePositions[direction]
    throttlePositions[direction] = core.throttle.wait(ticket, direction, until: time, at: position)
    return true
  }

  func moved(_ length: Int, _ direction: BandwidthMeter.Direction) {
    let now = Clock.now()
    throttlePositions[direction] = nil
    bandwidth?.moved(length, direction, at: now)
    core.throttle.meter?.moved(length, direction, at: now)
  }
}
