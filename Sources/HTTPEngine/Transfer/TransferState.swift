/// The phase of a transfer, from the pool and back into it. Pure.
package enum TransferPhase: Equatable, Sendable {
  /// The transfer is in the pool and has no request.
  case idle
  /// The transfer has a request and is in no queue: it has just begun, or it was suspended before its turn.
  case withheld
  /// The transfer is in the queue of its host, or was admitted and is about to start.
  case waiting
  /// The handle belongs to libcurl's multi handle.
  case running(sharesConnection: Bool)
  /// The transfer has its outcome, and a stream of bytes uses its handle and its connection.
  case lent(sharesConnection: Bool)

  /// Whether the handle belongs to libcurl's multi handle.
  package var isAdded: Bool {
    switch self {
    case .idle, .withheld, .waiting: false
    case .running, .lent: true
    }
  }

  package var isLent: Bool {
    if case .lent = self { true } else { false }
  }

  /// Whether other transfers may use the connection at the same time, as far as is known.
  package var sharesConnection: Bool {
    switch self {
    case .idle, .withheld, .waiting: false
    case .running(let shares), .lent(let shares): shares
    }
  }

  /// Lends the handle and the connection to a stream of bytes.
  package mutating func lend() {
    guard case .running(let shares) = self else { return }
    self = .lent(sharesConnection: shares)
  }

  /// Ends the loan. Returns false if there is none.
  package mutating func endLoan() -> Bool {
    guard case .lent(let shares) = self else { return false }
    self = .running(sharesConnection: shares)
    return true
  }
}

/// The flow of a transfer's bytes between libcurl and the engine. Pure.
///
/// Callbacks stop the flow by their answer, because libcurl 7.88 can lose bytes when it is told to pause from elsewhere.
/// Therefore a suspended transfer is `stopping` until its next callback.
package enum ByteFlow: Equatable, Sendable {
  /// The reason for which libcurl was told to wait.
  package enum Reason: Equatable, Sendable {
    /// The caller suspended the transfer, or the observer held it back at its head.
    case suspended
    /// The sink has no room for more of the response body.
    case sinkFull
    /// The source has no more of the request body at the moment.
    case sourceEmpty
    /// The decoder has produced as many bytes as one turn of the loop allows.
    case turnExhausted
  }

  case moving
  /// The transfer is suspended, and libcurl was not told yet.
  case stopping
  /// libcurl was told to wait.
  case stopped(Reason)

  /// Whether the caller or the observer suspended the transfer.
  package var isSuspended: Bool { self == .stopping || self == .stopped(.suspended) }

  /// Whether libcurl was told to wait, and has to be told to continue.
  package var isStopped: Bool {
    if case .stopped = self { true } else { false }
  }

  /// Suspends the flow. Returns false if it is suspended.
  package mutating func suspend() -> Bool {
    guard !isSuspended else { return false }
    self = isStopped ? .stopped(.suspended) : .stopping
    return true
  }

  /// Ends the suspension. Returns whether libcurl has to be told to continue. A sink that is still full stops it again.
  package mutating func resume() -> Bool {
    guard isSuspended else { return false }
    defer { self = .moving }
    return isStopped
  }

  /// Notes that libcurl was told to wait. A suspension outlasts every other reason.
  package mutating func stop(_ reason: Reason) {
    self = .stopped(isSuspended ? .suspended : reason)
  }

  /// Notes that a suspended transfer asked to move bytes, and was told to wait. Returns false if it may move them.
  package mutating func stopIfSuspended() -> Bool {
    guard isSuspended else { return false }
    self = .stopped(.suspended)
    return true
  }

  /// Notes that the sink has room or the source has bytes. Returns whether libcurl has to be told to continue.
  package mutating func proceed() -> Bool {
    guard isStopped, !isSuspended else { return false }
    self = .moving
    return true
  }
}

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
