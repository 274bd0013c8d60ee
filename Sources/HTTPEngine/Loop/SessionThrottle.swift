import HTTPWire

/// The bandwidth of a session, and the exchanges that wait for bandwidth. Belongs to the loop's thread.
struct SessionThrottle {
  private var limits = TransportOptions.Bandwidth()
  var meter: BandwidthMeter?
  private var waiting: [UInt64: (time: UInt64, place: UInt64)] = [:]
  private var lastPlace: UInt64 = 0
  /// The time at which a waiting exchange may continue.
  private(set) var releaseTime: UInt64 = .max

  mutating func limit(_ limits: TransportOptions.Bandwidth) {
    guard self.limits != limits else { return }
    self.limits = limits
    meter = limits.isLimited ? BandwidthMeter(limits) : nil
  }

  /// Lets an exchange wait. Returns its place among the waiting ones.
  ///
  /// - Parameter place: The place that the exchange has had since it last moved bytes; `nil` for the last place. With
  ///   its place, others that wait until the same time do not always come first.
  mutating func wait(_ ticket: UInt64, until time: UInt64, at place: UInt64?) -> UInt64 {
    if place == nil { lastPlace += 1 }
    let place = place ?? lastPlace
    waiting[ticket] = (time, place)
    releaseTime = min(releaseTime, time)
    return place
  }

  /// Returns the exchanges that may continue, those that have waited longest first.
  mutating func release(_ now: UInt64) -> [UInt64] {
    let released = waiting.filter { $0.value.time <= now }.sorted { $0.value.place < $1.value.place }
    for (ticket, _) in released { waiting[ticket] = nil }
    releaseTime = waiting.values.map { $0.time }.min() ?? .max
    return released.map(\.key)
  }
}

extension LoopCore {
  /// Continues the exchanges for which there is bandwidth again.
  func continueThrottled() {
    for ticket in throttle.release(now) { exchanges.continueThrottled(ticket) }
  }
}
