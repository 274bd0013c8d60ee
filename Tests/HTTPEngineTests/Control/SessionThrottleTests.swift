import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("Exchanges that wait for bandwidth") struct SessionThrottleTests {
  @Test("An exchange continues at the earlier one of two times", arguments: [false, true])
  func twoDirections(isEarlierFirst: Bool) {
    var throttle = SessionThrottle()
    let times: [UInt64] = isEarlierFirst ? [10, 100] : [100, 10]
    _ = throttle.wait(1, .download, until: times[0], at: nil)
    _ = throttle.wait(1, .upload, until: times[1], at: nil)
    #expect(throttle.releaseTime == 10)
    let early = throttle.release(9)
    #expect(early.isEmpty)
    let released = throttle.release(10)
    #expect(released == [1])
    #expect(throttle.releaseTime == .max, "the other direction asks again")
  }

  @Test("Exchanges continue in the order of their positions") func order() {
    var throttle = SessionThrottle()
    let position = throttle.wait(1, .download, until: 10, at: nil)
    _ = throttle.wait(2, .download, until: 10, at: nil)
    let first = throttle.release(10)
    #expect(first == [1, 2])
    // Only the second one has moved bytes.
    _ = throttle.wait(2, .download, until: 20, at: nil)
    let kept = throttle.wait(1, .download, until: 20, at: position)
    #expect(kept == position)
    let second = throttle.release(20)
    #expect(second == [1, 2])
  }

  @Test(
    "An exchange continues in the earliest of its positions in directions that have bandwidth",
    arguments: [20, 1_000] as [UInt64])
  func earliestPosition(time: UInt64) {
    var throttle = SessionThrottle()
    let download = throttle.wait(1, .download, until: time, at: nil)
    _ = throttle.wait(2, .upload, until: time, at: nil)
    _ = throttle.wait(3, .upload, until: 20, at: nil)
    let upload = throttle.wait(1, .upload, until: 20, at: nil)
    #expect(upload > download)
    let released = throttle.release(20)
    #expect(released == (time == 20 ? [1, 2, 3] : [3, 1]))
  }

  @Test("Bytes in one direction leave the position of an exchange in the other one")
  func directions() async throws {
    try await ConnectionFixture.run({
      $0.sessionBandwidth = TransportOptions.Bandwidth(download: 1, upload: 1)
    }) { fixture in
      let (first, _) = try fixture.exchange(ticket: 1)
      let (second, _) = try fixture.exchange(ticket: 2)
      first.moved(1_000, .download)
      #expect(first.mustWait(.download) && second.mustWait(.download))
      let released = fixture.core.throttle.release(.max)
      #expect(released == [1, 2])
      first.moved(1, .upload)
      #expect(second.mustWait(.download) && first.mustWait(.download))
      let again = fixture.core.throttle.release(.max)
      #expect(again == [1, 2])
    }
  }
}
