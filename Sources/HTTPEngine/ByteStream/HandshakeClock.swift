import HTTPWire

/// The time of the TLS handshake of a stream. It stands still while the handshake waits for a decision about the
/// server. Pure: the owner reads the clock, in nanoseconds.
struct HandshakeClock {
  private enum ClockState {
    case stopped
    case running(expiry: UInt64)
    case paused(left: UInt64)
  }

  /// The limit that is reached first.
  private enum Limit {
    case connectTimeout
    case phase(Duration)
    case idleTimeout
  }

  private var time: UInt64 = .max
  private var limit = Limit.idleTimeout
  /// The name of the setting that limits the time without a byte.
  private let idleSetting: String
  private var state = ClockState.stopped

  /// Makes a clock that has not started.
  ///
  /// - Parameters:
  ///   - request: The request with the limits.
  ///   - timeToConnect: The rest of the time for connecting; `nil` if that time does not include the handshake.
  init(_ request: WireRequest, timeToConnect: UInt64?) {
    idleSetting = request.profile.options.timeLimits.idleSetting
    if let idle = request.idleTimeout { time = Clock.nanoseconds(idle) }
    if let phase = request.profile.options.timeLimits.tlsHandshake, Clock.nanoseconds(phase) <= time {
      (time, limit) = (Clock.nanoseconds(phase), .phase(phase))
    }
    if let timeToConnect, timeToConnect < time { (time, limit) = (timeToConnect, .connectTimeout) }
  }

  /// The time at which the handshake times out.
  var expiry: UInt64 {
    if case .running(let expiry) = state { expiry } else { .max }
  }

  mutating func start(_ now: UInt64) { run(time, now) }

  /// Begins again, unless the handshake waits for a decision.
  mutating func restart(_ now: UInt64) {
    if case .running = state { start(now) }
  }

  mutating func pause(_ now: UInt64) {
    guard case .running(let expiry) = state else { return }
    state = .paused(left: expiry == .max ? .max : expiry - min(expiry, now))
  }

  /// Continues after a pause, which does not count.
  mutating func resume(_ now: UInt64) {
    if case .paused(let left) = state { run(left, now) }
  }

  private mutating func run(_ left: UInt64, _ now: UInt64) {
    let (sum, isTooLarge) = now.addingReportingOverflow(left)
    state = .running(expiry: isTooLarge ? .max : sum)
  }

  /// Returns the failure of a handshake that took too long.
  func failure(of host: String) -> TransportFailure {
    let phase = TransportOptions.TimeLimits.Phase.tlsHandshake
    switch limit {
    case .connectTimeout: return RouteFailure.timedOut(host, in: phase)
    case .phase(let limit):
      return TransportFailure(.timedOut, phase.message(host: host, limit: limit), phase: phase)
    case .idleTimeout:
      return TransportFailure(
        .timedOut, "\(host) took too long to agree on a secure connection (\(idleSetting)).",
        phase: phase)
    }
  }
}
