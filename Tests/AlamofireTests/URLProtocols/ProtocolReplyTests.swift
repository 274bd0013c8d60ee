import Alamofire
import Testing

@Suite struct ProtocolReplyTests {
  private typealias Event = ProtocolReply.Event

  @Test func aPlainAnswerIsDelivered() {
    var reply = ProtocolReply()
    #expect(reply.event(.response) == .deliverHead)
    #expect(reply.event(.bytes) == .deliverBytes)
    #expect(reply.event(.finish) == .complete)
    #expect(reply.state == .ended)
  }

  @Test func whatComesInTheWrongOrderIsAFault() {
    var reply = ProtocolReply()
    #expect(reply.event(.bytes) == .refuse(.bytesBeforeResponse))
    reply = ProtocolReply()
    #expect(reply.event(.finish) == .refuse(.endBeforeResponse))
    #expect(reply.state == .ended)
    for fault in ProtocolReply.Fault.allCases { #expect(fault.message("Stub").contains("Stub")) }
  }

  @Test func aSecondResponseAndALateRedirectDoNotCount() {
    var reply = ProtocolReply()
    _ = reply.event(.response)
    for event in [Event.response, .redirect, .challenge] { #expect(reply.event(event) == .nothing) }
    #expect(reply.state == .receiving)
  }

  @Test func aRedirectEndsIt() {
    var reply = ProtocolReply()
    #expect(reply.event(.challenge) == .answerChallenge)
    #expect(reply.event(.redirect) == .follow)
    #expect(reply.state == .ended)
  }

  @Test func afterTheEndNothingCounts() {
    for end in [Event.failure, .cancel, .timeout] {
      var reply = ProtocolReply()
      #expect(reply.event(end) != .nothing)
      for event in Event.allCases { #expect(reply.event(event) == .nothing) }
    }
  }

  @Test(arguments: 0..<50) func anyOrderHasAnAnswerAndOneEnd(seed: UInt64) {
    var state = seed &* 6_364_136_223_846_793_005 &+ 1
    var reply = ProtocolReply()
    var ends = 0
    for _ in 0..<40 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let event = Event.allCases[Int((state >> 33) % UInt64(Event.allCases.count))]
      let wasOver = reply.state == .ended
      let action = reply.event(event)
      if wasOver { #expect(action == .nothing) }
      if !wasOver, reply.state == .ended { ends += 1 }
    }
    #expect(ends == 1)
  }

  @Test func theClockCountsSilenceAndTheDeadline() {
    let start = ContinuousClock.now
    var clock = ProtocolClock(idle: .seconds(10), deadline: start + .seconds(15), now: start)
    #expect(clock.untilNext(at: start) == .seconds(10))
    #expect(!clock.isOver(at: start + .seconds(9)))
    #expect(clock.isOver(at: start + .seconds(10)))
    clock.moved(at: start + .seconds(9))
    #expect(!clock.isOver(at: start + .seconds(14)))
    #expect(clock.isOver(at: start + .seconds(15)))
    #expect(ProtocolClock(idle: nil, deadline: nil, now: start).untilNext(at: start) == nil)
  }
}
