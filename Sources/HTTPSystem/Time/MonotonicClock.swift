package import Dispatch
import Glibc
package import HTTPWire

extension MonotonicTime {
  /// The time at present.
  package static var now: MonotonicTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
  }
}

extension WireRequest {
  /// Whether the deadline of the request has come.
  package var isOverdue: Bool { deadline.map { $0 <= .now } ?? false }

  /// The message of the failure with which the request ends at its deadline.
  package var overdueMessage: String {
    profile.options.timeLimits.total.map {
      TransportOptions.TimeLimits.Phase.total.message(host: origin.host, limit: $0)
    } ?? "The transfer from \(origin.host) was not complete in time (timeoutIntervalForResource)."
  }
}

extension DispatchSource {
  /// Calls `body` once at a time, on a queue, unless the timer is cancelled before. A block of `asyncAfter` cannot be
  /// cancelled, and stays until its time.
  ///
  /// - Parameter queue: Default: a queue of the system.
  package static func timer(
    at time: DispatchTime, on queue: DispatchQueue? = nil, _ body: @escaping @Sendable () -> Void
  ) -> any DispatchSourceTimer {
    let timer = makeTimerSource(queue: queue)
    timer.schedule(deadline: time)
    timer.setEventHandler(handler: body)
    timer.resume()
    return timer
  }
}

extension DispatchTime {
  /// Makes the time of a deadline, and a moment more, so that the deadline is over by every clock.
  package init(_ deadline: MonotonicTime) {
    let rest = MonotonicTime.now.duration(to: deadline) / .milliseconds(1)
    self = .now() + .milliseconds(Int(min(max(0, rest), 1e12)) + 2)
  }
}
