import Glibc
import HTTPEngine
import Testing

@Suite struct ClockTests {
  @Test(
    "A duration has nanoseconds",
    arguments: [
      (.zero, 0), (.nanoseconds(1), 1), (.milliseconds(150), 150_000_000), (.seconds(60), 60_000_000_000),
      (.seconds(-1), 0), (.nanoseconds(-1), 0), (.microseconds(-1500), 0),
      (.seconds(16_000_000_000), .max), (.seconds(Int64.max), .max), (.seconds(Int64.min), 0),
      (Duration(secondsComponent: 1, attosecondsComponent: 999_999_999), 1_000_000_000),
    ] as [(Duration, UInt64)])
  func nanoseconds(duration: Duration, nanoseconds: UInt64) {
    #expect(Clock.nanoseconds(duration) == nanoseconds)
  }

  @Test("A time out of range is the last time of the clock") func range() {
    let before = Clock.now()
    #expect(Clock.now(plus: .seconds(60)) - before >= 60_000_000_000)
    #expect(Clock.now(plus: .seconds(-60)) >= before)
    #expect(Clock.now(plus: .seconds(Int64.max)) == .max)
  }

  @Test("The clock of timeouts is monotonic") func monotonic() {
    let times = (0..<1000).map { _ in Clock.now() }
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(Clock.now() > 0)
    #expect(Clock.wall() > 1_700_000_000)
  }

  @Test("The clock for ages is the one that goes on while the machine sleeps") func sinceBoot() {
    func system() -> UInt64 {
      // The seconds and nanoseconds of a `timespec`, whose members cannot be named beside the module of OpenSSL.
      var time: (seconds: Int, nanoseconds: Int) = (0, 0)
      withUnsafeMutableBytes(of: &time) { bytes in
        _ = bytes.baseAddress.map { clock_gettime(CLOCK_BOOTTIME, $0.assumingMemoryBound(to: timespec.self)) }
      }
      return UInt64(time.seconds) * 1_000_000_000 + UInt64(time.nanoseconds)
    }
    let (before, time, after) = (system(), Clock.sinceBoot(), system())
    #expect(before <= time && time <= after)
  }
}
