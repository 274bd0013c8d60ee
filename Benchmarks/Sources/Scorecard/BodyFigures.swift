/// The measurements of a client process that moved one large body. Each client prints them as a line of JSON,
/// `Floor/bodies.c` included.
package struct BodyFigures: Codable, Sendable {
  /// The number of bytes that arrived.
  package var bytes: Int
  package var seconds: Double
  /// User and system time of the whole process during the transfer.
  package var cpuSeconds: Double
  /// The memory that the process held after a small request, before the body.
  package var idleMegabytes: Double
  /// The most memory that the process ever held.
  package var peakMegabytes: Double

  package init(
    bytes: Int, seconds: Double, cpuSeconds: Double, idleMegabytes: Double, peakMegabytes: Double
  ) {
    self.bytes = bytes
    self.seconds = seconds
    self.cpuSeconds = cpuSeconds
    self.idleMegabytes = idleMegabytes
    self.peakMegabytes = peakMegabytes
  }

  private enum CodingKeys: String, CodingKey {
    case bytes
    case seconds
    case cpuSeconds = "cpu_seconds"
    case idleMegabytes = "idle_rss_mb"
    case peakMegabytes = "peak_rss_mb"
  }
}
