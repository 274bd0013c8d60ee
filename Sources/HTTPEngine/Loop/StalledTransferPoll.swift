/// The times at which a loop looks again at transfers that share a connection, although no socket is ready. Pure.
///
/// libcurl reads a connection of HTTP/2 for all of its streams, and sets a timer without length for each stream that
/// it finds bytes for. The end of `curl_multi_perform` clears the timers that are over. For 7.88, a timer is over if
/// it lies before the last transfer that began to connect in the call. So the timer of a transfer that had its turn
/// earlier is lost with its bytes unread. The same happens to a single transfer that was told to wait. The timer for
/// the bytes behind those that were held back can run out meanwhile. Without this poll, a complete response stays
/// unread until something else wakes the loop, for up to a minute.
package struct StalledTransferPoll {
  private static let first: UInt64 = 1
  private static let last: UInt64 = 1024
  private static let factor: UInt64 = 4

  private var next = Self.first
  /// The number of running transfers that may share a connection.
  private var sharingCount = 0
  /// Whether libcurl may have forgotten one of them: several ran at once since none did, or one was continued.
  private var mayStall = false

  package init() {}

  package mutating func transferStarted(sharesConnection: Bool) {
    guard sharesConnection else { return }
    sharingCount += 1
    mayStall = mayStall || sharingCount > 1
  }

  package mutating func transferEnded(sharesConnection: Bool) {
    guard sharesConnection else { return }
    sharingCount -= 1
    mayStall = mayStall && sharingCount > 0
  }

  /// Takes note that a transfer goes on which had been told to wait.
  package mutating func transferContinued(sharesConnection: Bool) {
    mayStall = mayStall || sharesConnection
  }

  /// Begins with short pauses again, because bytes moved or a transfer started.
  package mutating func somethingHappened() {
    next = Self.first
  }

  /// Returns the number of milliseconds for which the loop may sleep. Each pause is longer, and the last ones have no
  /// limit.
  package mutating func pause() -> UInt64 {
    guard mayStall, next <= Self.last else { return .max }
    defer { next *= Self.factor }
    return next
  }
}

/// The detection of a busy loop without progress: a transfer that libcurl works on again and again although no byte
/// moves. Pure.
package struct SpinGuard {
  /// The number of turns without a byte within ``window`` that no healthy transfer reaches.
  package static let turns = 20_000
  package static let window: UInt64 = 1_000_000_000

  private var idleTurns = 0
  private var since: UInt64 = 0

  package init() {}

  package mutating func turned(progressed: Bool, now: UInt64) {
    if progressed || idleTurns == 0 || now - since > Self.window * 2 {
      idleTurns = 1
      since = now
    } else {
      idleTurns += 1
    }
  }

  package func isSpinning(now: UInt64) -> Bool {
    idleTurns > Self.turns && now - since >= Self.window
  }
}
