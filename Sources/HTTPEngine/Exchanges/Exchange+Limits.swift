import HTTPWire

// The time limits of an exchange, and its bandwidth.
extension Exchange {
  /// The time at which a limit may end the exchange, or at which it goes on without an answer.
  var expiry: UInt64 {
    var expiry = min(timing.deadline, dropped?.deadline ?? .max, continueTime, repeatTime)
    guard phase.isAdmitted, flow.isMoving else { return expiry }
    expiry = min(expiry, idleExpiry)
    guard phase == .running, let phaseTimer else { return expiry }
    return min(expiry, phaseTimer.expiry)
  }

  private var idleExpiry: UInt64 {
    var activity = timing.lastActivity
    if phase == .connecting, login?.awaitsToken != true {
      // Nothing is expected of the host while all of its connections are in use. A token is expected of another host.
      guard let pool, !pool.pending.isEmpty else { return .max }
      activity = max(activity, pool.pendingSince)
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

  /// Returns the failure of an exchange whose time is over; `nil` if no limit is exceeded yet.
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
    if let limit = request?.profile.options.timeLimits[exceeded] {
      return exceeded.message(host: host, limit: limit)
    }
    guard exceeded == .idle else {
      return "The transfer from \(host) was not complete in time (timeoutIntervalForResource)."
    }
    let limit = Duration.nanoseconds(Int64(clamping: timing.idleLimit)).shownSeconds
    return "\(host) was silent for \(limit) (timeoutIntervalForRequest)."
  }

  // MARK: Bandwidth

  func beginThrottling(_ profile: ConnectionProfile) {
    throttlePlace = nil
    bandwidth = profile.isThrottled ? BandwidthMeter(profile.options.requestBandwidth) : nil
    if profile.isThrottled { core.throttle.limit(profile.sessionBandwidth) }
  }

  /// Whether the bandwidth of the exchange or of the session is exhausted. Then the loop continues the exchange in
  /// time.
  func mustWait(_ direction: BandwidthMeter.Direction) -> Bool {
    let time = max(bandwidth?.readyTime(direction) ?? 0, core.throttle.meter?.readyTime(direction) ?? 0)
    guard time > Clock.now() else { return false }
    throttlePlace = core.throttle.wait(ticket, until: time, at: throttlePlace)
    return true
  }

  func moved(_ length: Int, _ direction: BandwidthMeter.Direction) {
    let now = Clock.now()
    throttlePlace = nil
    bandwidth?.moved(length, direction, at: now)
    core.throttle.meter?.moved(length, direction, at: now)
  }
}
