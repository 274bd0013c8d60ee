import Alamofire
import Testing

/// The decisions without I/O. Requests are numbers, credentials are texts.
@Suite("Decisions about credentials") struct AuthenticationFlowTests {
  typealias Flow = AuthenticationFlow<String, Int, Int>

  /// Returns a short description of a step.
  static func text(_ step: Flow.AdaptationStep) -> String {
    switch step {
    case .ask(let credential, let version): "ask \(credential) \(version)"
    case .hold: "hold"
    case .refresh(let refresh): "refresh \(refresh.credential) \(refresh.ticket)"
    case .apply(let credential, _): "apply \(credential)"
    case .fail(let error): "fail \(error)"
    case .release(let release): text(release)
    }
  }

  static func text(_ step: Flow.RetryStep) -> String {
    switch step {
    case .retry: "retry"
    case .hold: "hold"
    case .refresh(let refresh): "refresh \(refresh.credential) \(refresh.ticket)"
    case .fail(let error): "fail \(error)"
    case .release(let release): text(release)
    }
  }

  static func text(_ release: Flow.Release) -> String {
    let outcome =
      switch release.outcome {
      case .success(let credential): credential
      case .failure(let error): "\(error)"
      }
    return "release \(release.adaptations) \(release.retries) \(outcome)"
  }

  private func adapt(
    _ flow: inout Flow, _ number: Int, expired: Bool? = nil, version: Int? = nil, at time: Double = 0
  ) -> String {
    let finding = expired.map { Flow.Finding(version: version ?? flow.version, requiresRefresh: $0) }
    return Self.text(flow.adapt(number, knowing: finding, at: time))
  }

  private func retry(_ flow: inout Flow, _ number: Int, version: Int? = nil, at time: Double = 0) -> String {
    Self.text(flow.retry(number, version: version ?? flow.version, at: time))
  }

  private func refreshed(_ flow: inout Flow, _ ticket: Int, _ result: Result<String, any Error>) -> String? {
    flow.refreshed(ticket, result).map(Self.text)
  }

  @Test("Without a credential no request is sent") func noCredential() {
    var flow = Flow(credential: nil, limit: nil)
    #expect(adapt(&flow, 1) == "fail missingCredential")
  }

  @Test("A credential is checked for expiration and then applied") func application() {
    var flow = Flow(credential: "a", limit: nil)
    #expect(adapt(&flow, 1) == "ask a 0")
    #expect(adapt(&flow, 1, expired: false) == "apply a")
  }

  @Test("A check of an old credential is ignored") func outdatedCheck() {
    var flow = Flow(credential: "a", limit: nil)
    let former = flow.replace(with: "b")
    #expect(former.credential == "a")
    #expect(adapt(&flow, 1, expired: true, version: 0) == "ask b 1")
  }

  @Test("An expired credential is refreshed once, and all requests wait") func expiredCredential() {
    var flow = Flow(credential: "a", limit: nil)
    #expect(adapt(&flow, 1, expired: true) == "refresh a 1")
    #expect(adapt(&flow, 2) == "hold", "no check is necessary")
    #expect(adapt(&flow, 3, expired: true) == "hold")
    #expect(retry(&flow, 4) == "hold")
    #expect(refreshed(&flow, 1, .success("b")) == "release [1, 2, 3] [4] b")
    #expect(flow.credential == "b")
    #expect(!flow.isRefreshing)
  }

  @Test("A refresh after a rejection does not delay new requests") func rejection() {
    var flow = Flow(credential: "a", limit: nil)
    #expect(retry(&flow, 1) == "refresh a 1")
    #expect(adapt(&flow, 2, expired: false) == "apply a")
    #expect(adapt(&flow, 3, expired: true) == "apply a", "one refresh at a time, which holds no request")
    #expect(retry(&flow, 4) == "hold")
    #expect(refreshed(&flow, 1, .success("b")) == "release [] [1, 4] b")
  }

  @Test("A request with an older credential is retried at once") func olderCredential() {
    var flow = Flow(credential: "a", limit: nil)
    _ = flow.replace(with: "b")
    #expect(retry(&flow, 1, version: 0) == "retry")
    #expect(!flow.isRefreshing)
  }

  @Test("A failed refresh fails retries until the next request") func failedRefresh() {
    var flow = Flow(credential: "a", limit: nil)
    _ = retry(&flow, 1)
    #expect(refreshed(&flow, 1, .failure(TestError())) == "release [] [1] \(TestError())")
    #expect(retry(&flow, 2) == "fail \(TestError())")
    #expect(adapt(&flow, 3, expired: false) == "apply a")
    #expect(retry(&flow, 4) == "refresh a 2")
  }

  @Test("A new credential clears the failure") func newCredential() {
    var flow = Flow(credential: "a", limit: nil)
    _ = retry(&flow, 1)
    _ = refreshed(&flow, 1, .failure(TestError()))
    _ = flow.replace(with: "b")
    #expect(flow.failure == nil)
    #expect(retry(&flow, 2) == "refresh b 2")
  }

