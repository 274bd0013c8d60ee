import HTTPWire

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
      guard let transfer = transfers[ticket], transfer.phase.isAdded, transfer.flow == .stopped(.throttled),
        transfer.flow.proceed()
      else { continue }
      proceed(transfer)
    }
  }
}
