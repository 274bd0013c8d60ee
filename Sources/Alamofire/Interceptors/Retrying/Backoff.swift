import Foundation

/// How long to wait before a request is sent again. Pure; what is random is passed in.
package struct Backoff: Sendable {
  package let base: UInt
  package let scale: Double
  package let isJittered: Bool

  package init(base: UInt, scale: Double, isJittered: Bool) {
    self.base = base
    self.scale = scale
    self.isJittered = isJittered
  }

  /// The longest delay in seconds, which requests wait at most.
  package static let longest: TimeInterval = 31_536_000

  /// The delay in seconds after a request was retried `retryCount` times: `base` to the power of it, times
  /// `scale`, or with jitter a part of that, chosen by `random` (0 to 1). What the server asked for is the
  /// least; jitter is added to it, so that those who were told the same time do not come together.
  ///
  /// Always a finite number from 0 to ``longest``. A scale that is negative or no number gives no delay.
  package func delay(retryCount: Int, asked: TimeInterval? = nil, random: Double) -> TimeInterval {
    let least = clamped(asked ?? 0)
    // The power may be infinite; times a scale of zero that is no number, and no delay.
    let full = clamped(pow(Double(base), Double(max(0, retryCount))) * scale)
    return isJittered ? clamped(least + full * random) : max(least, full)
  }

  private func clamped(_ seconds: TimeInterval) -> TimeInterval {
    seconds > 0 ? min(seconds, Self.longest) : 0
  }
}
