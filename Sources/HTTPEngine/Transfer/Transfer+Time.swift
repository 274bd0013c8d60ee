import CCurl
import HTTPWire

// The time limits of a transfer. The times that libcurl reports are not used. They are relative to an attempt to
// connect, which libcurl begins again for a transfer that waits for the connection of another one.
extension Transfer {
  /// Makes libcurl report the look-ups of names, if a limit needs it.
  func observeLookups(_ isOn: Bool) {
    guard isOn || applied.observesLookups else { return }
    applied.observesLookups = isOn
    guard isOn else { return _ = ccurl_set_on_lookup(easy.raw, nil, nil) }
    ccurl_set_on_lookup(
      easy.raw,
      { _, _, context in
        Transfer.of(context)._withUnsafeGuaranteedRef { $0.noteTime { $0.lookupBegan($1) } }
        return 0
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Passes the time of an event to the timer of the phases, if there is one.
  func noteTime(_ event: (inout PhaseTimer, UInt64) -> Void) {
    guard var timer = phaseTimer else { return }
    // Not the time of the turn, because the work of other transfers in this turn belongs to no phase.
    event(&timer, Clock.now())
    phaseTimer = timer
    loop.nextSweep = min(loop.nextSweep, expiry)
  }

  /// Stops the timer of the phases while the transfer waits for the caller, its source or its sink.
  func alignPhaseTimer() {
    noteTime { [flow] timer, now in
      if flow == .moving { timer.resume(now) } else { timer.pause(now) }
    }
  }

  /// Notes that libcurl was told to wait.
  func stop(_ reason: ByteFlow.Reason) {
    flow.stop(reason)
    alignPhaseTimer()
  }

  /// Notes that libcurl is about to send the request, or has made the connection of one that sends nothing.
  func requestBegan() {
    if applied.isConnecting { return noteTime { $0.connectionEnded($1) } }
    var facts = ccurl_facts()
    ccurl_read_facts(easy.raw, &facts)
    earlierResponse = EarlierResponse(headerBytes: facts.header_bytes, firstByte: Int(facts.first_byte))
    noteTime { [applied] in $0.requestBegan($1, hasBody: applied.content == .read) }
  }

  /// Notes the time of the head of a response to a request whose body libcurl reads.
  func noteHead() {
    if applied.content == .read { timing.headTime = Clock.now() }
  }

  /// Notes that libcurl has the whole body.
  func bodyEnded() {
    timing.bodyEnd = Clock.now()
    noteTime { $0.bodyEnded($1) }
  }

  /// Returns the failure of a transfer whose time is over; `nil` if no limit is exceeded yet.
  func timeout() -> TransportFailure? {
    exceededPhase().map { TransportFailure(.timedOut, message(of: $0), metrics: metricsSoFar(), phase: $0) }
  }

  /// Returns the failure of a transfer that has ended before the loop looked at its limits.
  func missedTimeout() -> TransportFailure? { phaseTimer?.overdue == nil ? nil : timeout() }

  private func exceededPhase() -> PhaseTimer.Phase? {
    let now = loop.now
    if timing.deadline <= now { return .total }
    if phase.isAdded, let expiry = phaseTimer?.expiry, expiry <= now,
      let exceeded = phaseTimer?.exceeded(now, sendingProgress)
    {
      return exceeded
    }
    return timing.expiry(phase, flow) <= now ? .idle : nil
  }

  private var sendingProgress: PhaseTimer.Progress {
    var facts = ccurl_facts()
    ccurl_read_facts(easy.raw, &facts)
    let readsBody = applied.content == .read
    return PhaseTimer.Progress(
      isSent: !readsBody || Int64(facts.uploaded) >= count.sent,
      // libcurl also sets the time of the first byte when it begins to send a body that it reads.
      hasResponse: facts.header_bytes > earlierResponse.headerBytes
        || (!readsBody && Int(facts.first_byte) > earlierResponse.firstByte))
  }

  private func message(of exceeded: PhaseTimer.Phase) -> String {
    let host = request?.origin.host ?? "the host"
    if let limit = request?.profile.options.timeLimits[exceeded] {
      let place = exceeded == .nameLookup ? applied.proxy?.host ?? host : host
      return exceeded.message(host: place, limit: limit)
    }
    guard exceeded == .idle else {
      return "The transfer from \(host) was not complete in time (timeoutIntervalForResource)."
    }
    let limit = Duration.nanoseconds(Int64(clamping: timing.idleLimit)).shownSeconds
    return "\(host) was silent for \(limit) (timeoutIntervalForRequest)."
  }

  /// The phase in which libcurl's limit of connecting was exceeded.
  var connectingPhase: PhaseTimer.Phase {
    if connection.sockets.isEmpty { return .nameLookup }
    return connection.hasHandshakeWithServer(behind: applied.proxy?.kind) ? .tlsHandshake : .connect
  }
}

/// The counts of libcurl before a request is sent, which include the responses of a proxy and of earlier steps of a
/// login.
struct EarlierResponse {
  var headerBytes = 0
  var firstByte = 0
}
