import FoundationEssentials
import HTTPWire
import Testing

/// RFC 9111 §4, sentence by sentence; Documentation/HTTPCaching.md is the table.
@Suite("RFC 9111 §4: responses from the cache") struct ReuseRequirementTests {
  private typealias Fixture = CacheFixture

  @Test("The URL must be equal") func theURLMustBeTheSame() {
    let texts = [
      "http://a.test/x?y=1", "http://a.test/x?y=2", "https://a.test/x?y=1", "http://a.test:8080/x?y=1",
      "http://b.test/x?y=1", "http://a.test/x/?y=1", "http://a.test/x", "http://a.test/X?y=1",
    ]
    let keys = texts.compactMap { CacheKey($0) }
    #expect(Set(keys).count == texts.count && Set(keys.map(\.hash)).count == texts.count)
    #expect(CacheKey("HTTP://A.test:80/x#part") == CacheKey("http://a.test/x"))
    #expect(CacheKey("http://a.test?q") == CacheKey("http://a.test/?q"))
    #expect(CacheKey("http://user:secret@a.test/") == CacheKey("http://a.test"))
    #expect(CacheKey("ftp://a.test/") == nil && CacheKey("") == nil)
  }

  @Test("Only GET and HEAD are answered from the cache") func methods() {
    let stored = Fixture.response([("Cache-Control", "max-age=60")])
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
      #expect(Fixture.decide(stored, method: method) == .send)
    }
    #expect(Fixture.decide(stored, method: "HEAD") == .serve)
    #expect(Fixture.answer(stored, method: "HEAD")?.body == Data())
  }

  @Test("Unsafe requests are sent") func unsafeRequestsAreSent() {
    let stored = Fixture.response([("Cache-Control", "max-age=60")])
    #expect(Fixture.decide(stored, method: "POST", policy: .storedElseLoad) == .send)
    #expect(Fixture.decide(stored, method: "POST", policy: .storedOnly) == .unavailable)
  }

  @Test("The nominated fields must match") func theNominatedFieldsMustMatch() {
    let stored = Fixture.response(
      [("Cache-Control", "max-age=60"), ("Vary", "Accept, accept-language")],
      requestFields: [("Accept", "text/html,  text/plain"), ("X", "1")])
    #expect(
      Fixture.decide(stored, requestFields: [("accept", "text/html,text/plain"), ("X", "2")]) == .serve)
    #expect(
      Fixture.decide(stored, requestFields: [("Accept", "text/html"), ("Accept", "text/plain")]) == .serve)
    #expect(Fixture.decide(stored, requestFields: [("Accept", "text/html")]) == .send)
    #expect(Fixture.decide(stored) == .send)
    #expect(
      Fixture.decide(stored, requestFields: [("Accept", "text/html,text/plain"), ("Accept-Language", "")])
        == .send)
  }

  @Test("Vary: * does not match") func varyStar() {
    let stored = Fixture.response([("Cache-Control", "max-age=60"), ("Vary", "Accept, *")])
    #expect(Fixture.decide(stored) == .send)
    #expect(!Fixture.mayStore([("Cache-Control", "max-age=60"), ("Vary", "*")]))
  }

  @Test("The most recent of several responses is used") func mostRecent() {
    let old = Fixture.response([("Cache-Control", "max-age=600")], body: "old", at: Fixture.start - 100)
    let new = Fixture.response([("Cache-Control", "max-age=600")], body: "new")
    #expect(CacheDecision.choice(of: [new, old], for: Fixture.digests([]))?.body == Data("new".utf8))
    #expect(CacheDecision.choice(of: [old, new], for: Fixture.digests([]))?.body == Data("new".utf8))
  }

  @Test("A response without revalidation has an Age") func ageOfResponse() {
    let stored = Fixture.response([("Cache-Control", "max-age=600"), ("Age", "100")], delay: 2)
    #expect(
      Fixture.answer(stored, after: 7)?.head.block.fields.filter { $0.name == "Age" }.map(\.value) == ["109"])
  }

  @Test("A fresh response is used and a stale one is revalidated") func freshAndStale() {
    let stored = Fixture.response([("Cache-Control", "max-age=60"), ("ETag", "\"1\"")])
    #expect(Fixture.decide(stored, after: 59) == .serve)
    #expect(Fixture.decide(stored, after: 60) == .validate(["If-None-Match: \"1\""]))
    #expect(Fixture.decide(Fixture.response([("Cache-Control", "max-age=60")]), after: 60) == .send)
  }

  // MARK: §4.2

  @Test("max-age has priority over Expires") func maxAgeOverExpires() {
    let late = ("Expires", Fixture.date(Fixture.start + 600))
    #expect(Fixture.decide(Fixture.response([late]), after: 599) == .serve)
    #expect(Fixture.decide(Fixture.response([late]), after: 600) == .send)
    #expect(Fixture.decide(Fixture.response([late, ("Cache-Control", "max-age=10")]), after: 10) == .send)
    #expect(Fixture.decide(Fixture.response([late, ("Cache-Control", "s-maxage=10")]), after: 10) == .serve)
  }

  @Test("Expires is relative to the Date of the server") func expiresField() {
    // The clock of this server is a day slow.
    let stored = Fixture.response([
      ("Date", Fixture.date(Fixture.start - 86_400)), ("Expires", Fixture.date(Fixture.start - 86_300)),
    ])
    #expect(Freshness(of: stored, now: Fixture.start).lifetime == 100)
    #expect(Fixture.decide(stored) == .send)
    // Without a valid date the response was created when it arrived, not when its request was sent.
    let undated = Fixture.response(
      [("Date", "today"), ("Expires", Fixture.date(Fixture.start + 100))], delay: 30)
    #expect(Freshness(of: undated, now: Fixture.start).lifetime == 100)
  }

  @Test("An explicit expiration has priority over the heuristic") func explicitExpiration() {
    let modified = ("Last-Modified", Fixture.date(Fixture.start - 1000))
    #expect(Freshness(of: Fixture.response([modified]), now: Fixture.start).lifetime == 100)
    for explicit in [("Cache-Control", "max-age=0"), ("Expires", "0")] {
      #expect(Freshness(of: Fixture.response([modified, explicit]), now: Fixture.start).lifetime == 0)
    }
  }

  @Test("The heuristic applies to cacheable statuses only") func heuristic() {
    let modified = ("Last-Modified", Fixture.date(Fixture.start - 1000))
    func lifetime(_ fields: [(String, String)], _ status: Int, _ url: String = "http://a.test/x") -> Int64 {
      Freshness(of: Fixture.response(fields, status: status, url: url), now: Fixture.start).lifetime
    }
    #expect(lifetime([modified], 302) == 0)
    #expect(lifetime([modified, ("Cache-Control", "public")], 302) == 100)
    #expect(lifetime([modified], 404) == 100)
    #expect(lifetime([modified], 200, "http://a.test/x?q") == 0)
    #expect(lifetime([("Last-Modified", Fixture.date(Fixture.start - 100_000_000))], 200) == 86_400)
    #expect(lifetime([("Last-Modified", Fixture.date(Fixture.start + 1000))], 200) == 0)
    #expect(lifetime([("Last-Modified", "yesterday")], 200) == 0)
  }

  @Test("The age is the largest possible one") func largestAge() {
    func age(_ fields: [(String, String)], delay: Int64 = 0, after: Int64 = 0) -> Int64 {
      Freshness(of: Fixture.response(fields, delay: delay), now: Fixture.start + after).age
    }
    #expect(age([("Date", Fixture.date(Fixture.start - 30))]) == 30)
    #expect(age([("Date", Fixture.date(Fixture.start + 30))]) == 0)
    #expect(age([("Age", "20"), ("Date", Fixture.date(Fixture.start - 10))]) == 20)
    #expect(age([("Age", "20")], delay: 3, after: 4) == 27)
    #expect(age([("Age", "5, 7")]) == 5 && age([("Age", "5"), ("Age", "7")]) == 5)
    #expect(age([("Age", "99999999999999999999")]) == CacheControl.forever)
    #expect(age([("Age", "-5")]) == 0 && age([("Age", "x")]) == 0)
    #expect(age([], after: -30) == 0)
    #expect(age([], after: -3600) == CacheControl.forever)
  }

  @Test("Local time zones have no influence") func localTimeZonesHaveNoInfluence() {
    let stored = Fixture.response([("Expires", "Fri, 15 Jan 2027 08:10:00 +0200")])
    #expect(Fixture.decide(stored) == .send)
  }

  @Test("A stale response needs permission of the request") func staleResponsesNeedPermission() {
    let stored = Fixture.response([("Cache-Control", "max-age=60"), ("ETag", "\"1\"")])
    let ask = Verdict.validate(["If-None-Match: \"1\""])
    #expect(Fixture.decide(stored, after: 100) == ask)
    #expect(Fixture.decide(stored, after: 100, requestFields: [("Cache-Control", "max-stale")]) == .serve)
    #expect(Fixture.decide(stored, after: 100, requestFields: [("Cache-Control", "max-stale=40")]) == .serve)
    #expect(Fixture.decide(stored, after: 101, requestFields: [("Cache-Control", "max-stale=40")]) == ask)
    #expect(Fixture.decide(stored, after: 100, requestFields: [("Cache-Control", "max-stale=x")]) == ask)
    // Combined with `max-age`, from which the staleness counts as well.
    func requestFields(_ age: Int, _ stale: String) -> [(String, String)] {
      [("Cache-Control", "max-age=\(age), max-stale\(stale)")]
    }
    #expect(Fixture.decide(stored, after: 50, requestFields: requestFields(10, "=40")) == .serve)
    #expect(Fixture.decide(stored, after: 51, requestFields: requestFields(10, "=40")) == ask)
    #expect(Fixture.decide(stored, after: 100, requestFields: requestFields(70, "=40")) == .serve)
    #expect(Fixture.decide(stored, after: 101, requestFields: requestFields(70, "=40")) == ask)
    #expect(Fixture.decide(stored, after: 1_000, requestFields: requestFields(0, "")) == .serve)
    #expect(Fixture.decide(stored, after: 50, requestFields: requestFields(10, "=x")) == ask)
    #expect(!CacheDecision.mayServeInstead(stored, of: 503, fields: [], now: Fixture.start + 100))
    #expect(!CacheDecision.mayServeInstead(stored, of: nil, fields: [], now: Fixture.start + 100))
  }

  @Test("Directives forbid stale responses") func forbiddenStaleResponses() {
    for directive in ["must-revalidate", "no-cache"] {
      let stored = Fixture.response([
        ("Cache-Control", "max-age=60, stale-while-revalidate=600, stale-if-error=600, \(directive)"),
        ("ETag", "\"1\""),
      ])
      #expect(
        Fixture.decide(stored, after: 100, requestFields: [("Cache-Control", "max-stale")])
          == .validate(["If-None-Match: \"1\""]))
      #expect(!CacheDecision.mayServeInstead(stored, of: 503, fields: [], now: Fixture.start + 100))
    }
  }

  // MARK: §4.3

  @Test("A revalidation sends the stored validators") func validators() {
    let date = Fixture.date(Fixture.start - 500)
    let both = Fixture.response([("ETag", "W/\"1\""), ("Last-Modified", date), ("Cache-Control", "no-cache")])
    #expect(Fixture.decide(both) == .validate(["If-None-Match: W/\"1\"", "If-Modified-Since: \(date)"]))
    let dated = Fixture.response([("Last-Modified", date), ("Cache-Control", "no-cache")])
    #expect(Fixture.decide(dated) == .validate(["If-Modified-Since: \(date)"]))
    // Some servers compare tags without quotation marks literally.
    let unquoted = Fixture.response([("ETag", "v1"), ("Last-Modified", "now"), ("Cache-Control", "no-cache")])
    #expect(Fixture.decide(unquoted) == .validate(["If-None-Match: v1"]))
    let broken = Fixture.response([("ETag", "\"1"), ("Last-Modified", "now"), ("Cache-Control", "no-cache")])
    #expect(Fixture.decide(broken) == .send)
  }

  @Test("Tags of other variants are sent") func tagsOfVariants() {
    func stored(_ tag: String?, _ language: String, _ more: (String, String)...) -> StoredResponse {
      Fixture.response(
        (tag.map { [("ETag", $0)] } ?? []) + [
          ("Vary", "Accept-Language, Cookie"), ("Cache-Control", "max-age=60"),
        ],
        requestFields: [("Accept-Language", language)] + more)
    }
    func decide(
      _ stored: [StoredResponse], _ requestFields: (String, String)..., policy: CacheDecision.Policy = .rules
    )
      -> Verdict
    {
      Verdict(
        CacheDecision.decide(
          CacheDecision.Question(method: "GET", fields: Fixture.digests(requestFields), policy: policy),
          stored: stored,
          now: Fixture.start))
    }
    let all = [stored("\"1\"", "en"), stored("W/\"2\"", "fr"), stored("\"1\"", "it"), stored(nil, "es")]
    let czech = ("Accept-Language", "cs")
    #expect(decide(all, czech) == .validate(["If-None-Match: \"1\", W/\"2\""]))
    #expect(decide(all, ("Accept-Language", "fr")) == .serve)
    #expect(decide([stored(nil, "es")], czech) == .send)
    #expect(decide(all, czech, policy: .reload) == .send)
    #expect(decide(all, czech, ("Range", "bytes=0-1")) == .send)
    #expect(decide(all, czech, ("Cache-Control", "only-if-cached")) == .gatewayTimeout)
    // Tags of another user's variants are not sent.
    #expect(decide(all, czech, ("Cookie", "a=1")) == .send)
    #expect(decide(all, czech, ("Authorization", "Bearer a")) == .send)
    #expect(decide([stored("\"1\"", "en", ("Authorization", "Bearer a"))], czech) == .send)
    let keyed = Fixture.response(
      [("ETag", "\"1\""), ("Vary", "X-Api-Key")], requestFields: [("X-Api-Key", "1")])
    #expect(decide([keyed], ("X-Api-Key", "2")) == .send)
  }

  @Test("A 304 names the variant that it selects") func variantOfNotModified() {
    func head(_ fields: (String, String)...) -> ResponseHead {
      ResponseHead(status: 304, fields: Fixture.headers(fields))
    }
    let old = Fixture.response([("ETag", "\"1\"")], body: "old", at: Fixture.start - 5)
    let new = Fixture.response([("ETag", "\"1\"")], body: "new")
    let other = Fixture.response([("ETag", "\"2\"")])
    let all = [old, new, other]
    #expect(Validation.variant(of: all, confirmedBy: head(("ETag", "\"1\""))) === new)
    #expect(Validation.variant(of: all, confirmedBy: head(("ETag", "\"2\""))) === other)
    #expect(Validation.variant(of: all, confirmedBy: head(("ETag", "\"3\""))) == nil)
    #expect(Validation.variant(of: [new], confirmedBy: head()) == nil, "it does not say which")
  }

  @Test(
    "The caller's conditional requests are sent unchanged",
    arguments: ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "if-range"])
  func conditionalRequests(name: String) {
    let stored = Fixture.response([("Cache-Control", "max-age=60"), ("ETag", "\"1\"")])
    #expect(Fixture.decide(stored, requestFields: [(name, "\"1\"")]) == .send)
    #expect(Fixture.decide(stored, requestFields: [(name, "\"1\"")], policy: .storedElseLoad) == .send)
    #expect(Fixture.decide(stored, requestFields: [(name, "\"1\"")], policy: .storedOnly) == .serve)
  }

  @Test("A 304 with another tag does not revalidate") func otherTag() {
    func head(_ fields: (String, String)...) -> ResponseHead {
      ResponseHead(status: 304, fields: Fixture.headers(fields))
    }
    let date = Fixture.date(Fixture.start - 500)
    let tagged = Fixture.response([("ETag", "\"1\""), ("Last-Modified", date)])
    #expect(Validation.confirms(head(), tagged))
    #expect(Validation.confirms(head(("ETag", "\"1\"")), tagged))
    #expect(Validation.confirms(head(("ETag", "W/\"1\"")), tagged))
    #expect(!Validation.confirms(head(("ETag", "\"2\"")), tagged))
    #expect(!Validation.confirms(head(("ETag", "nonsense")), tagged))
    #expect(Validation.confirms(head(("Last-Modified", date)), tagged))
    #expect(!Validation.confirms(head(("Last-Modified", Fixture.date(Fixture.start))), tagged))
    let tagAlone = Fixture.response([("ETag", "\"1\"")])
    #expect(Validation.confirms(head(("Last-Modified", date)), tagAlone))
    let dated = Fixture.response([("Last-Modified", date)])
    #expect(Validation.confirms(head(("Last-Modified", date)), dated))
    #expect(!Validation.confirms(head(("Last-Modified", Fixture.date(Fixture.start))), dated))
  }

  @Test("A 304 makes the response fresh") func notModified() {
    let stored = Fixture.response([("Cache-Control", "max-age=60"), ("ETag", "\"1\"")])
    let fresh = Validation.freshened(
      stored, by: ResponseHead(status: 304, fields: Fixture.headers([("ETag", "\"1\"")])),
      fields: Fixture.digests([]),
      requestTime: Fixture.start + 100, responseTime: Fixture.start + 100)
    #expect(Fixture.decide(fresh, after: 159) == .serve)
    #expect(Fixture.decide(fresh, after: 160) == .validate(["If-None-Match: \"1\""]))
    #expect(Fixture.answer(fresh, isConfirmed: true)?.head.value("Age") == nil)
  }

  @Test("A HEAD response updates or invalidates") func headUpdatesOrInvalidates() {
    let stored = Fixture.response([
      ("ETag", "\"1\""), ("Content-Length", "4"), ("X", "old"), ("Content-Digest", "of the body"),
    ])
    func updated(_ status: Int, _ fields: (String, String)...) -> StoredResponse? {
      Validation.updated(
        stored, byHead: ResponseHead(status: status, fields: Fixture.headers(fields)),
        fields: Fixture.digests([]),
        requestTime: Fixture.start + 5, responseTime: Fixture.start + 5)
    }
    #expect(updated(200, ("ETag", "\"1\""), ("X", "new"))?.head.value("X") == "new")
    let digest = updated(200, ("Content-Digest", "of no bytes"))?.head.value("Content-Digest")
    #expect(digest == "of the body")
    #expect(updated(200, ("ETag", "\"2\"")) == nil)
    #expect(updated(200, ("Content-Length", "5")) == nil)
    #expect(updated(404) == nil)
  }

  @Test("Validators are compared by their bytes") func bytesOfValidators() {
    let (letter, letters) = ("\u{E9}", "e\u{301}")
    #expect(letter == letters, "the texts have to be equal in Swift")
    func stored(_ name: String) -> StoredResponse { Fixture.response([(name, "\"\(letter)\"")]) }
    func head(_ name: String, _ value: String, status: Int) -> ResponseHead {
      ResponseHead(status: status, fields: Fixture.headers([(name, "\"\(value)\"")]))
    }
    for name in ["ETag", "Last-Modified"] {
      func isUpdated(by value: String) -> Bool {
        Validation.updated(
          stored(name), byHead: head(name, value, status: 200), fields: Fixture.digests([]),
          requestTime: Fixture.start + 5, responseTime: Fixture.start + 5) != nil
      }
      #expect(isUpdated(by: letter) && !isUpdated(by: letters), "\(name)")
      #expect(Validation.confirms(head(name, letter, status: 304), stored(name)), "\(name)")
      #expect(!Validation.confirms(head(name, letters, status: 304), stored(name)), "\(name)")
    }
    let other = Fixture.response([("ETag", "\"\(letters)\"")])
    let offered = Validation.condition(for: [stored("ETag"), other, stored("ETag")])?.value
    #expect(offered.map { Array($0.utf8) } == Array("\"\(letter)\", \"\(letters)\"".utf8))
  }

  @Test("A HEAD response with another length than a stored body without Content-Length invalidates it")
  func lengthOfHead() {
    func isUpdated(_ stored: [(String, String)], _ fields: (String, String)...) -> Bool {
      Validation.updated(
        Fixture.response(stored, body: "body"),
        byHead: ResponseHead(status: 200, fields: Fixture.headers(fields)), fields: Fixture.digests([]),
        requestTime: Fixture.start + 5, responseTime: Fixture.start + 5) != nil
    }
    #expect(isUpdated([]) && isUpdated([], ("Content-Length", "4")))
    #expect(!isUpdated([], ("Content-Length", "100")))
    #expect(!isUpdated([], ("Content-Length", "many")))
    #expect(!isUpdated([], ("Content-Length", "4"), ("Content-Encoding", "gzip")))
    let date = Fixture.date(Fixture.start - 500)
    let encoded = [("Content-Encoding", "gzip"), ("ETag", "\"1\""), ("Last-Modified", date)]
    #expect(isUpdated(encoded))
    #expect(!isUpdated(encoded, ("Content-Length", "4")), "the length before decoding is unknown")
    #expect(isUpdated(encoded, ("Content-Length", "100"), ("ETag", "\"1\"")))
    #expect(isUpdated(encoded, ("Content-Length", "100"), ("Last-Modified", date)))
  }

  // MARK: §4.4

  @Test("Unsafe methods invalidate") func unsafeMethodsInvalidate() {
    func keys(_ method: String, _ status: Int, _ fields: (String, String)...) -> [String] {
      Invalidation.keys(
        method: method, url: "http://a.test/x?y", origin: Origin(scheme: "http", host: "a.test", port: 80),
        head: ResponseHead(status: status, fields: Fixture.headers(fields))
      ).map(\.url)
    }
    let own = "http://a.test:80/x?y"
    for method in ["POST", "PUT", "DELETE", "PATCH", "BREW", "get"] { #expect(keys(method, 200) == [own]) }
    #expect(keys("POST", 303, ("Location", "/new")) == [own, "http://a.test:80/new"])
    #expect(keys("POST", 201, ("Content-Location", "there?z")) == [own, "http://a.test:80/there?z"])
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] { #expect(keys(method, 200).isEmpty) }
    for status in [400, 404, 500] { #expect(keys("POST", status).isEmpty) }
  }

  @Test("A reference that is not UTF-8 invalidates the resource that it names") func invalidatesAnyEncoding()
  {
    var lines = Array("Location: /caf".utf8) + [0xE9]
    lines += Array("\r\nContent-Location: /".utf8) + [0xE8]
    let head = ResponseHead(status: 201, version: .http1_1, block: FieldBlock(bytes: lines))
    let keys = Invalidation.keys(
      method: "PUT", url: "http://a.test/x", origin: Origin(scheme: "http", host: "a.test", port: 80),
      head: head)
    #expect(
      keys.map(\.url) == ["http://a.test:80/x", "http://a.test:80/caf%E9", "http://a.test:80/%E8"])
  }

  @Test("Another origin is not invalidated") func anotherOriginIsNotInvalidated() {
    let origin = Origin(scheme: "http", host: "a.test", port: 80)
    for location in [
      "https://a.test/n", "http://b.test/n", "http://a.test:81/n", "//b.test/n", "ftp://a.test/n",
    ] {
      let head = ResponseHead(
        status: 201, fields: Fixture.headers([("Location", location), ("Content-Location", location)]))
      let keys = Invalidation.keys(method: "PUT", url: "http://a.test/x", origin: origin, head: head)
      #expect(keys.map(\.url) == ["http://a.test:80/x"])
    }
  }
}
