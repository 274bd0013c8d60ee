import HTTPWire
import Testing

@Suite struct RepeatDecisionTests {
  @Test(arguments: ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
  func anIdempotentRequestIsRepeatedOnceWhenItsFateIsUnknown(method: String) {
    var decision = RepeatDecision(method: method)
    let new = decision.mayRepeat(after: .unknown, usedConnection: false)
    #expect(!new && !decision.hasRepeated)
    let first = decision.mayRepeat(after: .unknown, usedConnection: true)
    #expect(first && decision.hasRepeated)
    let second = decision.mayRepeat(after: .unknown, usedConnection: true)
    #expect(!second)
  }

  @Test(arguments: ["POST", "PATCH", "get", "QUERY", "CONNECT", ""])
  func anyOtherRequestIsNotRepeatedWhenItsFateIsUnknown(method: String) {
    var decision = RepeatDecision(method: method)
    let verdict = decision.mayRepeat(after: .unknown, usedConnection: true)
    #expect(!verdict)
  }

  @Test(arguments: ["GET", "POST"])
  func aRefusedRequestIsRepeatedThirtyTwoTimes(method: String) {
    var decision = RepeatDecision(method: method)
    for _ in 0..<32 {
      let verdict = decision.mayRepeat(after: .refused, usedConnection: false)
      #expect(verdict)
    }
    let last = decision.mayRepeat(after: .refused, usedConnection: true)
    #expect(!last)
  }

  @Test func aRequestThatWasNotSentIsRepeatedWhenTheConnectionWasUsedBefore() {
    var decision = RepeatDecision(method: "POST")
    let new = decision.mayRepeat(after: .notSent, usedConnection: false)
    let used = decision.mayRepeat(after: .notSent, usedConnection: true)
    #expect(!new && used)
  }

  @Test func aRepeatAfterARefusalLeavesTheOneAfterAnUnknownFate() {
    var decision = RepeatDecision(method: "GET")
    let verdicts = [RepeatDecision.Evidence.refused, .unknown, .refused, .unknown].map {
      decision.mayRepeat(after: $0, usedConnection: true)
    }
    #expect(verdicts == [true, true, true, false])
  }
}
