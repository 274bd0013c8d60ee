import Foundation
package import HTTPWire

/// The idle timeout and the deadline of a request. Pure.
package struct ProtocolClock: Sendable {
  private let idle: Duration?
  private let deadline: ContinuousClock.Instant?
  private var lastMove: ContinuousClock.Instant

  package init(idle: Duration?, deadline: ContinuousClock.Instant?, now: ContinuousClock.Instant) {
    self.idle = idle
    self.deadline = deadline
    lastMove = now
  }

  package mutating func moved(at now: ContinuousClock.Instant) {
    lastMove = now
  }

  private var end: ContinuousClock.Instant? {
    [idle.map { lastMove + $0 }, deadline].compactMap { $0 }.min()
  }

  package func isOver(at now: ContinuousClock.Instant) -> Bool {
    end.map { $0 <= now } ?? false
  }

  /// Returns the phase whose limit is exceeded after ``isOver(at:)``.
  package func exceededPhase(at now: ContinuousClock.Instant) -> TransportOptions.TimeLimits.Phase {
    deadline.map { $0 <= now } ?? false ? .total : .idle
  }

  /// Returns the time until the next timeout; `nil` without one.
  package func untilNext(at now: ContinuousClock.Instant) -> Duration? {
    end.map { max(.milliseconds(1), now.duration(to: $0)) }
  }
}

extension Duration {
  /// The interval for a timer, at most a day; a timer that fires early is set again.
  var dispatchInterval: DispatchTimeInterval {
    let (seconds, attoseconds) = min(self, .seconds(86_400)).components
    return .nanoseconds(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000) + 1)
  }
}
