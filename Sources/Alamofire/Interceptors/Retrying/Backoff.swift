import Foundation

/// The delay before a retry. Pure: the random number is a parameter.
package struct Backoff: Sendable {
  package let base: UInt
  package let scale: Double
  package let isJittered: Bool

  package init(base: UInt, scale: Double, isJittered: Bool) {
    self.base = base
    self.scale = scale
    self.isJittered = isJittered
  }

  /// The maximum delay in seconds: a year.
  package static let longest: TimeInterval = 31_536_000

  /// Returns the delay in seconds after `retryCount` retries: `base` to the power of `retryCount`, times `scale`.
  /// With jitter it is a part of that, chosen by `random` (0 to 1). `retryAfter`, the delay of a `Retry-After`
  /// field, is the minimum. Jitter is added to it, so that clients with the same field do not retry at the same time.
  ///
  /// The result is finite, from 0 to ``longest``. A scale that is negative or not a number gives no delay.
  package func delay(retryCount: Int, retryAfter: TimeInterval? = nil, random: Double) -> TimeInterval {
    let minimum = clamped(retryAfter ?? 0)
    // An infinite power times a scale of zero is not a number, which gives no delay.
    let full = clamped(pow(Double(base), Double(max(0, retryCount))) * scale)
    return isJittered ? clamped(minimum + full * random) : max(minimum, full)
  }

  private func clamped(_ seconds: TimeInterval) -> TimeInterval {
    seconds > 0 ? min(seconds, Self.longest) : 0
  }
}
