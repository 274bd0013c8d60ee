import FoundationEssentials
import HTTPWire
import Testing

/// RFC 9111 §3, sentence by sentence; Documentation/HTTPCaching.md is the table.
@Suite("RFC 9111 §3: storage in a private cache") struct StorageRequirementTests {
  private typealias Fixture = CacheFixture

  @Test("Only responses to known methods are stored") func knownMethods() {
    #expect(Fixture.mayStore([("Cache-Control", "max-age=60")]))
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "BREW"] {
      #expect(!Fixture.mayStore([("Cache-Control", "max-age=60")], method: method))
    }
  }

  @Test("Only final responses are stored") func onlyFinalResponsesAreStored() {
    #expect(!Fixture.mayStore([("Cache-Control", "max-age=60")], status: 103))
  }

  @Test("Status 206 and 304 are not stored as complete responses") func partialAndNotModifiedAreNotStored() {
    #expect(!Fixture.mayStore([("Cache-Control", "max-age=60")], status: 206))
    #expect(!Fixture.mayStore([("Cache-Control", "max-age=60")], status: 304))
  }

  @Test("must-understand stores responses of known statuses only") func mustUnderstand() {
    #expect(!Fixture.mayStore([("Cache-Control", "must-understand, no-store, max-age=60")], status: 299))
    #expect(Fixture.mayStore([("Cache-Control", "must-understand, no-store, max-age=60")]))
  }

  @Test(
    "A no-store response is not stored",
    arguments: ["no-store", "NO-STORE", "max-age=60, no-store", "no-store=1", "no-store=\"x\""])
  func noStoreInAResponseIsNotStored(control: String) {
    #expect(!Fixture.mayStore([("Cache-Control", control)]))
    #expect(!Fixture.mayStore([("Cache-Control", "max-age=60"), ("Cache-Control", control)]))
  }

  @Test("The response to a no-store request is not stored") func noStoreRequest() {
    #expect(
      !Fixture.mayStore([("Cache-Control", "max-age=60")], requestFields: [("Cache-Control", "no-store")]))
  }

  @Test("A response needs an explicit or heuristic permission to be stored") func storagePermission() {
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
      #expect(Fixture.mayStore([], status: status))
    }
    for status in [201, 202, 302, 307, 400, 401, 403, 500, 503] {
      #expect(!Fixture.mayStore([], status: status))
      #expect(Fixture.mayStore([("Cache-Control", "public")], status: status))
      #expect(Fixture.mayStore([("Cache-Control", "private")], status: status))
      #expect(Fixture.mayStore([("Cache-Control", "max-age=1")], status: status))
      #expect(Fixture.mayStore([("Expires", "Thu, 01 Jan 2099 00:00:00 GMT")], status: status))
      // For shared caches only.
      #expect(!Fixture.mayStore([("Cache-Control", "s-maxage=60")], status: status))
    }
  }

  @Test("A refusal of a credential is not stored", arguments: ["public", "private", "max-age=60"])
  func refusedCredential(control: String) {
    let token = [("authorization", "Bearer a")]
    #expect(!Fixture.mayStore([("Cache-Control", control)], status: 401, requestFields: token))
    #expect(Fixture.mayStore([("Cache-Control", control)], status: 401), "a request without a credential")
    #expect(Fixture.mayStore([("Cache-Control", control)], status: 403, requestFields: token))
  }

  @Test(
    "A response that concerns its own request or connection is not stored",
    arguments: [407, 412, 417, 421, 428, 429, 431, 511])
  func refusedRequest(status: Int) {
    for control in ["public", "private", "max-age=60", "must-understand, no-store, max-age=60"] {
      #expect(!Fixture.mayStore([("Cache-Control", control)], status: status), "\(control)")
    }
    #expect(!Fixture.mayStore([("Expires", "Thu, 01 Jan 2099 00:00:00 GMT")], status: status))
  }

  @Test("Unknown fields are stored") func unknownFields() {
    let fields = [("X-Unknown", "1"), ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("ETag", "\"1\"")]
    let stored = Fixture.response(fields)
    let names = stored.head.block.fields.filter { $0.name != "Date" }.map { ($0.name, $0.value) }
    #expect(names.map(\.0) == fields.map(\.0) && names.map(\.1) == fields.map(\.1))
  }

  @Test("Fields of the connection are not stored") func fieldsOfTheConnectionAreNotStored() {
    let stored = Fixture.response([
      ("Connection", "close, X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"), ("Upgrade", "h2c"),
      ("Transfer-Encoding", "chunked"), ("TE", "trailers"), ("X-Kept", "1"),
    ])
    #expect(stored.head.block.fields.map(\.name) == ["X-Kept", "Date"])
  }

  @Test("Fields of the proxy are not stored") func fieldsOfTheProxyAreNotStored() {
    let stored = Fixture.response([
      ("Proxy-Authenticate", "Basic"), ("Proxy-Authentication-Info", "x"), ("Proxy-Authorization", "y"),
      ("X-Kept", "1"),
    ])
    #expect(stored.head.block.fields.map(\.name) == ["X-Kept", "Date"])
  }

  @Test("A missing Date is added") func missingDate() {
    let stored = StoredResponse(
      key: Fixture.response().key, fields: Fixture.digests([]), head: ResponseHead(status: 200), body: Data(),
      requestTime: Fixture.start, responseTime: Fixture.start)
    #expect(stored.head.value("Date") == Fixture.date(Fixture.start))
  }

  @Test("An update replaces fields of the same name") func anUpdateReplacesFieldsOfTheSameName() {
    let old = Fixture.response([
      ("X-Old", "1"), ("Cache-Control", "max-age=1"), ("cache-control", "private"), ("Age", "9"),
    ])
    let new = ResponseHead(
      status: 304,
      fields: Fixture.headers([("CACHE-CONTROL", "max-age=60"), ("X-New", "2"), ("Set-Cookie", "n=1")]))
    let fresh = Validation.freshened(
      old, by: new, fields: Fixture.digests([]), requestTime: Fixture.start + 5,
      responseTime: Fixture.start + 5)
    #expect(fresh.head.status == 200)
    #expect(fresh.head.value("X-Old") == "1" && fresh.head.value("X-New") == "2")
    #expect(fresh.head.value("Cache-Control") == "max-age=60")
    #expect(fresh.head.value("Set-Cookie") == "n=1")
    #expect(fresh.head.value("Age") == nil)
    #expect(fresh.head.value("Date") == Fixture.date(Fixture.start + 5))
    #expect(fresh.body == old.body && fresh.control.maxAge == 60)
  }

  @Test("An update does not change fields that describe the body") func fieldsOfTheBody() {
    let old = Fixture.response([("Content-Length", "4"), ("Content-Encoding", "gzip")])
    let new = ResponseHead(
      status: 304,
      fields: Fixture.headers([
        ("Content-Length", "0"), ("Content-Encoding", "br"), ("Content-Range", "bytes 0-1/2"),
        ("Connection", "close"),
      ]))
    let merged = Validation.freshened(
      old, by: new, fields: Fixture.digests([]), requestTime: Fixture.start, responseTime: Fixture.start
    ).head
    #expect(merged.value("Content-Length") == "4" && merged.value("Content-Encoding") == "gzip")
    #expect(merged.value("Content-Range") == nil && merged.value("Connection") == nil)
  }

  @Test("A partial response is marked") func partialResponse() throws {
    let stored = Fixture.response([("Cache-Control", "max-age=60")], body: "0123456789")
    let part = try #require(Fixture.answer(stored, requestFields: [("Range", "bytes=2-4")]))
    #expect(part.head.status == 206 && part.body == Data("234".utf8))
    #expect(part.head.value("Content-Range") == "bytes 2-4/10" && part.head.value("Content-Length") == "3")
  }

  @Test("A partial response is not used as a complete one") func partialIsNotComplete() {
    let part = Fixture.response([("Cache-Control", "max-age=60")], status: 206)
    #expect(Fixture.decide(part) == .send)
    #expect(Fixture.decide(part, policy: .storedOnly) == .unavailable)
    #expect(!Fixture.mayStore([("Cache-Control", "max-age=60")], requestFields: [("Range", "bytes=0-1")]))
  }

  @Test("A range that cannot be served is requested") func unservableRange() {
    let plain = Fixture.response(body: "0123456789")
    for range in [
      "bytes=10-", "bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=-0", "bytes=", "bytes=a-b", "",
    ] {
      #expect(Fixture.answer(plain, requestFields: [("Range", range)]) == nil, "\(range)")
    }
    #expect(Fixture.answer(plain, requestFields: [("Range", "bytes=-3")])?.body == Data("789".utf8))
    #expect(
      Fixture.answer(plain, requestFields: [("Range", "bytes=7-99999999999999999999")])?.body
        == Data("789".utf8))
    let encoded = Fixture.response([("Content-Encoding", "gzip")])
    #expect(Fixture.answer(encoded, requestFields: [("Range", "bytes=0-1")]) == nil)
  }

  @Test("Responses with different credentials are stored separately") func separateCredentials() {
    let token = [("Authorization", "Bearer a")]
    let stored = Fixture.response([("Cache-Control", "max-age=60")], requestFields: token)
    #expect(Fixture.decide(stored, requestFields: token) == .serve)
    #expect(Fixture.decide(stored) == .send)
    #expect(Fixture.decide(stored, requestFields: [("authorization", "Bearer b")]) == .send)
    let shared = Fixture.response([("Cache-Control", "public, max-age=60")], requestFields: token)
    #expect(Fixture.decide(shared) == .serve)
    // An application and its proxy may disagree. The stricter directive is used, whichever is first.
    for control in [
      "public, private, max-age=60", "private, max-age=60, public", "public, private=\"x\", max-age=60",
    ] {
      let contradictory = Fixture.response([("Cache-Control", control)], requestFields: token)
      #expect(Fixture.decide(contradictory, requestFields: token) == .serve, "\(control)")
      #expect(Fixture.decide(contradictory) == .send, "\(control)")
      #expect(
        Fixture.decide(contradictory, requestFields: [("Authorization", "Bearer b")]) == .send, "\(control)")
    }
    let personal = Fixture.response(
      [("Cache-Control", "private, max-age=60")], requestFields: [("Cookie", "a=1")])
    #expect(Fixture.decide(personal, requestFields: [("Cookie", "a=1")]) == .serve)
    #expect(Fixture.decide(personal, requestFields: [("Cookie", "a=2")]) == .send)
  }
}
