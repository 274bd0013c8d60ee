import HTTPEngine
import Testing

@Suite struct StalledTransferPollTests {
  @Test func theLooksBecomeRarerAndEnd() {
    var look = StalledTransferPoll()
    let pauses = (0..<20).map { _ in look.pause() }
    #expect(pauses.first == 1)
    #expect(pauses.last == .max)
    for (pause, next) in zip(pauses, pauses.dropFirst()) where pause != .max { #expect(pause < next) }
    #expect(pauses.count { $0 != .max } < 10, "an idle loop must come to rest")
    #expect(pauses.filter { $0 != .max }.reduce(0, +) < 2000)
  }

  @Test func whateverHappensBringsThemBack() {
    var look = StalledTransferPoll()
    for _ in 0..<3 { _ = look.pause() }
    look.somethingHappened()
    #expect(look.pause() == 1)
    for _ in 0..<20 { _ = look.pause() }
    look.somethingHappened()
    #expect(look.pause() == 1)
  }
}
