import HTTPWire
import Testing

@Suite struct RepeatDecisionTests {
  @Test(
    "An idempotent request is repeated once if its fate is unknown",
    arguments: ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
  func idempotentRequests(method: String) {
    var decision = RepeatDecision(method: method)
    let new = decision.mayRepeat(after: .unknown, usedConnection: false)
    #expect(!new && !decision.hasRepeated)
    let first = decision.mayRepeat(after: .unknown, usedConnection: true)
    #expect(first && decision.hasRepeated)
    let second = decision.mayRepeat(after: .unknown, usedConnection: true)
    #expect(!second)
  }

  @Test(
    "Another request is not repeated if its fate is unknown",
    arguments: ["POST", "PATCH", "get", "QUERY", "CONNECT", ""])
  func otherRequests(method: String) {
    var decision = RepeatDecision(method: method)
    let verdict = decision.mayRepeat(after: .unknown, usedConnection: true)
    #expect(!verdict)
    var known = RepeatDecision(method: method, isIdempotent: true)
    let verdicts = (0..<2).map { _ in known.mayRepeat(after: .unknown, usedConnection: true) }
    #expect(verdicts == [true, false] && known.isIdempotent)
  }

  @Test("A refused request is repeated thirty-two times", arguments: ["GET", "POST"])
  func refusedRequests(method: String) {
    var decision = RepeatDecision(method: method)
    for _ in 0..<32 {
      let verdict = decision.mayRepeat(after: .refused, usedConnection: false)
      #expect(verdict)
    }
    let last = decision.mayRepeat(after: .refused, usedConnection: true)
    #expect(!last)
  }

  @Test("An unsent request is repeated if the connection was used before") func unsentRequest() {
    var decision = RepeatDecision(method: "POST")
    let new = decision.mayRepeat(after: .notSent, usedConnection: false)
    let used = decision.mayRepeat(after: .notSent, usedConnection: true)
    #expect(!new && used)
  }

  @Test("A repeat after a refusal does not count as one after an unknown fate") func separateCounts() {
    var decision = RepeatDecision(method: "GET")
    let verdicts = [RepeatDecision.Evidence.refused, .unknown, .refused, .unknown].map {
      decision.mayRepeat(after: $0, usedConnection: true)
    }
    #expect(verdicts == [true, true, true, false])
  }

  @Test("A busy server gets the request again after pauses that grow, and six times at most") func pauses() {
    var decision = RepeatDecision(method: "POST")
    var pauses: [UInt64] = []
    while decision.mayRepeat(after: .refused, usedConnection: false, isBusy: true) {
      pauses.append(decision.pause / 1_000_000)
    }
    #expect(pauses == [0, 100, 200, 400, 800, 1_600])
    let mayRepeat = decision.mayRepeat(after: .refused, usedConnection: false)
    #expect(mayRepeat, "another refusal is repeated")
    #expect(decision.pause == 0)
  }
}
