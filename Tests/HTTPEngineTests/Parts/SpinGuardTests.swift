import HTTPEngine
import Testing

@Suite struct SpinGuardTests {
  static let window = SpinGuard.window

  /// Turns at even intervals, all without progress.
  static func turn(_ spin: inout SpinGuard, _ count: Int, from start: UInt64, over time: UInt64) -> Bool {
    var wasSpinning = false
    for index in 0..<count {
      let now = start + time * UInt64(index) / UInt64(count)
      spin.turned(progressed: false, now: now)
      wasSpinning = wasSpinning || spin.isSpinning(now: now)
    }
    return wasSpinning
  }

  @Test("A new guard detects no spinning") func newGuard() {
    #expect(!SpinGuard().isSpinning(now: 0))
    #expect(!SpinGuard().isSpinning(now: .max))
  }

  @Test("Many turns without progress are spinning") func spinning() {
    var spin = SpinGuard()
    #expect(Self.turn(&spin, SpinGuard.turns * 2, from: 5, over: Self.window * 3 / 2))
  }

  @Test("Many turns in a short time are not spinning yet") func shortTime() {
    var spin = SpinGuard()
    #expect(!Self.turn(&spin, SpinGuard.turns * 2, from: 5, over: Self.window / 2))
  }

  @Test("Few turns over a long time are not spinning") func fewTurns() {
    var spin = SpinGuard()
    #expect(!Self.turn(&spin, SpinGuard.turns, from: 5, over: Self.window * 100))
  }

  @Test("A transfer with some progress is not spinning") func progress() {
    var spin = SpinGuard()
    for part in 0..<20 as Range<UInt64> {
      let start = part * Self.window / 2
      #expect(!Self.turn(&spin, SpinGuard.turns, from: start, over: Self.window / 2))
      spin.turned(progressed: true, now: start + Self.window / 2)
    }
  }

  @Test("A sleeping loop restarts the count") func sleep() {
    var spin = SpinGuard()
    #expect(!Self.turn(&spin, SpinGuard.turns - 10, from: 0, over: Self.window / 2))
    #expect(!Self.turn(&spin, 100, from: Self.window * 10, over: Self.window / 2))
  }
}
