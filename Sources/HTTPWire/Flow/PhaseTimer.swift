/// The phase that a transfer is in, and the time at which its limit is exceeded. Pure: the caller reads the clock, in
/// nanoseconds.
package struct PhaseTimer: Sendable, Equatable {
  package typealias Phase = TransportOptions.TimeLimits.Phase

  /// The progress of sending, as far as the engine knows it when a limit is exceeded.
  package struct Progress: Sendable, Equatable {
    /// Whether the system has accepted the whole request.
    package var isSent: Bool
    /// Whether a byte of a response has arrived.
    package var hasResponse: Bool

    package init(isSent: Bool, hasResponse: Bool) {
      self.isSent = isSent
      self.hasResponse = hasResponse
    }
  }

  private enum Step: Equatable {
    /// No phase with a limit: before the look-up, while another request makes the connection, and after the first byte
    /// of the response.
    case none
    case lookingUp
    case connecting
    case securing
    case sending
    /// The system has accepted the whole request.
    case waiting

    /// The phase of a step that an event ends.
    var timedPhase: Phase? {
      switch self {
      case .lookingUp: .nameLookup
      case .connecting: .connect
      case .securing: .tlsHandshake
      case .none, .sending, .waiting: nil
      }
    }
  }

  private let limits: PhaseLimits
  private var step = Step.none
  /// The start of the step.
  private var start: UInt64 = 0
  /// The time at which the engine had passed the whole request to its library; `nil` before.
  private var handedOver: UInt64?
  private var pauseStart: UInt64?
  /// The phase that exceeded its limit before the engine looked at the clock. Either it had lasted too long when it
  /// ended, or it was entered with a limit of zero.
  package private(set) var overdue: Phase?

  package init(_ limits: PhaseLimits) { self.limits = limits }

  // MARK: Events

  /// Called when the transfer begins, or is repeated with nothing sent.
  package mutating func begin() {
    step = .none
    overdue = nil
    enter(.none, 0)
  }

  package mutating func lookupBegan(_ now: UInt64) { enter(.lookingUp, now) }

  /// Called when a socket was opened. Further sockets belong to other addresses of the host.
  package mutating func connectionBegan(_ now: UInt64) {
    if step != .connecting { enter(.connecting, now) }
  }

  /// Called when the TLS handshake with the server has begun. One with a proxy belongs to connecting.
  package mutating func handshakeBegan(_ now: UInt64) { enter(.securing, now) }

  /// Called when the connection is there, and no request is sent.
  package mutating func connectionEnded(_ now: UInt64) { enter(.none, now) }

  /// Called when the request is about to be sent.
  package mutating func requestBegan(_ now: UInt64, hasBody: Bool) {
    enter(.sending, now)
    if !hasBody { endBody(now) }
  }

  /// Called when the engine has passed the end of the body to its library, which may still hold some of it.
  package mutating func bodyEnded(_ now: UInt64) {
    if step == .sending { endBody(now) }
  }

  /// Called when the system has accepted a whole request, which may be long after the engine has passed it on.
  package mutating func requestSent(_ now: UInt64) {
    if step == .sending, handedOver != nil { handedOver = pauseStart ?? now }
  }

  private mutating func endBody(_ now: UInt64) {
    handedOver = handedOver ?? now
    if limits.firstByte == 0 { overdue = overdue ?? .firstByte }
  }

  /// Called when the transfer waits for the caller or for the source of its body.
  package mutating func pause(_ now: UInt64) { pauseStart = pauseStart ?? now }

  /// Continues after a pause, which does not count.
  package mutating func resume(_ now: UInt64) {
    guard let pauseStart else { return }
    self.pauseStart = nil
    let pause = now - min(now, pauseStart)
    start += pause
    if let time = handedOver { handedOver = time + pause }
  }

  private mutating func enter(_ step: Step, _ now: UInt64) {
    if let phase = self.step.timedPhase, expiry <= now { overdue = overdue ?? phase }
    self.step = step
    if let phase = step.timedPhase ?? (step == .sending ? .requestSend : nil), limits[phase] == 0 {
      overdue = overdue ?? phase
    }
    start = now
    handedOver = nil
    if pauseStart != nil { pauseStart = now }
  }

  // MARK: Limits

  /// The time at which to call ``exceeded(_:_:)``; `.max` if there is none.
  package var expiry: UInt64 {
    guard pauseStart == nil else { return .max }
    guard overdue == nil else { return 0 }
    switch step {
    case .none: return .max
    case .lookingUp: return Self.sum(start, limits.nameLookup)
    case .connecting: return Self.sum(start, limits.connect)
    case .securing: return Self.sum(start, limits.tlsHandshake)
    case .sending:
      return min(
        Self.sum(start, limits.requestSend), handedOver.map { Self.sum($0, limits.firstByte) } ?? .max)
    case .waiting: return Self.sum(start, limits.firstByte)
    }
  }

  /// Returns the phase that has exceeded its limit; `nil` if there is none. Then the next time to ask is ``expiry``,
  /// which is later than `now`.
  package mutating func exceeded(_ now: UInt64, _ progress: Progress) -> Phase? {
    guard expiry <= now else { return nil }
    if let overdue { return overdue }
    switch step {
    case .none: return nil
    case .lookingUp, .connecting, .securing: return step.timedPhase
    case .sending: return sendingExceeded(now, progress)
    case .waiting:
      guard progress.hasResponse else { return .firstByte }
      enter(.none, now)
      return nil
    }
  }

  private mutating func sendingExceeded(_ now: UInt64, _ progress: Progress) -> Phase? {
    guard !progress.hasResponse else {
      enter(.none, now)
      return nil
    }
    guard progress.isSent, let time = handedOver else {
      if Self.sum(start, limits.requestSend) <= now { return .requestSend }
      // The library still holds some of the request. The time at which it sends the rest is unknown, so the limit
      // begins again.
      handedOver = now
      return limits.firstByte == 0 ? .firstByte : nil
    }
    enter(.waiting, time)
    return expiry <= now ? .firstByte : nil
  }

  private static func sum(_ time: UInt64, _ limit: UInt64) -> UInt64 {
    let (sum, overflow) = time.addingReportingOverflow(limit)
    return overflow ? .max : sum
  }
}
