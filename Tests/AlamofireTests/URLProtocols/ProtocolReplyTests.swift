import Alamofire
import HTTPSystem
import HTTPWire
import Testing

@Suite struct ProtocolReplyTests {
  private typealias Event = ProtocolReply.Event

  @Test("A response is delivered") func response() {
    var reply = ProtocolReply()
    #expect(reply.event(.response) == .deliverHead)
    #expect(reply.event(.bytes) == .deliverBytes)
    #expect(reply.event(.finish) == .complete)
    #expect(reply.state == .ended)
  }

  @Test("Bytes without a response are delivered") func bytesAlone() {
    var reply = ProtocolReply()
    #expect(reply.event(.bytes) == .deliverBytesAlone)
    #expect(reply.event(.bytes) == .deliverBytes)
    #expect(reply.event(.response) == .nothing)
    #expect(reply.event(.finish) == .complete)
    #expect(reply.state == .ended)
  }

  @Test("An end before a response and before bytes is a failure") func wrongOrder() {
    var reply = ProtocolReply()
    #expect(reply.event(.finish) == .refuse(.endBeforeResponse))
    #expect(reply.state == .ended)
    for fault in ProtocolReply.Fault.allCases { #expect(fault.message("Stub").contains("Stub")) }
  }

  @Test("A second response and a late redirect are ignored") func lateEvents() {
    var reply = ProtocolReply()
    _ = reply.event(.response)
    for event in [Event.response, .redirect, .challenge] { #expect(reply.event(event) == .nothing) }
    #expect(reply.state == .receiving)
  }

  @Test("A redirect ends the reply") func redirect() {
    var reply = ProtocolReply()
    #expect(reply.event(.challenge) == .answerChallenge)
    #expect(reply.event(.redirect) == .follow)
    #expect(reply.state == .ended)
  }

  @Test("Events after the end are ignored") func afterEnd() {
    for end in [Event.failure, .cancel, .timeout] {
      var reply = ProtocolReply()
      #expect(reply.event(end) != .nothing)
      for event in Event.allCases { #expect(reply.event(event) == .nothing) }
    }
  }

  @Test("Any order of events has one end", arguments: 0..<50) func randomOrder(seed: UInt64) {
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

  @Test("The idle timeout and the deadline are measured") func clock() {
    let start = MonotonicTime.now
    var clock = ProtocolClock(idle: .seconds(10), deadline: start + .seconds(15), now: start)
    #expect(clock.untilNext(at: start) == .seconds(10))
    #expect(!clock.isOver(at: start + .seconds(9)))
    #expect(clock.isOver(at: start + .seconds(10)) && clock.exceededPhase(at: start + .seconds(10)) == .idle)
    clock.moved(at: start + .seconds(9))
    #expect(!clock.isOver(at: start + .seconds(14)))
    #expect(clock.isOver(at: start + .seconds(15)) && clock.exceededPhase(at: start + .seconds(15)) == .total)
    #expect(ProtocolClock(idle: nil, deadline: nil, now: start).untilNext(at: start) == nil)
  }
}
