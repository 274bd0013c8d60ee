import FoundationEssentials
import HTTPWire
import Testing

/// RFC 9111 §5, RFC 5861 and RFC 8246, sentence by sentence; Documentation/HTTPCaching.md is the table.
@Suite("RFC 9111 §5: directives") struct DirectiveRequirementTests {
  private typealias Scene = CacheScene
  private let ask = Verdict.validate(["If-None-Match: \"1\""])

  private func stored(_ control: String) -> StoredResponse {
    Scene.response([("Cache-Control", control), ("ETag", "\"1\"")])
  }

  @Test func tooLargeNumbersAreTheLargest() {
    for number in ["2147483648", "99999999999", "999999999999999999999999999999"] {
      #expect(CacheControl("max-age=\(number)").maxAge == 2_147_483_648)
    }
    #expect(Scene.decide(stored("max-age=999999999999999999999999"), after: 1_000_000) == .serve)
  }

  @Test func maxAgeOfARequestLimitsTheAge() {
    #expect(Scene.decide(stored("max-age=60"), after: 10, asked: [("Cache-Control", "max-age=10")]) == .serve)
    #expect(Scene.decide(stored("max-age=60"), after: 11, asked: [("Cache-Control", "max-age=10")]) == ask)
    #expect(Scene.decide(stored("max-age=60"), after: 1, asked: [("Cache-Control", "max-age=0")]) == ask)
    #expect(Scene.decide(stored("max-age=60"), after: 1, asked: [("Cache-Control", "max-age=much")]) == ask)
  }

