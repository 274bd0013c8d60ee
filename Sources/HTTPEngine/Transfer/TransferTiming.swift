/// The times and the time limits of one transfer. Pure: the caller reads the clocks.
package struct TransferTiming: Sendable {
  /// The start of the transfer, in seconds since 1970.
  package let start: Double
  /// The last time at which bytes moved or were allowed to move, in nanoseconds of the monotonic clock.
  package var lastActivity: UInt64
  /// The longest silence, in nanoseconds.
  package let idleLimit: UInt64
  /// The end of the whole transfer, on the monotonic clock.
  package let deadline: UInt64

  package init(start: Double = 0, now: UInt64 = 0, idleLimit: UInt64 = .max, deadline: UInt64 = .max) {
    self.start = start
    lastActivity = now
    self.idleLimit = idleLimit
    self.deadline = deadline
  }

  /// Returns the time at which silence or the deadline ends the transfer. A transfer that waits for the caller, its
  /// queue, its source or its sink is not silent.
  package func expiry(_ phase: TransferPhase, _ flow: ByteFlow) -> UInt64 {
    guard phase.isAdded, flow == .moving else { return deadline }
    let idle = lastActivity.addingReportingOverflow(idleLimit)
    return min(deadline, idle.overflow ? .max : idle.partialValue)
  }
}
