/// Notices a loop that turns without anything coming of it: a transfer that libcurl wants to work on
/// again and again although no byte moves. Pure.
package struct SpinGuard {
  /// Turns within ``window`` that no healthy transfer needs without a byte.
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