  @Test func minFreshOfARequestAsksForMore() {
    #expect(
      Scene.decide(stored("max-age=60"), after: 20, asked: [("Cache-Control", "min-fresh=40")]) == .serve)
    #expect(Scene.decide(stored("max-age=60"), after: 21, asked: [("Cache-Control", "min-fresh=40")]) == ask)
    #expect(Scene.decide(stored("max-age=60"), after: 21, asked: [("Cache-Control", "min-fresh=x")]) == ask)
  }

  @Test func noCacheOfARequestValidates() {
    #expect(Scene.decide(stored("max-age=60"), asked: [("Cache-Control", "no-cache")]) == ask)
    #expect(Scene.decide(stored("max-age=60"), asked: [("Pragma", "no-cache")]) == ask)
    #expect(
      Scene.decide(stored("max-age=60"), asked: [("Pragma", "no-cache"), ("Cache-Control", "max-age=60")])
        == .serve)
  }

  @Test func noStoreOfARequestLeavesNoTrace() {
    #expect(Scene.decide(stored("max-age=60"), asked: [("Cache-Control", "no-store")]) == .send)
    let only = [("Cache-Control", "no-store, only-if-cached")]
    #expect(Scene.decide(stored("max-age=60"), asked: only) == .gatewayTimeout, "nothing may be sent")
  }

  @Test func onlyIfCachedIsNeverSent() {
    let only = [("Cache-Control", "only-if-cached")]
    #expect(Scene.decide(stored("max-age=60"), asked: only) == .serve)
    #expect(Scene.decide(stored("max-age=60"), after: 61, asked: only) == .gatewayTimeout)
    #expect(
      Scene.decide(stored("max-age=60, stale-while-revalidate=60"), after: 61, asked: only) == .gatewayTimeout
    )
    #expect(Scene.decide(asked: only) == .gatewayTimeout)
    #expect(
      Scene.decide(stored("max-age=60"), asked: [("Cache-Control", "only-if-cached, no-cache")])
        == .gatewayTimeout)
    #expect(StoredAnswer.gatewayTimeout.head.status == 504)
  }

  @Test func mustRevalidateIsObeyedInAllCircumstances() {
    let strict = stored("max-age=60, must-revalidate, stale-if-error=600")
    #expect(Scene.decide(strict, after: 59) == .serve)
    #expect(Scene.decide(strict, after: 60, asked: [("Cache-Control", "max-stale")]) == ask)
    let asked = Scene.headers([("Cache-Control", "stale-if-error=600")])
    for status in [nil, 500, 503] {
      #expect(!CacheDecision.mayServeInstead(strict, of: status, fields: asked, now: Scene.start + 61))
    }
  }

  @Test func noCacheIsNotUsedWithoutValidation() {
    #expect(Scene.decide(stored("no-cache, max-age=60")) == ask)
    #expect(Scene.decide(stored("no-cache, max-age=60"), asked: [("Cache-Control", "max-stale")]) == ask)
    #expect(Scene.decide(stored("no-cache=\"\", max-age=60")) == ask)
  }

  @Test func fieldsThatNoCacheNamesAreLeftOut() throws {
    let response = Scene.response([
      ("Cache-Control", "max-age=60, no-cache=\"Set-Cookie, X-Secret\""), ("Set-Cookie", "a=b"),
      ("x-secret", "1"), ("X-Other", "2"),
    ])
    #expect(Scene.decide(response) == .serve)
    let head = try #require(Scene.answer(response)).head
    #expect(head.value("Set-Cookie") == nil && head.value("X-Secret") == nil && head.value("X-Other") == "2")
    #expect(try #require(Scene.answer(response, isConfirmed: true)).head.value("Set-Cookie") == "a=b")
  }

  @Test func noStoreIsNotUsedWhoeverStoredIt() {
    #expect(Scene.decide(stored("no-store, max-age=60"), asked: []) == ask)
    #expect(Scene.decide(stored("no-store, max-age=60, stale-while-revalidate=60"), after: 70) == ask)
  }

  @Test func sharedCachesAlone() {
    #expect(Scene.decide(stored("max-age=60, s-maxage=0"), after: 59) == .serve)
    #expect(
      Scene.decide(stored("max-age=60, proxy-revalidate"), after: 61, asked: [("Cache-Control", "max-stale")])
        == .serve)
    #expect(Scene.decide(stored("max-age=60, private")) == .serve)
  }

  @Test func unknownDirectivesAreIgnored() {
    #expect(Scene.decide(stored("community=\"UCI, no-store\", max-age=60, x, y=z")) == .serve)
    #expect(CacheControl("no-storex, xno-cache, x-max-age=5") == CacheControl())
  }

  @Test func invalidDatesHaveExpired() {
    for text in ["0", "-1", "", "now", "Thu, 32 Jan 2099 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 CET"] {
      #expect(Scene.decide(Scene.response([("Expires", text), ("ETag", "\"1\"")])) == ask, "\(text)")
    }
    let twice = [
      ("Expires", Scene.date(Scene.start + 60)), ("Expires", Scene.date(Scene.start + 90)), ("ETag", "\"1\""),
    ]
    #expect(Scene.decide(Scene.response(twice)) == ask)
  }

  // MARK: RFC 5861, RFC 8246

  @Test func staleWhileRevalidateAnswersAndAsks() {
    let response = stored("max-age=60, stale-while-revalidate=30")
    #expect(Scene.decide(response, after: 59) == .serve)
    #expect(Scene.decide(response, after: 90) == .serveAndRefresh)
    #expect(Scene.decide(response, after: 91) == ask)
    #expect(Scene.decide(response, after: 90, mayRefresh: false) == ask)
    #expect(Scene.decide(response, after: 90, asked: [("Cache-Control", "no-cache")]) == ask)
    #expect(Scene.decide(response, after: 90, asked: [("Cache-Control", "max-age=70")]) == ask)
  }

  @Test func staleAnswersNeedNoValidator() {
    let refreshed = Scene.response([("Cache-Control", "max-age=60, stale-while-revalidate=60")])
    #expect(Scene.decide(refreshed, after: 70) == .serveAndRefresh)
    #expect(Scene.decide(refreshed, after: 130) == .send)
    let kept = Scene.response([("Cache-Control", "max-age=60, stale-if-error=60")])
    // Sent without a condition, and used should that fail.
    #expect(Scene.decide(kept, after: 70) == .validate([]))
    #expect(Scene.decide(kept, after: 130) == .send)
    let plain = Scene.response([("Cache-Control", "max-age=60")])
    #expect(Scene.decide(plain, after: 70, asked: [("Cache-Control", "stale-if-error=60")]) == .validate([]))
    #expect(Scene.decide(plain, after: 70) == .send)
  }

  @Test func staleIfErrorStandsInForFailures() {
    let response = stored("max-age=60, stale-if-error=30")
    for status in [nil, 500, 502, 503, 504] {
      #expect(CacheDecision.mayServeInstead(response, of: status, fields: [], now: Scene.start + 90))
      #expect(!CacheDecision.mayServeInstead(response, of: status, fields: [], now: Scene.start + 91))
    }
    for status in [200, 404, 501] {
      #expect(!CacheDecision.mayServeInstead(response, of: status, fields: [], now: Scene.start + 70))
    }
    let asked = Scene.headers([("Cache-Control", "stale-if-error=10")])
    #expect(!CacheDecision.mayServeInstead(response, of: 503, fields: asked, now: Scene.start + 71))
    #expect(
      CacheDecision.mayServeInstead(stored("max-age=60"), of: 503, fields: asked, now: Scene.start + 70))
  }

  @Test func immutableIsNotAskedAboutByAReload() {
    #expect(Scene.decide(stored("max-age=60, immutable"), policy: .revalidate) == .serve)
    #expect(Scene.decide(stored("max-age=60"), policy: .revalidate) == ask)
    #expect(Scene.decide(stored("max-age=60, immutable"), after: 60, policy: .revalidate) == ask)
    #expect(Scene.decide(stored("max-age=60, immutable"), asked: [("Cache-Control", "no-cache")]) == ask)
  }

  // MARK: Policies

  @Test func policies() {
    let old = stored("max-age=60, must-revalidate")
    #expect(Scene.decide(old, after: 1000, policy: .storedElseLoad) == .serve)
    #expect(Scene.decide(old, after: 1000, policy: .storedOnly) == .serve)
    #expect(Scene.decide(old, policy: .reload) == .send)
    #expect(Scene.decide(policy: .storedElseLoad) == .send)
    #expect(Scene.decide(policy: .storedOnly) == .unavailable)
    #expect(Scene.decide(policy: .revalidate) == .send)
  }
}