  @Test("A failure that is replaced is returned, because it must not be released under the lock")
  func formerFailure() {
    var flow = Flow(credential: "a", limit: Flow.Limit(interval: 30, attempts: 3))
    func failed(_ flow: inout Flow, _ ticket: Int, after former: String?) {
      let release = flow.refreshed(ticket, .failure(TestError(text: "\(ticket)")))
      #expect((release?.former.failure as? TestError)?.text == former)
    }
    _ = retry(&flow, 1)
    failed(&flow, 1, after: nil)
    _ = adapt(&flow, 2, expired: true)
    failed(&flow, 2, after: "1")
    let step = flow.adapt(3, knowing: Flow.Finding(version: 0, requiresRefresh: false), at: 0)
    guard case .apply(_, let former) = step else {
      Issue.record("\(step)")
      return
    }
    #expect((former.failure as? TestError)?.text == "2")
    _ = retry(&flow, 4)
    failed(&flow, 3, after: nil)
    // The limit is reached.
    let refusal = flow.adapt(5, knowing: Flow.Finding(version: 0, requiresRefresh: true), at: 0)
    guard case .release(let release) = refusal else {
      Issue.record("\(refusal)")
      return
    }
    #expect((release.former.failure as? TestError)?.text == "3")
    let last = flow.replace(with: "b").failure
    #expect(last as? AuthenticationError == .excessiveRefresh)
    #expect(flow.failure == nil)
  }

  @Test("Only the running refresh can end") func runningRefresh() {
    var flow = Flow(credential: "a", limit: nil)
    #expect(refreshed(&flow, 1, .success("x")) == nil)
    _ = retry(&flow, 1)
    #expect(refreshed(&flow, 2, .success("x")) == nil)
    #expect(refreshed(&flow, 1, .success("b")) != nil)
    #expect(refreshed(&flow, 1, .success("x")) == nil)
    #expect(flow.credential == "b")
  }

  @Test("A credential that was set during a refresh has priority") func replacedCredential() {
    var flow = Flow(credential: "a", limit: nil)
    _ = adapt(&flow, 1, expired: true)
    _ = flow.replace(with: "mine")
    #expect(refreshed(&flow, 1, .success("b")) == "release [1] [] mine")
    #expect(flow.credential == "mine")
    _ = retry(&flow, 2)
    _ = flow.replace(with: "other")
    #expect(refreshed(&flow, 2, .failure(TestError())) == "release [] [2] other")
    #expect(flow.failure == nil)
  }

  @Test("A refresh does not restore a removed credential") func removedCredential() {
    var flow = Flow(credential: "a", limit: nil)
    _ = retry(&flow, 1)
    _ = flow.replace(with: nil)
    #expect(refreshed(&flow, 1, .success("b")) == "release [] [1] missingCredential")
    #expect(flow.credential == nil)
  }

  /// Starts `count` refreshes, and returns the decision about the last one.
  private func last(of count: Int, limit: Flow.Limit?, at time: (Int) -> Double) -> String {
    var flow = Flow(credential: "a", limit: limit)
    var answer = ""
    for number in 1...count {
      answer = retry(&flow, number, at: time(number))
      _ = flow.refreshed(number, .success("a"))
    }
    return answer
  }

  @Test("The sixth refresh in half a minute is refused") func excessiveRefresh() {
    let limit = Flow.Limit(interval: 30, attempts: 5)
    #expect(last(of: 5, limit: limit) { _ in 0 } == "refresh a 5")
    #expect(last(of: 6, limit: limit) { _ in 0 } == "release [] [6] excessiveRefresh")
    #expect(last(of: 6, limit: limit) { $0 == 6 ? 30 : 0 } == "release [] [6] excessiveRefresh")
    #expect(last(of: 6, limit: limit) { $0 == 6 ? 30.1 : 0 } == "refresh a 6")
    #expect(last(of: 100, limit: limit) { Double($0) * 10 } == "refresh a 100")
    #expect(last(of: 100, limit: nil) { _ in 0 } == "refresh a 100")
    for interval in [0, -1, Double.nan] {
      let limit = Flow.Limit(interval: interval, attempts: 2)
      #expect(last(of: 3, limit: limit) { Double($0) } == "refresh a 3", "\(interval)")
    }
  }

  @Test(
    "Refreshes are counted at the edges of the window",
    arguments: [
      (30, 0, false), (30, -1, false), (30, 1, true), (.nan, 1, true), (-1, 1, true), (.infinity, 1, true),
      (30, .max, true), (.infinity, .min, false),
    ] as [(Double, Int, Bool)])
  func windows(interval: Double, attempts: Int, isAllowed: Bool) {
    let answer = last(of: 1, limit: Flow.Limit(interval: interval, attempts: attempts)) { _ in 0 }
    #expect(answer == (isAllowed ? "refresh a 1" : "release [] [1] excessiveRefresh"))
  }

  @Test("A new credential does not reset the count") func countOfRefreshes() {
    var flow = Flow(credential: "a", limit: Flow.Limit(interval: 30, attempts: 1))
    _ = retry(&flow, 1)
    _ = flow.refreshed(1, .success("b"))
    _ = flow.replace(with: "c")
    #expect(adapt(&flow, 2, expired: true) == "release [2] [] excessiveRefresh")
    #expect(retry(&flow, 3) == "fail excessiveRefresh")
  }

  @Test("A refresh of an earlier credential delays no new request") func outdatedRefresh() {
    var flow = Flow(credential: "a", limit: nil)
    #expect(adapt(&flow, 1, expired: true) == "refresh a 1")
    _ = flow.replace(with: nil)
    #expect(adapt(&flow, 2) == "fail missingCredential")
    _ = flow.replace(with: "b")
    #expect(adapt(&flow, 3) == "ask b 2")
    #expect(adapt(&flow, 3, expired: false) == "apply b")
    #expect(refreshed(&flow, 1, .success("late")) == "release [1] [] b")
  }
}
