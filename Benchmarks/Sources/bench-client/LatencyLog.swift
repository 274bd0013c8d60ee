import Synchronization

/// The latency of each request of a run. All memory is allocated beforehand, and each request writes to its own
/// element. So the log costs no allocation and no lock between the marks.
final class LatencyLog: Sendable {
  private let next = Atomic<Int>(0)
  private let count: Int
  // Each index is handed out once, and the log is read after all requests have ended.
  private nonisolated(unsafe) let nanoseconds: UnsafeMutablePointer<UInt64>

  init(count: Int) {
    self.count = count
    nanoseconds = .allocate(capacity: count)
    nanoseconds.initialize(repeating: 0, count: count)
  }

  deinit {
    nanoseconds.deallocate()
  }

  /// Returns the index of another request, or `nil` if all have begun.
  func ticket() -> Int? {
    let ticket = next.wrappingAdd(1, ordering: .relaxed).oldValue
    return ticket < count ? ticket : nil
  }

  /// Stores the latency of a request that began at `start`.
  func ended(_ ticket: Int, since start: UInt64) {
    nanoseconds[ticket] = Clock.monotonic() - start
  }

  /// Returns the latencies, in microseconds, that the given shares of all requests did not exceed.
  func quantiles(_ shares: [Double]) -> [Double] {
    let sorted = UnsafeBufferPointer(start: nanoseconds, count: count).sorted()
    return shares.map { Double(sorted[min(count - 1, Int(Double(count) * $0))]) / 1000 }
  }
}
