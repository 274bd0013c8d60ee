/// A bucket of tokens that is refilled at a constant rate. Pure: the caller reads the clock, in nanoseconds.
///
/// The state is the time at which the bucket is full again. So nothing is added up, and no error accumulates.
package struct TokenBucket: Sendable, Equatable {
  private static let longest: Double = 86_400e9

  /// The time in which one token is refilled.
  private let interval: Double
  /// The time in which all but the last token of a full bucket are refilled.
  private let tolerance: UInt64
  private var fullTime: UInt64 = 0

  /// Makes a full bucket.
  ///
  /// - Parameters:
  ///   - rate: The number of tokens in a second.
  ///   - burst: The number of tokens in a full bucket.
  package init(rate: Double, burst: Double) {
    interval = rate > 0 ? min(1e9 / rate, Self.longest) : Self.longest
    tolerance = Self.nanoseconds((max(burst, 1) - 1) * interval)
  }

  /// The earliest time at which the bucket has a token.
  package var readyTime: UInt64 { fullTime > tolerance ? fullTime - tolerance : 0 }

  package func isFull(_ now: UInt64) -> Bool { fullTime <= now }

  /// Takes tokens. If the bucket has fewer, it is ready when the debt is refilled.
  package mutating func take(_ count: Double = 1, at now: UInt64) {
    let sum = max(fullTime, now).addingReportingOverflow(Self.nanoseconds(count * interval))
    fullTime = sum.overflow ? .max : sum.partialValue
  }

  /// Returns a token that was taken and not used.
  package mutating func giveBack() {
    let time = Self.nanoseconds(interval)
    fullTime = fullTime > time ? fullTime - time : 0
  }

  private static func nanoseconds(_ time: Double) -> UInt64 {
    time < 9e18 ? UInt64(max(0, time)) : 9_000_000_000_000_000_000
  }
}

extension TokenBucket {
  /// Makes a bucket for the requests to a host.
  package init(_ rate: TransportOptions.RequestLimits.Rate) {
    self.init(rate: rate.perSecond, burst: Double(rate.burst))
  }
}

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
