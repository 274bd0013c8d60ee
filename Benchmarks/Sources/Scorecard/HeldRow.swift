/// A measured way of holding requests and connections.
package enum HeldRow: String, CaseIterable, Codable, Sendable {
  /// Requests that wait for six connections of HTTP/1.1.
  case queued = "held-queued"
  /// Requests on separate connections.
  case plain = "held-plain"
  /// Requests on separate connections, over TLS.
  case secured = "held-tls"

  /// The number of requests at once.
  package var requests: Int {
    switch self {
    case .queued: 10_000
    case .plain: 5000
    case .secured: 1000
    }
  }

  /// The largest number of connections.
  package var connections: Int { self == .queued ? 6 : requests }
}

/// The measurements of a client process that held requests and connections, as a line of JSON.
package struct HeldFigures: Codable, Sendable {
  /// The memory before the requests, after some small ones.
  package var idleMegabytes: Double
  /// The most memory while the requests were in flight.
  package var peakMegabytes: Double
  /// The memory when all had ended and the allocator had returned what was free.
  package var heldMegabytes: Double

  package init(idleMegabytes: Double, peakMegabytes: Double, heldMegabytes: Double) {
    self.idleMegabytes = idleMegabytes
    self.peakMegabytes = peakMegabytes
    self.heldMegabytes = heldMegabytes
  }

  private enum CodingKeys: String, CodingKey {
    case idleMegabytes = "idle_rss_mb"
    case peakMegabytes = "peak_rss_mb"
    case heldMegabytes = "held_rss_mb"
  }
}
