import CCurl
import HTTPWire

// The time limits of a transfer. The times that libcurl reports are not used, because they are relative to an attempt
// to connect. libcurl begins that attempt again for a transfer that waits for the connection of another one.
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

  /// Notes that libcurl is about to send the request. A request whose connection took too long is not sent, because its
  /// error says that it was not.
  func requestBegan() {
    defer { if let failure = missedTimeout() { abort(with: failure) } }
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
    let server = request?.origin.host ?? "the host"
    // The proxy can be the cause, too.
    let host = applied.proxy.map { "\(server) through the proxy \($0)" } ?? server
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

// MARK: Bandwidth

// The limits of bandwidth. libcurl's own ones (`CURLOPT_MAX_RECV_SPEED_LARGE`) are not used: they hold for one handle,
// and libcurl averages over seconds.
extension Transfer {
  func beginThrottling(_ profile: ConnectionProfile) {
    throttlePlace = nil
    bandwidth = profile.isThrottled ? BandwidthMeter(profile.options.requestBandwidth) : nil
    if profile.isThrottled { loop.throttle.limit(profile.sessionBandwidth) }
  }

  /// Whether the bandwidth of the transfer or of the session is exhausted. Then the loop continues the transfer in
  /// time.
  func mustWait(_ direction: BandwidthMeter.Direction) -> Bool {
    let time = max(bandwidth?.readyTime(direction) ?? 0, loop.throttle.meter?.readyTime(direction) ?? 0)
    guard time > Clock.now() else { return false }
    throttlePlace = loop.throttle.wait(ticket, until: time, at: throttlePlace)
    return true
  }

  func moved(_ length: Int, _ direction: BandwidthMeter.Direction) {
    let now = Clock.now()
    throttlePlace = nil
    bandwidth?.moved(length, direction, at: now)
    loop.throttle.meter?.moved(length, direction, at: now)
  }
}

/// The bandwidth of a session, and the transfers that wait for bandwidth. Belongs to the loop's thread.
struct SessionThrottle {
  private var limits = TransportOptions.Bandwidth()
  var meter: BandwidthMeter?
  private var waiting: [UInt64: (time: UInt64, place: UInt64)] = [:]
  private var lastPlace: UInt64 = 0
  /// The time at which a waiting transfer may continue.
  private(set) var releaseTime: UInt64 = .max

  mutating func limit(_ limits: TransportOptions.Bandwidth) {
    guard self.limits != limits else { return }
    self.limits = limits
    meter = limits.isLimited ? BandwidthMeter(limits) : nil
  }

  /// Lets a transfer wait. Returns its place among the waiting ones.
  ///
  /// - Parameter place: The place that the transfer has had since it last moved bytes; `nil` for the last place. With
  ///   its place, others that wait until the same time do not always come first.
  mutating func wait(_ ticket: UInt64, until time: UInt64, at place: UInt64?) -> UInt64 {
    if place == nil { lastPlace += 1 }
    let place = place ?? lastPlace
    waiting[ticket] = (time, place)
    releaseTime = min(releaseTime, time)
    return place
  }

  /// Returns the transfers that may continue, those that have waited longest first.
  mutating func release(_ now: UInt64) -> [UInt64] {
    let released = waiting.filter { $0.value.time <= now }.sorted { $0.value.place < $1.value.place }
    for (ticket, _) in released { waiting[ticket] = nil }
    releaseTime = waiting.values.map { $0.time }.min() ?? .max
    return released.map(\.key)
  }
}

extension LoopCore {
  /// Continues the transfers for which there is bandwidth again.
  func continueThrottled() {
    for ticket in throttle.release(now) {
      guard let transfer = transfers[ticket] else {
        exchanges.continueThrottled(ticket)
        continue
      }
      guard transfer.phase.isAdded, transfer.flow == .stopped(.throttled),
        transfer.flow.proceed()
      else { continue }
      proceed(transfer)
    }
  }
}
