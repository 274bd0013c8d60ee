/// The limits of the bytes that move in both directions. Pure: the caller reads the clock, in nanoseconds.
///
/// A library delivers bytes in pieces that cannot be divided. Therefore a piece may exceed the limit, and the next one
/// waits until the debt is paid.
package struct BandwidthMeter: Sendable, Equatable {
  package enum Direction: Sendable, CaseIterable { case download, upload }

  /// The largest piece that is moved at once, so that slow transfers do not stand still for long.
  package static var largestPiece: Int { 16_384 }

  private var download: TokenBucket?
  private var upload: TokenBucket?

  package init(_ limits: TransportOptions.Bandwidth) {
    download = limits.download.map { Self.bucket($0) }
    upload = limits.upload.map { Self.bucket($0) }
  }

  /// Makes a bucket with the bytes of a twentieth of a second.
  private static func bucket(_ limit: Int) -> TokenBucket {
    let rate = Double(max(1, limit))
    return TokenBucket(rate: rate, burst: rate / 20)
  }

  /// Returns the earliest time at which more bytes may move.
  package func readyTime(_ direction: Direction) -> UInt64 {
    switch direction {
    case .download: download?.readyTime ?? 0
    case .upload: upload?.readyTime ?? 0
    }
  }

  /// Counts bytes that have moved.
  package mutating func moved(_ count: Int, _ direction: Direction, at now: UInt64) {
    switch direction {
    case .download: download?.take(Double(count), at: now)
    case .upload: upload?.take(Double(count), at: now)
    }
  }
}
