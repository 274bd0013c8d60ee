/// The rate of a transfer over a sliding window. Pure: the time is a parameter.
package struct TransferRate: Sendable {
  private let window: Duration
  /// Cumulative counts, one for each eighth of the window at most.
  private var samples: [(time: Duration, count: Int)] = []
  private var count = 0

  package init(window: Duration = .seconds(8)) {
    self.window = window
  }

  /// Begins to measure. Earlier bytes do not count, such as those before a suspension.
  package mutating func begin(at now: Duration) {
    samples = [(now, count)]
  }

  package mutating func add(_ bytes: Int, at now: Duration) {
    count += bytes
    if let last = samples.last, now - last.time < window / 8 { return }
    samples.append((now, count))
    // The newest sample before the window is its beginning.
    while samples.count > 2, now - samples[1].time >= window { samples.removeFirst() }
  }

  /// Returns the bytes per second; `nil` as long as no time has passed.
  package func bytesPerSecond(at now: Duration) -> Double? {
    guard let first = samples.first(where: { now - $0.time <= window }) ?? samples.last else { return nil }
    let time = now - first.time
    guard time > .zero else { return nil }
    return Double(count - first.count)
      / (Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18)
  }
}
