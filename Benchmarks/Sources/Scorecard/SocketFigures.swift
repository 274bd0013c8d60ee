/// The measurements of a client process with WebSocket connections. Each client prints them as a line of JSON,
/// `Floor/sockets.c` included.
package struct SocketFigures: Codable, Sendable {
  /// The number of measured messages, or of connections.
  package var messages: Int
  package var seconds: Double
  /// User and system time of the whole process between the marks.
  package var cpuSeconds: Double
  /// The memory that the process held after one connection and its first messages.
  package var idleMegabytes: Double
  /// The most memory that the process ever held.
  package var peakMegabytes: Double
  /// The counts of `Counts/counts.c` between the marks; `nil` if it is not preloaded.
  package var counts: [String: Int]?

  package init(
    messages: Int, seconds: Double, cpuSeconds: Double, idleMegabytes: Double, peakMegabytes: Double,
    counts: [String: Int]?
  ) {
    self.messages = messages
    self.seconds = seconds
    self.cpuSeconds = cpuSeconds
    self.idleMegabytes = idleMegabytes
    self.peakMegabytes = peakMegabytes
    self.counts = counts
  }

  private enum CodingKeys: String, CodingKey {
    case messages
    case seconds
    case cpuSeconds = "cpu_seconds"
    case idleMegabytes = "idle_rss_mb"
    case peakMegabytes = "peak_rss_mb"
    case counts
  }
}
