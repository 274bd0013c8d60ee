import HTTPSystem
import HTTPWire
import Testing

@Suite("The monotonic clock") struct MonotonicClockTests {
  @Test("It never goes back") func order() {
    let first = MonotonicTime.now
    let second = MonotonicTime.now
    #expect(first <= second && first > MonotonicTime(nanoseconds: 0))
  }
}
