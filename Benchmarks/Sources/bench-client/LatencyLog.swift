import Synchronization

/// The duration of each request of a run. The memory is allocated before, and each request writes its own element, so
/// that the log needs no allocation and no lock between the marks.
final class LatencyLog: Sendable {
  private let next = Atomic<Int>(0)
  private let count: Int
  // Each ticket is handed out once, and the log is read after the last of them came back.
  private nonisolated(unsafe) let nanoseconds: UnsafeMutablePointer<UInt64>

  init(count: Int) {
    self.count = count
    nanoseconds = .allocate(capacity: count)
    nanoseconds.initialize(repeating: 0, count: count)
  }

  deinit {
    nanoseconds.deallocate()
  }

  /// The place of one more request; `nil` when all have begun.
  func ticket() -> Int? {
    let ticket = next.wrappingAdd(1, ordering: .relaxed).oldValue
    return ticket < count ? ticket : nil
  }

  /// Notes the end of a request that began at `start`.
  func ended(_ ticket: Int, since start: UInt64) {
    nanoseconds[ticket] = Clock.monotonic() - start
  }

  /// The latency, in microseconds, that the given share of all requests did not exceed.
  func quantiles(_ shares: [Double]) -> [Double] {
    let sorted = UnsafeBufferPointer(start: nanoseconds, count: count).sorted()
    return shares.map { Double(sorted[min(count - 1, Int(Double(count) * $0))]) / 1000 }
  }
}
