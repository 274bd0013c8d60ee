import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Validation and storing in the pipeline", .timeLimit(.minutes(5))) struct CacheValidationTests {
  private static let get = URLRequest(url: URL(string: "http://a.test/x") ?? URL(fileURLWithPath: "/"))

  // MARK: Without a validator

  @Test func aFailureIsBridgedWithoutAValidator() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-if-error=600"), .failure(.cannotConnectToHost),
        .status(503, "busy"),
        .status(304), .cacheable("two", "max-age=60")))
    _ = await bench.get()
    bench.clock.advance(70)
    #expect(await bench.get().body == "one")
    #expect(await bench.get().description == "200 one nc")
    #expect(bench.fake.requests[2].value("If-None-Match") == nil)
    // A 304 that answers no condition confirms nothing.
    #expect(await bench.get().status == 304)
    #expect(await bench.get().description == "200 two n")
    #expect(await bench.get().description == "200 two c")
  }

  @Test func aStaleAnswerIsRefreshedWithoutAValidator() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60"), .cacheable("two", "max-age=60")))
    _ = await bench.get()
    bench.clock.advance(70)
    #expect(await bench.get().description == "200 one c")
    let cache = bench.cache
    #expect(await eventually { cache.cachedResponse(for: Self.get)?.data == Data("two".utf8) })
    #expect(bench.fake.requests[1].fields.allSatisfy { !$0.name.hasPrefix("If-") })
  }

  /// The body of the refresh belongs to the cache, and not to a request that has its answer.
  @Test func aRefreshOfAWatchedRequestIsStoredWhole() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60"), .cacheable("two", "max-age=60")),
      watching: SessionWatching(eventMonitors: [EventSpy()]))
    _ = await bench.get()
    bench.clock.advance(70)
    #expect(await bench.get().description == "200 one c")
    let cache = bench.cache
    #expect(await eventually { cache.cachedResponse(for: Self.get)?.data == Data("two".utf8) })
  }

  // MARK: Policies

  @Test func aReloadThatRevalidatesTellsCachesOnTheWay() async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1"), .status(304, headers: [("ETag", "\"1\"")])) {
        _, _ in .cacheable("two", "max-age=600, immutable")
      }, policy: .reloadRevalidatingCacheData)
    // Where nothing is stored, too: a cache on the way may have something.
    #expect(await bench.get().description == "200 one n")
    #expect(await bench.get().description == "200 one nc")
    #expect(await bench.get("y", headers: ["Cache-Control": "no-transform"]).hops == "n")
    #expect(
      bench.fake.requests.map { $0.value("Cache-Control") } == ["max-age=0", "max-age=0", "no-transform"])
    #expect(bench.fake.requests[1].value("If-None-Match") == "\"1\"")
    // What never changes is not asked about while it is fresh.
    #expect(await bench.get("y").description == "200 two c")
    let other = CacheBench(FakeTransport(.ok), policy: .useProtocolCachePolicy)
    _ = await other.get()
    #expect(other.fake.requests[0].value("Cache-Control") == nil)
  }

  // MARK: Removals

  @Test func aGetAfterAPostIsStoredInTheSameSecond() async {
    let bench = CacheBench(
      FakeTransport { request, index in
        request.method == "GET" ? .cacheable("\(index)", "max-age=600") : .status(200)
      })
    _ = await bench.get()
    _ = await bench.get(method: .post)
    #expect(await bench.get().description == "200 2 n")
    #expect(await bench.get().description == "200 2 c")
    bench.cache.removeCachedResponse(for: Self.get)
    #expect(await bench.get().description == "200 3 n")
    #expect(await bench.get().description == "200 3 c")
    bench.cache.removeAllCachedResponses()
    #expect(await bench.get().description == "200 4 n")
    #expect(await bench.get().description == "200 4 c")
  }

  @Test func aConfirmationThatARemovalOvertookBringsNothingBack() async {
    let (gate, reached) = (Latch(), Latch())
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: "1"),
        .status(304, headers: [("ETag", "\"1\"")]).held(by: gate, reached: reached)))
    _ = await bench.get()
    bench.clock.advance(70)
    async let slow = bench.get()
    await reached.wait()
    bench.cache.removeCachedResponse(for: Self.get)
    gate.open()
    #expect(await slow.description == "200 one nc")
    #expect(bench.cache.currentMemoryUsage == 0)
  }

  // MARK: no-store

  @Test func noStoreOfARequestTouchesNothing() async {
    let bench = CacheBench(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    _ = await bench.get()
    for policy in [URLRequest.CachePolicy.useProtocolCachePolicy, .returnCacheDataElseLoad] {
      #expect(await bench.get(headers: ["Cache-Control": "no-store"], policy: policy).hops == "n")
    }
    #expect(await bench.get().description == "200 0 c")
  }

  /// A cache that counts what is asked of it.
  @Test func noStoreCostsNoLookUp() async {
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
    let session = Session.kept(fake: fake, configuration: .cached(by: cache))
    for _ in 0..<2 {
      _ = await session.request("http://a.test/x", headers: ["Cache-Control": "no-store"]).end()
    }
    #expect(cache.calls.values.isEmpty)
    _ = await session.request("http://a.test/x").end()
    #expect(cache.calls.values.contains("read") && cache.calls.values.contains("store"))
  }

  @Test(arguments: [
    // An error says nothing of what is stored, unless the resource is gone.
    (500, "200 one c"), (503, "200 one c"), (403, "200 one c"), (404, "200 after n"), (410, "200 after n"),
    (200, "200 after n"), (299, "200 after n"),
  ]) func noStoreOnErrors(status: Int, next: String) async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60"), .status(status, "bad", headers: [("Cache-Control", "no-store")]),
        .cacheable("after", "max-age=60")))
    _ = await bench.get()
    #expect(await bench.get(policy: .reloadIgnoringLocalCacheData).body == "bad")
    #expect(await bench.get().description == next)
  }

  @Test func anErrorWithNoStoreStillGivesWayToAStaleAnswer() async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=60", tag: "1")) { _, _ in
        .status(503, "busy", headers: [("Cache-Control", "no-store")])
      })
    _ = await bench.get()
    bench.clock.advance(70)
    #expect(await bench.get().description == "200 one nc")
    bench.clock.advance(100)
    #expect(await bench.get().description == "503 busy n")
  }

  // MARK: Variants and tags

  @Test func aServerMaySendAVariantThatIsStored() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("english", "max-age=60", tag: "en", ("Vary", "Accept-Language")),
        .status(
          304, headers: [("ETag", "\"en\""), ("Vary", "Accept-Language"), ("Cache-Control", "max-age=60")]),
        .status(304), .cacheable("deutsch", "max-age=60", tag: "de", ("Vary", "Accept-Language"))))
    func get(_ language: String) async -> String {
      await bench.get(headers: ["Accept-Language": language]).description
    }
    #expect(await get("en") == "200 english n")
    #expect(await get("cs") == "200 english nc")
    #expect(bench.fake.requests[1].value("If-None-Match") == "\"en\"")
    #expect(await get("cs") == "200 english c")
    // A 304 that does not say of what it speaks is not believed, and loses nothing.
    #expect(await get("de") == "200 deutsch nn")
    #expect(bench.fake.requests[3].value("If-None-Match") == nil)
    #expect(await get("en") == "200 english c")
    #expect(await get("de") == "200 deutsch c")
  }

  @Test func unquotedTagsAreSentBackAsTheyCame() async {
    let bench = CacheBench(
      FakeTransport(
        .status(200, "one", headers: [("Cache-Control", "no-cache"), ("ETag", "v1")]),
        .status(304, headers: [("ETag", "v1")])))
    _ = await bench.get()
    #expect(await bench.get().description == "200 one nc")
    #expect(bench.fake.requests[1].value("If-None-Match") == "v1")
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

  @Test func partsBecomeTheWhole() async {
    let bench = CacheBench(FakeTransport(Self.part(0..<5), Self.part(5..<10)))
    #expect(await bench.get(headers: ["Range": "bytes=0-4"]).description == "206 01234 n")
    #expect(await bench.get(headers: ["Range": "bytes=1-3"]).description == "206 123 c")
    #expect(bench.cache.cachedResponse(for: Self.get) == nil, "no program takes a part for the whole")
    #expect(await bench.get(headers: ["Range": "bytes=5-"]).description == "206 56789 n")
    let whole = await bench.get()
    #expect(whole.description == "200 0123456789 c" && whole.fields["Content-Range"] == nil)
    #expect(whole.fields["Content-Length"] == "10")
    #expect(await bench.get(headers: ["Range": "bytes=4-5"]).description == "206 45 c")
    #expect(bench.fake.requests.count == 2)
  }

  @Test func aPartIsNoAnswerToTheWhole() async {
    let bench = CacheBench(FakeTransport(Self.part(0..<5), .cacheable("0123456789", "max-age=60")))
    _ = await bench.get(headers: ["Range": "bytes=0-4"])
    #expect(await bench.get().description == "200 0123456789 n")
    #expect(bench.fake.requests[1].fields.allSatisfy { !$0.name.hasPrefix("If-") })
    #expect(await bench.get(headers: ["Range": "bytes=0-4"]).description == "206 01234 c")
  }

  @Test func aStalePartIsValidated() async {
    let bench = CacheBench(
      FakeTransport(Self.part(0..<5), .status(304, headers: [("ETag", "\"1\"")]), Self.part(0..<5, tag: "2")))
    _ = await bench.get(headers: ["Range": "bytes=0-4"])
    bench.clock.advance(70)
    #expect(await bench.get(headers: ["Range": "bytes=0-2"]).description == "206 012 nc")
    bench.clock.advance(70)
    #expect(await bench.get(headers: ["Range": "bytes=0-4"]).description == "206 01234 n")
    #expect(await bench.get(headers: ["Range": "bytes=0-1"]).description == "206 01 c")
    bench.clock.advance(70)
    _ = await bench.get(headers: ["Range": "bytes=0-1"])
    #expect(bench.fake.requests.last?.value("If-None-Match") == "\"2\"")
  }

  @Test func anAnswerToARangeDoesNotDropTheWhole() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("0123456789", "max-age=60", tag: "1"), .cacheable("whole", "max-age=60"),
        .status(200, "whole", headers: [("Cache-Control", "no-store")]), Self.part(0..<2, tag: "2")))
    _ = await bench.get()
    for _ in 0..<3 {
      _ = await bench.get(headers: ["Range": "bytes=0-1"], policy: .reloadIgnoringLocalCacheData)
      #expect(await bench.get().description == "200 0123456789 c")
    }
  }

  @Test func partsAreNotPutIntoACacheOfFoundation() async {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: "/dev/null")
    let fake = FakeTransport { _, _ in Self.part(0..<5) }
    let session = Session.kept(fake: fake, configuration: .cached(by: cache))
    _ = await session.request("http://a.test/x", headers: ["Range": "bytes=0-4"]).end()
    #expect(cache.currentMemoryUsage == 0)
  }
}
