import HTTPWire
import Testing

@Suite("Times of the monotonic clock") struct MonotonicTimeTests {
  private let time = MonotonicTime(nanoseconds: 5_000_000_000)

  @Test("A duration leads to a later time, at most the end of the clock") func addition() {
    #expect(time + .seconds(2) == MonotonicTime(nanoseconds: 7_000_000_000))
    #expect(time + .seconds(Int64.max) == MonotonicTime(nanoseconds: .max))
    #expect(MonotonicTime(nanoseconds: .max) + .nanoseconds(1) == MonotonicTime(nanoseconds: .max))
    #expect(time + .seconds(-2) == time)
  }

  @Test("The duration to an earlier time is negative") func distance() {
    #expect(time.duration(to: time + .milliseconds(1)) == .milliseconds(1))
    #expect((time + .milliseconds(1)).duration(to: time) == .milliseconds(-1))
    #expect(time.duration(to: time) == .zero)
    let end = MonotonicTime(nanoseconds: .max)
    #expect(MonotonicTime(nanoseconds: 0).duration(to: end) == .nanoseconds(Int64.max))
  }
}
