import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Revalidation and storage of responses", .timeLimit(.minutes(5))) struct CacheValidationTests {
  private static let get = URLRequest(url: URL(string: "http://a.test/x") ?? URL(fileURLWithPath: "/"))

  // MARK: Without a validator

  @Test("stale-if-error needs no validator") func staleIfErrorWithoutValidator() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-if-error=600"), .failure(.cannotConnectToHost),
        .status(503, "busy"),
        .status(304), .cacheable("two", "max-age=60")))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().body == "one")
    #expect(await fixture.get().description == "200 one nc")
    #expect(fixture.fake.requests[2].value("If-None-Match") == nil)
    // A 304 to a request without a condition does not update the stored response.
    #expect(await fixture.get().status == 304)
    #expect(await fixture.get().description == "200 two n")
    #expect(await fixture.get().description == "200 two c")
  }

  @Test("stale-if-error covers each way in which a server cannot be reached or fails (RFC 5861 §4)")
  func outages() async {
    let outages: [TransportFailure.FailureKind] = [
      .timedOut, .cannotFindHost, .cannotFindProxy, .cannotConnectToProxy, .cannotConnectToHost,
      .notConnected,
      .connectionLost, .badServerResponse,
    ]
    let others: [TransportFailure.FailureKind] = [
      .badURL, .secureConnectionFailed, .certificateHasBadDate, .proxyAuthenticationRequired,
      .clientCertificateRequired,
      .dataLengthExceedsMaximum, .cannotDecodeContent, .addressRefused,
    ]
    for kind in outages + others {
      let fixture = CacheFixture(
        FakeTransport(.cacheable("one", "max-age=60, stale-if-error=600"), .failure(kind)))
      _ = await fixture.get()
      fixture.clock.advance(70)
      #expect(await fixture.get().body == (outages.contains(kind) ? "one" : ""), "\(kind)")
    }
  }

  @Test("stale-if-error covers the end of the total time of the request") func totalTime() async {
    var options = TransportOptions()
    // Over when the request is sent. The fake transport observes no deadline.
    options.timeLimits.total = .nanoseconds(1)
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=600"), .failure(.timedOut)),
      options: options)
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().body == "one")
  }

  @Test("stale-if-error does not cover a server that is not trusted") func staleIfUntrusted() async {
    let bench = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-if-error=600"), .failure(.certificateUntrusted),
        .failure(.connectionLost)))
    _ = await bench.get()
    bench.clock.advance(70)
    let untrusted = await bench.get()
    #expect(untrusted.code == .serverCertificateUntrusted && untrusted.body.isEmpty, "\(untrusted)")
    #expect(await bench.get().body == "one")
  }

  @Test(
    "stale-if-error has to hold when the request fails, not when it is sent, and else the failure is the error",
    arguments: [
      (TransportFailure.FailureKind.connectionLost, URLError.Code.networkConnectionLost),
      (.timedOut, .timedOut), (.cannotFindHost, .cannotFindHost), (.badServerResponse, .badServerResponse),
    ])
  func staleAtFailure(kind: TransportFailure.FailureKind, code: URLError.Code) async {
    let (gate, reached) = (Latch(), Latch())
    let bench = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-if-error=60"),
        .failure(kind).held(by: gate, reached: reached)))
    _ = await bench.get()
    bench.clock.advance(70)
    async let late = bench.get()
    await reached.wait()
    bench.clock.advance(60)
    gate.open()
    let received = await late
    #expect(received.code == code && received.body.isEmpty, "\(received)")
  }

  @Test("The time that a response took counts for its age", arguments: [false, true])
  func responseDelay(asksHandler: Bool) async {
    var slow = FakeReply.cacheable("one", "max-age=20", tag: nil, ("Age", "5"))
    var values = TransferMetrics.Values()
    values.end = 10_000_000
    slow.metrics = TransferMetrics(values: values)
    let handler = asksHandler ? ResponseCacher(behavior: .cache) : nil
    let bench = CacheFixture(
      FakeTransport(slow, .text("two")),
      observers: SessionObservers(cachedResponseHandler: handler, eventMonitors: []))
    #expect(await bench.get().description == "200 one n")
    bench.clock.advance(4)
    #expect(await bench.get().description == "200 one c", "the response is 19 seconds old")
    bench.clock.advance(2)
    #expect(await bench.get().description == "200 two n", "the response is 21 seconds old")
  }

  @Test("stale-while-revalidate needs no validator") func staleWhileRevalidateWithoutValidator() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60"), .cacheable("two", "max-age=60")))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().description == "200 one c")
    let cache = fixture.cache
    #expect(await eventually { cache.cachedResponse(for: Self.get)?.data == Data("two".utf8) })
    #expect(fixture.fake.requests[1].fields.allSatisfy { !$0.name.hasPrefix("If-") })
  }

  /// Checks that the body of the revalidation belongs to the cache, and not to a request that has its response already.
  @Test("A background revalidation of an observed request is stored completely") func observedRevalidation()
    async
  {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60"), .cacheable("two", "max-age=60")),
      observers: SessionObservers(eventMonitors: [EventSpy()]))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().description == "200 one c")
    let cache = fixture.cache
    #expect(await eventually { cache.cachedResponse(for: Self.get)?.data == Data("two".utf8) })
  }

  // MARK: Policies

  @Test("reloadRevalidatingCacheData sends max-age=0") func reloadRevalidating() async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1"), .status(304, headers: [("ETag", "\"1\"")])) {
        _, _ in .cacheable("two", "max-age=600, immutable")
      }, policy: .reloadRevalidatingCacheData)
    // Also without a stored response, because a shared cache may have one.
    #expect(await fixture.get().description == "200 one n")
    #expect(await fixture.get().description == "200 one nc")
    #expect(await fixture.get("y", headers: ["Cache-Control": "no-transform"]).hops == "n")
    #expect(
      fixture.fake.requests.map { $0.value("Cache-Control") } == ["max-age=0", "max-age=0", "no-transform"])
    #expect(fixture.fake.requests[1].value("If-None-Match") == "\"1\"")
    // An immutable response is not revalidated while it is fresh.
    #expect(await fixture.get("y").description == "200 two c")
    let other = CacheFixture(FakeTransport(.ok), policy: .useProtocolCachePolicy)
    _ = await other.get()
    #expect(other.fake.requests[0].value("Cache-Control") == nil)
  }

  @Test("Directives for caches are sent beside cookies of the storage") func directivesAndCookies()
    async throws
  {
    let configuration = URLSessionConfiguration.isolated
    configuration.urlCache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    let fake = FakeTransport(.status(200, headers: [("Set-Cookie", "a=1")]))
    let session = Session.retained(fake: fake, configuration: configuration)
    for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .reloadIgnoringLocalAndRemoteCacheData] {
      _ = await session.request("http://a.test/x") { $0.cachePolicy = policy }.end()
    }
    let sent = try #require(fake.requests.last)
    #expect(sent.value("Cookie") == "a=1")
    #expect(sent.value("Cache-Control") == "no-cache" && sent.value("Pragma") == "no-cache")
  }

  // MARK: Removals

  @Test("A response after an invalidation in the same second is stored") func sameSecond() async {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        request.method == "GET" ? .cacheable("\(index)", "max-age=600") : .status(200)
      })
    _ = await fixture.get()
    _ = await fixture.get(method: .post)
    #expect(await fixture.get().description == "200 2 n")
    #expect(await fixture.get().description == "200 2 c")
    fixture.cache.removeCachedResponse(for: Self.get)
    #expect(await fixture.get().description == "200 3 n")
    #expect(await fixture.get().description == "200 3 c")
    fixture.cache.removeAllCachedResponses()
    #expect(await fixture.get().description == "200 4 n")
    #expect(await fixture.get().description == "200 4 c")
  }

  @Test(
    "An unsafe request invalidates its URL and the Location, although the body of its response is not received",
    arguments: [
      TransportFailure.FailureKind.connectionLost, .cannotDecodeContent, .dataLengthExceedsMaximum,
    ])
  func brokenUnsafeResponse(kind: TransportFailure.FailureKind) async {
    @Sendable func broken(_ status: Int) -> FakeReply {
      var reply = FakeReply.status(status, "half", headers: [("Location", "/y")])
      reply.failure = TransportFailure(kind, "A failure of the script.")
      return reply
    }
    let fixture = CacheFixture(
      FakeTransport { request, index in
        switch request.method {
        case "GET": .cacheable("\(index)", "max-age=600")
        case "PUT": broken(500)
        default: broken(200)
        }
      })
    for path in ["x", "y", "z"] { _ = await fixture.get(path) }
    #expect(await fixture.get(method: .put).code != nil)
    #expect(await fixture.get().hops == "c")
    #expect(await fixture.get(method: .post).code != nil)
    #expect(await fixture.get().hops == "n")
    #expect(await fixture.get("y").hops == "n")
    #expect(await fixture.get("z").hops == "c")
  }

  @Test("An unsafe request that is cancelled after the head invalidates its URL")
  func cancelledUnsafeRequest()
    async
  {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        request.method == "GET" ? .cacheable("\(index)", "max-age=600") : .status(200, "body")
      })
    _ = await fixture.get()
    let post = fixture.session.request("http://a.test/x", method: .post)
    post.onHTTPResponse(on: .global()) { _, decide in decide(.cancel) }
    #expect(await post.end().error?.isExplicitlyCancelledError == true)
    #expect(await fixture.get().description == "200 2 n")
  }

  @Test("A 304 does not restore a response that was removed during the revalidation")
  func removedDuringRevalidation() async {
    let (gate, reached) = (Latch(), Latch())
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: "1"),
        .status(304, headers: [("ETag", "\"1\"")]).held(by: gate, reached: reached)))
    _ = await fixture.get()
    fixture.clock.advance(70)
    async let slow = fixture.get()
    await reached.wait()
    fixture.cache.removeCachedResponse(for: Self.get)
    gate.open()
    #expect(await slow.description == "200 one nc")
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  @Test("A HEAD response with another length than the stored body removes it") func lengthOfHead() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("old", "max-age=10"),
        .status(200, headers: [("Cache-Control", "max-age=10"), ("Content-Length", "100")]),
        .cacheable("new", "max-age=10")))
    _ = await fixture.get()
    fixture.clock.advance(20)
    #expect(await fixture.get(method: .head).status == 200)
    #expect(await fixture.get().description == "200 new n")
  }

  // MARK: no-store

  @Test("no-store of a request leaves the cache unchanged") func noStoreLeavesCache() async {
    let fixture = CacheFixture(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    _ = await fixture.get()
    for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .returnCacheDataElseLoad] {
      #expect(await fixture.get(headers: ["Cache-Control": "no-store"], policy: policy).hops == "n")
    }
    #expect(await fixture.get().description == "200 0 c")
  }

  /// Counts the calls of a cache.
  @Test("A request with no-store does not look up the cache") func noStoreLookups() async {
    // Unchecked, as its superclass is: its own property is a constant.
    final class Counting: URLCache, @unchecked Sendable {
      let calls = Recorder<String>()
      override var diskCapacity: Int {
        get { 1 << 20 }
        set {}
      }
      override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        calls.add("read")
        return nil
      }
      override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        calls.add("store")
      }
      override func removeCachedResponse(for request: URLRequest) { calls.add("remove") }
    }
    let cache = Counting(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null")
    let fake = FakeTransport { _, _ in .cacheable("one", "max-age=60") }
    let session = Session.retained(fake: fake, configuration: .cached(by: cache))
    for _ in 0..<2 {
      _ = await session.request("http://a.test/x", headers: ["Cache-Control": "no-store"]).end()
    }
    #expect(cache.calls.values.isEmpty)
    _ = await session.request("http://a.test/x").end()
    #expect(cache.calls.values.contains("read") && cache.calls.values.contains("store"))
  }

  @Test(
    "A no-store response removes the stored one unless it is an error other than 404 and 410",
    arguments: [
      // An error does not concern the stored response, unless the resource no longer exists.
      (500, "200 one c"), (503, "200 one c"), (403, "200 one c"), (404, "200 after n"), (410, "200 after n"),
      (200, "200 after n"), (299, "200 after n"),
    ]) func noStoreOnErrors(status: Int, next: String) async
  {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60"), .status(status, "bad", headers: [("Cache-Control", "no-store")]),
        .cacheable("after", "max-age=60")))
    _ = await fixture.get()
    #expect(await fixture.get(policy: .reloadIgnoringLocalCacheData).body == "bad")
    #expect(await fixture.get().description == next)
  }

  @Test("no-store of an error does not prevent stale-if-error") func noStoreError() async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=60", tag: "1")) { _, _ in
        .status(503, "busy", headers: [("Cache-Control", "no-store")])
      })
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().description == "200 one nc")
    fixture.clock.advance(100)
    #expect(await fixture.get().description == "503 busy n")
  }

  // MARK: Variants and tags

  @Test("A 304 can select a stored variant") func storedVariantOfNotModified() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("english", "max-age=60", tag: "en", ("Vary", "Accept-Language")),
        .status(
          304, headers: [("ETag", "\"en\""), ("Vary", "Accept-Language"), ("Cache-Control", "max-age=60")]),
        .status(304), .cacheable("deutsch", "max-age=60", tag: "de", ("Vary", "Accept-Language"))))
    func get(_ language: String) async -> String {
      await fixture.get(headers: ["Accept-Language": language]).description
    }
    #expect(await get("en") == "200 english n")
    #expect(await get("cs") == "200 english nc")
    #expect(fixture.fake.requests[1].value("If-None-Match") == "\"en\"")
    #expect(await get("cs") == "200 english c")
    // A 304 without an entity tag selects no variant, so no response is removed.
    #expect(await get("de") == "200 deutsch nn")
    #expect(fixture.fake.requests[3].value("If-None-Match") == nil)
    #expect(await get("en") == "200 english c")
    #expect(await get("de") == "200 deutsch c")
  }

  @Test("Unquoted entity tags are sent back unchanged") func unquotedTags() async {
    let fixture = CacheFixture(
      FakeTransport(
        .status(200, "one", headers: [("Cache-Control", "no-cache"), ("ETag", "v1")]),
        .status(304, headers: [("ETag", "v1")])))
    _ = await fixture.get()
    #expect(await fixture.get().description == "200 one nc")
    #expect(fixture.fake.requests[1].value("If-None-Match") == "v1")
  }

  // MARK: Ranges

  private static func part(_ range: Range<Int>, tag: String = "1") -> FakeReply {
    let whole = Array("0123456789".utf8)
    return .status(
      206, String(decoding: whole[range], as: UTF8.self),
      headers: [
        ("Cache-Control", "max-age=60"), ("ETag", "\"\(tag)\""),
        ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/10"),
      ])
  }

  @Test("Adjacent parts are combined to a complete response") func combinedParts() async {
    let fixture = CacheFixture(FakeTransport(Self.part(0..<5), Self.part(5..<10)))
    #expect(await fixture.get(headers: ["Range": "bytes=0-4"]).description == "206 01234 n")
    #expect(await fixture.get(headers: ["Range": "bytes=1-3"]).description == "206 123 c")
    #expect(fixture.cache.cachedResponse(for: Self.get) == nil, "no program takes a part for the whole")
    #expect(await fixture.get(headers: ["Range": "bytes=5-"]).description == "206 56789 n")
    let whole = await fixture.get()
    #expect(whole.description == "200 0123456789 c" && whole.fields["Content-Range"] == nil)
    #expect(whole.fields["Content-Length"] == "10")
    #expect(await fixture.get(headers: ["Range": "bytes=4-5"]).description == "206 45 c")
    #expect(fixture.fake.requests.count == 2)
  }

  @Test("A stored part does not answer a request for the whole") func partForWhole() async {
    let fixture = CacheFixture(FakeTransport(Self.part(0..<5), .cacheable("0123456789", "max-age=60")))
    _ = await fixture.get(headers: ["Range": "bytes=0-4"])
    #expect(await fixture.get().description == "200 0123456789 n")
    #expect(fixture.fake.requests[1].fields.allSatisfy { !$0.name.hasPrefix("If-") })
    #expect(await fixture.get(headers: ["Range": "bytes=0-4"]).description == "206 01234 c")
  }

  @Test("A stale part is revalidated") func stalePart() async {
    let fixture = CacheFixture(
      FakeTransport(Self.part(0..<5), .status(304, headers: [("ETag", "\"1\"")]), Self.part(0..<5, tag: "2")))
    _ = await fixture.get(headers: ["Range": "bytes=0-4"])
    fixture.clock.advance(70)
    #expect(await fixture.get(headers: ["Range": "bytes=0-2"]).description == "206 012 nc")
    fixture.clock.advance(70)
    #expect(await fixture.get(headers: ["Range": "bytes=0-4"]).description == "206 01234 n")
    #expect(await fixture.get(headers: ["Range": "bytes=0-1"]).description == "206 01 c")
    fixture.clock.advance(70)
    _ = await fixture.get(headers: ["Range": "bytes=0-1"])
    #expect(fixture.fake.requests.last?.value("If-None-Match") == "\"2\"")
  }

  @Test("A response to a range does not remove the complete response") func rangeBesideWhole() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("0123456789", "max-age=60", tag: "1"), .cacheable("whole", "max-age=60"),
        .status(200, "whole", headers: [("Cache-Control", "no-store")]), Self.part(0..<2, tag: "2")))
    _ = await fixture.get()
    for _ in 0..<3 {
      _ = await fixture.get(headers: ["Range": "bytes=0-1"], policy: .reloadIgnoringLocalCacheData)
      #expect(await fixture.get().description == "200 0123456789 c")
    }
  }

  @Test("only-if-cached is answered with 504 if the stored response cannot be used for the request")
  func onlyIfCachedWithoutAnswer() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("0123456789", "max-age=60"),
        .cacheable("0123456789", "max-age=60", tag: nil, ("Content-Encoding", "gzip"))))
    for path in ["x", "gzip"] { _ = await fixture.get(path) }
    func only(_ path: String, _ range: String?, limit: Int64? = nil) async -> String {
      var headers: HTTPHeaders = ["Cache-Control": "only-if-cached"]
      if let range { headers.add(name: "Range", value: range) }
      let request = fixture.session.request("http://a.test/\(path)", headers: headers)
        .transportOptions { $0.bodySizeLimit = limit }
      return CacheFixture.Received(await request.end()).description
    }
    for range in ["bytes=0-0,2-2", "bytes=20-", "lines=1-2"] {
      #expect(await only("x", range) == "504  c", "\(range)")
    }
    #expect(await only("gzip", "bytes=0-1") == "504  c")
    #expect(await only("x", nil, limit: 9) == "504  c")
    #expect(await only("x", nil, limit: 10) == "200 0123456789 c")
    #expect(await only("x", "bytes=1-2") == "206 12 c")
    #expect(fixture.fake.requests.count == 2)
  }

  @Test("Parts are not stored in a URLCache of Foundation") func foundationCache() async {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: "/dev/null")
    let fake = FakeTransport { _, _ in Self.part(0..<5) }
    let session = Session.retained(fake: fake, configuration: .cached(by: cache))
    _ = await session.request("http://a.test/x", headers: ["Range": "bytes=0-4"]).end()
    #expect(cache.currentMemoryUsage == 0)
  }

  @Test("A stored response whose fields grow beyond the limit of a header is removed") func growingHead()
    async
  {
    let field = String(repeating: "x", count: 700)
    var options = TransportOptions()
    options.headerSizeLimit = 2_000
    let fixture = CacheFixture(
      FakeTransport { request, index in
        let more = ("X-\(index)", field)
        guard request.value("If-None-Match") != nil else {
          return .cacheable("\(index)", "max-age=0", tag: "1", more)
        }
        return .status(304, headers: [("ETag", "\"1\""), more])
      }, options: options)
    var hops: [String] = []
    for _ in 0..<6 { hops.append(await fixture.get().description) }
    #expect(hops == ["200 0 n", "200 0 nc", "200 0 nc", "200 3 n", "200 3 nc", "200 3 nc"])
    #expect(fixture.cache.currentMemoryUsage < 4_000)
  }

  @Test("A stored response that begins to vary by too many fields is removed") func growingSelection() async {
    let names = (0..<65).map { "x-\($0)" }.joined(separator: ",")
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=0", tag: "1"),
        .status(304, headers: [("ETag", "\"1\""), ("Vary", names)]),
        .cacheable("two", "max-age=0", tag: "2")))
    for expected in ["200 one n", "200 one nc", "200 two n"] {
      #expect(await fixture.get().description == expected)
    }
    #expect(fixture.fake.requests.last?.value("If-None-Match") == nil, "nothing was stored")
  }
}
