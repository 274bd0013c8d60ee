import FoundationEssentials
import HTTPWire
import Testing

/// RFC 9111 §5, RFC 5861 and RFC 8246, sentence by sentence; Documentation/HTTPCaching.md is the table.
@Suite("RFC 9111 §5: directives") struct DirectiveRequirementTests {
  private typealias Fixture = CacheFixture
  private let ask = Verdict.validate(["If-None-Match: \"1\""])

  private func stored(_ control: String) -> StoredResponse {
    Fixture.response([("Cache-Control", control), ("ETag", "\"1\"")])
  }

  @Test("Numbers that are too large are read as the largest") func tooLargeNumbersAreTheLargest() {
    for number in ["2147483648", "99999999999", "999999999999999999999999999999"] {
      #expect(CacheControl("max-age=\(number)").maxAge == 2_147_483_648)
    }
    #expect(Fixture.decide(stored("max-age=999999999999999999999999"), after: 1_000_000) == .serve)
  }

  @Test("max-age of a request limits the age") func maxAgeOfARequestLimitsTheAge() {
    #expect(
      Fixture.decide(stored("max-age=60"), after: 10, requestFields: [("Cache-Control", "max-age=10")])
        == .serve)
    #expect(
      Fixture.decide(stored("max-age=60"), after: 11, requestFields: [("Cache-Control", "max-age=10")]) == ask
    )
    #expect(
      Fixture.decide(stored("max-age=60"), after: 1, requestFields: [("Cache-Control", "max-age=0")]) == ask)
    #expect(
      Fixture.decide(stored("max-age=60"), after: 1, requestFields: [("Cache-Control", "max-age=much")])
        == ask)
  }

  @Test("min-fresh of a request requires freshness") func minFreshOfARequestAsksForMore() {
    #expect(
      Fixture.decide(stored("max-age=60"), after: 20, requestFields: [("Cache-Control", "min-fresh=40")])
        == .serve)
    #expect(
      Fixture.decide(stored("max-age=60"), after: 21, requestFields: [("Cache-Control", "min-fresh=40")])
        == ask
    )
    #expect(
      Fixture.decide(stored("max-age=60"), after: 21, requestFields: [("Cache-Control", "min-fresh=x")])
        == ask)
  }

  @Test("no-cache of a request revalidates") func noCacheOfARequestValidates() {
    #expect(Fixture.decide(stored("max-age=60"), requestFields: [("Cache-Control", "no-cache")]) == ask)
    #expect(Fixture.decide(stored("max-age=60"), requestFields: [("Pragma", "no-cache")]) == ask)
    #expect(
      Fixture.decide(
        stored("max-age=60"), requestFields: [("Pragma", "no-cache"), ("Cache-Control", "max-age=60")])
        == .serve)
  }

  @Test("no-store of a request stores nothing") func noStoreOfRequest() {
    #expect(Fixture.decide(stored("max-age=60"), requestFields: [("Cache-Control", "no-store")]) == .send)
    let only = [("Cache-Control", "no-store, only-if-cached")]
    #expect(
      Fixture.decide(stored("max-age=60"), requestFields: only) == .gatewayTimeout, "nothing may be sent")
    let storedOnly = Fixture.decide(
      stored("max-age=60"), requestFields: [("Cache-Control", "no-store")], policy: .storedOnly)
    #expect(storedOnly == .unavailable)
  }

  @Test("only-if-cached is not sent") func onlyIfCachedIsNeverSent() {
    let only = [("Cache-Control", "only-if-cached")]
    #expect(Fixture.decide(stored("max-age=60"), requestFields: only) == .serve)
    #expect(Fixture.decide(stored("max-age=60"), after: 61, requestFields: only) == .gatewayTimeout)
    #expect(
      Fixture.decide(stored("max-age=60, stale-while-revalidate=60"), after: 61, requestFields: only)
        == .gatewayTimeout
    )
    #expect(Fixture.decide(requestFields: only) == .gatewayTimeout)
    #expect(
      Fixture.decide(stored("max-age=60"), requestFields: [("Cache-Control", "only-if-cached, no-cache")])
        == .gatewayTimeout)
    let condition = only + [("If-None-Match", "\"1\"")]
    #expect(Fixture.decide(stored("max-age=60"), requestFields: condition) == .gatewayTimeout)
    for policy in [CacheDecision.Policy.reload, .storedElseLoad, .revalidate] {
      #expect(Fixture.decide(requestFields: only, policy: policy) == .gatewayTimeout, "\(policy)")
    }
    for method in ["POST", "OPTIONS"] {
      #expect(Fixture.decide(requestFields: only, method: method) == .gatewayTimeout, "\(method)")
    }
    #expect(StoredAnswer.gatewayTimeout.head.status == 504)
  }

  @Test("must-revalidate is obeyed always") func mustRevalidateIsObeyedInAllCircumstances() {
    let strict = stored("max-age=60, must-revalidate, stale-if-error=600")
    #expect(Fixture.decide(strict, after: 59) == .serve)
    #expect(Fixture.decide(strict, after: 60, requestFields: [("Cache-Control", "max-stale")]) == ask)
    let requestFields = Fixture.headers([("Cache-Control", "stale-if-error=600")])
    for status in [nil, 500, 503] {
      #expect(
        !CacheDecision.mayServeInstead(strict, of: status, fields: requestFields, now: Fixture.start + 61))
    }
  }

  @Test("A no-cache response is not used without revalidation") func noCacheIsNotUsedWithoutValidation() {
    #expect(Fixture.decide(stored("no-cache, max-age=60")) == ask)
    #expect(
      Fixture.decide(stored("no-cache, max-age=60"), requestFields: [("Cache-Control", "max-stale")]) == ask)
    #expect(Fixture.decide(stored("no-cache=\"\", max-age=60")) == ask)
  }

  @Test("Fields that no-cache names are removed") func fieldsThatNoCacheNamesAreLeftOut() throws {
    let response = Fixture.response([
      ("Cache-Control", "max-age=60, no-cache=\"Set-Cookie, X-Secret\""), ("Set-Cookie", "a=b"),
      ("x-secret", "1"), ("X-Other", "2"),
    ])
    #expect(Fixture.decide(response) == .serve)
    let head = try #require(Fixture.answer(response)).head
    #expect(head.value("Set-Cookie") == nil && head.value("X-Secret") == nil && head.value("X-Other") == "2")
    #expect(try #require(Fixture.answer(response, isConfirmed: true)).head.value("Set-Cookie") == "a=b")
  }

  @Test("A no-store response is not used, whichever cache stored it") func noStoreIsNotUsed() {
    #expect(Fixture.decide(stored("no-store, max-age=60"), requestFields: []) == ask)
    #expect(Fixture.decide(stored("no-store, max-age=60, stale-while-revalidate=60"), after: 70) == ask)
  }

  @Test("Directives for shared caches are ignored") func sharedCachesAlone() {
    #expect(Fixture.decide(stored("max-age=60, s-maxage=0"), after: 59) == .serve)
    #expect(
      Fixture.decide(
        stored("max-age=60, proxy-revalidate"), after: 61, requestFields: [("Cache-Control", "max-stale")])
        == .serve)
    #expect(Fixture.decide(stored("max-age=60, private")) == .serve)
  }

  @Test("Unknown directives are ignored") func unknownDirectivesAreIgnored() {
    #expect(Fixture.decide(stored("community=\"UCI, no-store\", max-age=60, x, y=z")) == .serve)
    #expect(CacheControl("no-storex, xno-cache, x-max-age=5") == CacheControl())
  }

  @Test("An invalid date has expired") func invalidDatesHaveExpired() {
    for text in ["0", "-1", "", "now", "Thu, 32 Jan 2099 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 CET"] {
      #expect(Fixture.decide(Fixture.response([("Expires", text), ("ETag", "\"1\"")])) == ask, "\(text)")
    }
    let twice = [
      ("Expires", Fixture.date(Fixture.start + 60)), ("Expires", Fixture.date(Fixture.start + 90)),
      ("ETag", "\"1\""),
    ]
    #expect(Fixture.decide(Fixture.response(twice)) == ask)
  }

  // MARK: RFC 5861, RFC 8246

  @Test("stale-while-revalidate uses a stale response and revalidates") func staleWhileRevalidateDirective() {
    let response = stored("max-age=60, stale-while-revalidate=30")
    #expect(Fixture.decide(response, after: 59) == .serve)
    #expect(Fixture.decide(response, after: 90) == .serveAndRefresh)
    #expect(Fixture.decide(response, after: 91) == ask)
    #expect(Fixture.decide(response, after: 90, mayRefresh: false) == ask)
    #expect(Fixture.decide(response, after: 90, requestFields: [("Cache-Control", "no-cache")]) == ask)
    #expect(Fixture.decide(response, after: 90, requestFields: [("Cache-Control", "max-age=70")]) == ask)
  }

  @Test("Stale responses need no validator") func staleResponsesNeedNoValidator() {
    let refreshed = Fixture.response([("Cache-Control", "max-age=60, stale-while-revalidate=60")])
    #expect(Fixture.decide(refreshed, after: 70) == .serveAndRefresh)
    #expect(Fixture.decide(refreshed, after: 130) == .send)
    let kept = Fixture.response([("Cache-Control", "max-age=60, stale-if-error=60")])
    // Revalidated without a condition. The stored response is used if that fails.
    #expect(Fixture.decide(kept, after: 70) == .validate([]))
    #expect(Fixture.decide(kept, after: 130) == .send)
    let plain = Fixture.response([("Cache-Control", "max-age=60")])
    #expect(
      Fixture.decide(plain, after: 70, requestFields: [("Cache-Control", "stale-if-error=60")])
        == .validate([])
    )
    #expect(Fixture.decide(plain, after: 70) == .send)
  }

  @Test("stale-if-error uses a stale response after failures") func staleIfErrorDirective() {
    let response = stored("max-age=60, stale-if-error=30")
    for status in [nil, 500, 502, 503, 504] {
      #expect(CacheDecision.mayServeInstead(response, of: status, fields: [], now: Fixture.start + 90))
      #expect(!CacheDecision.mayServeInstead(response, of: status, fields: [], now: Fixture.start + 91))
    }
    for status in [200, 404, 501] {
      #expect(!CacheDecision.mayServeInstead(response, of: status, fields: [], now: Fixture.start + 70))
    }
    let requestFields = Fixture.headers([("Cache-Control", "stale-if-error=10")])
    #expect(!CacheDecision.mayServeInstead(response, of: 503, fields: requestFields, now: Fixture.start + 71))
    #expect(
      CacheDecision.mayServeInstead(
        stored("max-age=60"), of: 503, fields: requestFields, now: Fixture.start + 70))
  }

  @Test("An immutable response is not revalidated by a reload") func immutableDirective() {
    #expect(Fixture.decide(stored("max-age=60, immutable"), policy: .revalidate) == .serve)
    #expect(Fixture.decide(stored("max-age=60"), policy: .revalidate) == ask)
    #expect(Fixture.decide(stored("max-age=60, immutable"), after: 60, policy: .revalidate) == ask)
    #expect(
      Fixture.decide(stored("max-age=60, immutable"), requestFields: [("Cache-Control", "no-cache")]) == ask)
  }

  // MARK: Policies

  @Test("Cache policies of Foundation are obeyed") func policies() {
    let old = stored("max-age=60, must-revalidate")
    #expect(Fixture.decide(old, after: 1000, policy: .storedElseLoad) == .serve)
    #expect(Fixture.decide(old, after: 1000, policy: .storedOnly) == .serve)
    #expect(Fixture.decide(old, policy: .reload) == .send)
    #expect(Fixture.decide(policy: .storedElseLoad) == .send)
    #expect(Fixture.decide(policy: .storedOnly) == .unavailable)
    #expect(Fixture.decide(policy: .revalidate) == .send)
  }
}
