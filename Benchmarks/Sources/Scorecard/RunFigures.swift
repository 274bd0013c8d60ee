/// The measurements of one client process. Each client prints them as a line of JSON, `Floor/floor.c` included.
package struct RunFigures: Codable, Sendable {
  /// The number of measured requests, without the warm-up.
  package var requests: Int
  package var seconds: Double
  /// User and system time of the whole process between the marks.
  package var cpuSeconds: Double
  package var medianMicroseconds: Double
  package var p99Microseconds: Double
  /// The most memory that the process ever held, its start and the warm-up included.
  package var peakMegabytes: Double
  /// The counts of `Counts/counts.c` between the marks; `nil` if it is not preloaded.
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
