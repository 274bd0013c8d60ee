/// What one client process found out about itself. Each prints one as a line of JSON, `Floor/floor.c`
/// included.
package struct RunFigures: Codable, Sendable {
  /// How many requests were measured; the ones that warmed up are not among them.
  package var requests: Int
  package var seconds: Double
  /// User and system time of the whole process between the marks.
  package var cpuSeconds: Double
  package var medianMicroseconds: Double
  package var p99Microseconds: Double
  /// The most memory that the process ever held, its start and the warm-up included.
  package var peakMegabytes: Double
  /// What `Counts/counts.c` counted between the marks; `nil` when it is not preloaded.
  package var counts: [String: Int]?

  package init(
    requests: Int, seconds: Double, cpuSeconds: Double, medianMicroseconds: Double, p99Microseconds: Double,
    peakMegabytes: Double, counts: [String: Int]?
  ) {
    self.requests = requests
    self.seconds = seconds
    self.cpuSeconds = cpuSeconds
    self.medianMicroseconds = medianMicroseconds
    self.p99Microseconds = p99Microseconds
    self.peakMegabytes = peakMegabytes
    self.counts = counts
  }

  private enum CodingKeys: String, CodingKey {
    case requests
    case seconds
    case cpuSeconds = "cpu_seconds"
    case medianMicroseconds = "p50_us"
    case p99Microseconds = "p99_us"
    case peakMegabytes = "peak_rss_mb"
    case counts
  }
}
