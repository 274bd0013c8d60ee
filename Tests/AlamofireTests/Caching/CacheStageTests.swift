import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("The cache in the pipeline", .timeLimit(.minutes(5))) struct CacheStageTests {
  @Test func aFreshResponseIsAnsweredWithoutTheNetwork() async {
    let bench = CacheBench(FakeTransport(.cacheable("one", "max-age=60")))
    #expect(await bench.get().description == "200 one n")
    bench.clock.advance(20)
    let again = await bench.get()
    #expect(again.description == "200 one c" && again.fields["Age"] == "20")
    #expect(bench.fake.requests.count == 1)
    #expect(await bench.get("y").description == "200 ok n")
  }

  @Test func aStaleResponseIsValidated() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: "1"),
        .status(304, headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=90"), ("X", "new")])))
    _ = await bench.get()
    bench.clock.advance(60)
    let validated = await bench.get()
    #expect(validated.description == "200 one nc" && validated.fields["X"] == "new")
    #expect(bench.fake.requests[1].value("If-None-Match") == "\"1\"")
    bench.clock.advance(89)
    #expect(await bench.get().description == "200 one c")
  }

  @Test func anotherVersionTakesThePlaceOfTheStoredOne() async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1"), .cacheable("two", "max-age=60", tag: "2")))
    _ = await bench.get()
    bench.clock.advance(60)
    #expect(await bench.get().description == "200 two n")
    #expect(await bench.get().description == "200 two c")
  }

  @Test func aConfirmationOfSomethingElseIsNotBelieved() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "no-cache", tag: "1"), .status(304, headers: [("ETag", "\"9\"")]),
        .cacheable("two", "no-cache", tag: "2")))
    _ = await bench.get()
    #expect(await bench.get().description == "200 two nn")
    #expect(bench.fake.requests[2].value("If-None-Match") == nil)
  }

  @Test("Bodies that are not decoded are neither stored nor answered from the cache")
  func bodiesAsTheyCame() async {
    var options = TransportOptions()
    options.decodesContent = false
    let decoding = CacheBench(FakeTransport(.cacheable("decoded", "max-age=60")))
    _ = await decoding.get()
    let raw = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60"), .cacheable("two", "max-age=60")), options: options,
      sharing: decoding)
    #expect(await raw.get().description == "200 one n")
    #expect(await raw.get().description == "200 two n")
    #expect(await decoding.get().description == "200 decoded c")
  }

  @Test func a304ReachesOnlyWhoAskedForIt() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: "1"), .status(304, headers: [("ETag", "\"1\"")])))
    _ = await bench.get()
    bench.clock.advance(100)
    #expect(await bench.get(headers: ["If-None-Match": "\"1\""]).description == "304  n")
    // What he learned is known to the cache.
    #expect(await bench.get().description == "200 one c")
  }

  @Test(arguments: [
    (URLRequest.CachePolicy.useProtocolCachePolicy, "200 one c", "200 two n"),
    (.reloadIgnoringLocalCacheData, "200 two n", "200 two n"),
    (.reloadIgnoringLocalAndRemoteCacheData, "200 two n", "200 two n"),
    (.returnCacheDataElseLoad, "200 one c", "200 one c"),
    (.returnCacheDataDontLoad, "200 one c", "200 one c"),
    (.reloadRevalidatingCacheData, "200 two n", "200 two n"),
  ]) func policies(policy: URLRequest.CachePolicy, fresh: String, stale: String) async {
    for (age, expected) in [(Int64(10), fresh), (100, stale)] {
      for isOfSession in [true, false] {
        let first = CacheBench(FakeTransport(.cacheable("one", "max-age=60", tag: "1")))
        _ = await first.get()
        first.clock.advance(age)
        let second = CacheBench(
          FakeTransport(.cacheable("two", "max-age=60")),
          policy: isOfSession ? policy : .useProtocolCachePolicy, sharing: first)
        let got = await second.get(policy: isOfSession ? .useProtocolCachePolicy : policy)
        #expect(got.description == expected, "\(policy) \(age)")
        if policy == .reloadIgnoringLocalAndRemoteCacheData {
          #expect(second.fake.requests.first?.value("Cache-Control") == "no-cache")
        }
      }
    }
  }

  @Test func whatMayNotBeLoadedIsUnavailable() async {
    let bench = CacheBench(FakeTransport())
    #expect(await bench.get(policy: .returnCacheDataDontLoad).code == .resourceUnavailable)
    #expect(await bench.get(method: .post, policy: .returnCacheDataDontLoad).code == .resourceUnavailable)
    #expect(await bench.get(policy: .returnCacheDataElseLoad).description == "200 ok n")
    // Asked for with that policy, it has been stored, although it can never be fresh.
    #expect(await bench.get(policy: .returnCacheDataDontLoad).description == "200 ok c")
    #expect(bench.fake.requests.count == 1)
    var only = URLRequest(url: URL(fileURLWithPath: "/"))
    only.url = URL(string: "http://a.test/x")
    only.cachePolicy = .returnCacheDataDontLoad
    let download = await bench.session.download(only).serializingData().response
    defer { download.removeFile() }
    #expect(download.value == Data("ok".utf8))
    only.url = URL(string: "http://a.test/y")
    let missing = await bench.session.download(only).serializingData().response
    #expect((missing.error?.underlyingError as? URLError)?.code == .resourceUnavailable)
    let uncached = Session.kept(fake: bench.fake)
    #expect(CacheBench.Got(await uncached.request(only).end()).code == .resourceUnavailable)
    #expect(bench.fake.requests.count == 1)
  }

  @Test func onlyIfCachedIsAnsweredWith504() async {
    let bench = CacheBench(FakeTransport(.cacheable("one", "max-age=60")))
    let only: HTTPHeaders = ["Cache-Control": "only-if-cached"]
    #expect(await bench.get(headers: only).description == "504  c")
    _ = await bench.get()
    #expect(await bench.get(headers: only).description == "200 one c")
  }

  @Test func unsafeRequestsMakeInvalid() async {
    let bench = CacheBench(
      FakeTransport { request, index in
        request.method == "GET"
          ? .cacheable("\(index)", "max-age=600")
          : .status(request.method == "PUT" ? 500 : 201, headers: [("Location", "/y?z")])
      })
    for path in ["x", "y?z", "y"] { _ = await bench.get(path) }
    _ = await bench.get(method: .put)
    #expect(await bench.get().hops == "c")
    _ = await bench.get(method: .post)
    #expect(await bench.get().hops == "n")
    #expect(await bench.get("y?z").hops == "n")
    #expect(await bench.get("y").hops == "c")
  }

  @Test func anAnswerThatAnUnsafeRequestOvertookIsNotStored() async {
    let (gate, reached) = (Latch(), Latch())
    let bench = CacheBench(
      FakeTransport(.cacheable("old", "max-age=600").held(by: gate, reached: reached), .status(200)))
    async let slow = bench.get()
    await reached.wait()
    _ = await bench.get(method: .post)
    gate.open()
    #expect(await slow.body == "old")
    #expect(bench.cache.currentMemoryUsage == 0)
  }

  @Test func aConfirmationMayForbidToKeep() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "no-cache", tag: "1"), .status(304, headers: [("Cache-Control", "no-store")])))
    _ = await bench.get()
    #expect(await bench.get().description == "200 one nc")
    #expect(bench.cache.currentMemoryUsage == 0)
  }

  @Test func aHeadIsAnsweredAndTeaches() async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1")) { request, _ in
        .status(200, headers: [("ETag", request.url.hasSuffix("x") ? "\"2\"" : "\"1\"")])
      })
    _ = await bench.get()
    #expect(await bench.get(method: .head).description == "200  c")
    _ = await bench.get(headers: ["Cache-Control": "no-cache"], method: .head)
    #expect(bench.cache.currentMemoryUsage == 0)
  }

  @Test func aHeadThatFailsTeachesNothing() async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1")) { _, _ in .status(503) })
    _ = await bench.get()
    #expect(await bench.get(headers: ["Cache-Control": "no-cache"], method: .head).status == 503)
    #expect(await bench.get().description == "200 one c")
  }

  @Test func aPartIsCutOutOfTheWhole() async {
    let bench = CacheBench(FakeTransport(.cacheable("0123456789", "max-age=60"), .status(416)))
    _ = await bench.get()
    let part = await bench.get(headers: ["Range": "bytes=2-4"])
    #expect(part.description == "206 234 c" && part.fields["Content-Range"] == "bytes 2-4/10")
    #expect(await bench.get(headers: ["Range": "bytes=20-"]).hops == "n")
    #expect(await bench.get().description == "200 0123456789 c")
  }

  @Test func variantsAreKeptApart() async {
    let bench = CacheBench(
      FakeTransport { request, _ in
        .cacheable(request.value("Accept") ?? "", "max-age=60", tag: nil, ("Vary", "Accept"))
      })
    for type in ["a/a", "b/b", "a/a", "b/b"] {
      #expect(await bench.get(headers: ["Accept": type]).body == type)
    }
    #expect(bench.fake.requests.count == 2)
  }

  @Test func credentialsAreNotMixed() async {
    let bench = CacheBench(
      FakeTransport { request, _ in .cacheable(request.value("Authorization") ?? "", "max-age=60") })
    for token in ["a", "b", "a"] {
      #expect(await bench.get(headers: [.authorization(bearerToken: token)]).body == "Bearer \(token)")
    }
    #expect(await bench.get().body == "")
    #expect(bench.fake.requests.count == 3)
  }

  @Test func aStaleAnswerIsRefreshedAfterwards() async {
    let reached = Latch()
    let gate = Latch()
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60", tag: "1"),
        .cacheable("two", "max-age=60").held(by: gate, reached: reached)))
    _ = await bench.get()
    bench.clock.advance(70)
    #expect(await bench.get().description == "200 one c")
    #expect(await bench.get().description == "200 one c")
    await reached.wait()
    gate.open()
    let cache = bench.cache
    let isThere = await eventually {
      cache.cachedResponse(for: URLRequest(url: URL(string: "http://a.test/x") ?? URL(fileURLWithPath: "/")))?
        .data == Data("two".utf8)
    }
    #expect(isThere)
    #expect(await bench.get().description == "200 two c")
    #expect(bench.fake.requests.count == 2)
    #expect(bench.fake.requests[1].value("If-None-Match") == "\"1\"")
  }

  @Test func aStaleAnswerStandsInForAnOutage() async {
    let bench = CacheBench(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-if-error=60", tag: "1"), .failure(.cannotConnectToHost),
        .status(503, "busy"), .status(404, "gone")))
    _ = await bench.get()
    bench.clock.advance(70)
    #expect(await bench.get().body == "one")
    #expect(await bench.get().description == "200 one nc")
    #expect(await bench.get().description == "404 gone n")
    let strict = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1"), .failure(.cannotConnectToHost)))
    _ = await strict.get()
    strict.clock.advance(70)
    #expect(await strict.get().code == .cannotConnectToHost)
  }

  @Test func everyHopOfARedirectIsCached() async {
    let bench = CacheBench(
      FakeTransport { request, _ in
        request.url.hasSuffix("x")
          ? .status(301, headers: [("Location", "/y"), ("Cache-Control", "max-age=60")])
          : .cacheable("there", "max-age=60")
      })
    #expect(await bench.get().description == "200 there nn")
    #expect(await bench.get().description == "200 there cc")
    #expect(bench.fake.requests.count == 2)
  }

  @Test(arguments: ["no-store", "no-store, max-age=60"])
  func whatMayNotBeKeptIsNotKept(control: String) async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60"), .cacheable("two", control), .ok))
    _ = await bench.get()
    _ = await bench.get(policy: .reloadIgnoringLocalCacheData)
    // Neither the newer one, nor the older one in its place.
    #expect(bench.cache.currentMemoryUsage == 0)
    #expect(await bench.get().hops == "n")
  }

  @Test func whatCouldNeverBeUsedIsNotKept() async {
    let bench = CacheBench(FakeTransport(.text("plain")))
    _ = await bench.get()
    #expect(bench.cache.currentMemoryUsage == 0)
  }

  @Test func othersThanTheUsualServersAreForTheirSessionAlone() async {
    var options = TransportOptions()
    options.trustStore = .file("/nowhere")
    let own = CacheBench(FakeTransport(.cacheable("own", "max-age=60")), options: options)
    #expect(await own.get().description == "200 own n")
    #expect(await own.get().description == "200 own c")
    let usual = CacheBench(FakeTransport(.cacheable("usual", "max-age=60")), sharing: own)
    #expect(await usual.get().description == "200 usual n")
    let third = CacheBench(FakeTransport(.cacheable("third", "max-age=60")), options: options, sharing: own)
    #expect(await third.get().description == "200 third n")
    #expect(await own.get().description == "200 own c")
    #expect(await usual.get().description == "200 usual c")
  }

  @Test func otherRoutesLeadToOtherServers() async {
    let bench = CacheBench(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    func get(_ change: @escaping @Sendable (inout TransportOptions) -> Void) async -> String {
      let request = bench.session.request("http://a.test/x").transportOptions { change(&$0) }
      return CacheBench.Got(await request.end()).description
    }
    #expect(await get { _ in } == "200 0 n")
    #expect(await get { $0.unixSocket = "/a" } == "200 1 n")
    #expect(await get { $0.unixSocket = "/b" } == "200 2 n")
    #expect(await get { $0.hostOverrides = [.init(host: "a.test", target: "b.test")] } == "200 3 n")
    #expect(await get { $0.proxy = .none } == "200 4 n")
    #expect(await get { $0.unixSocket = "/a" } == "200 1 c")
    #expect(await get { _ in } == "200 0 c")
  }

  @Test func cookiesOfAStoredResponseAreNotTakenAgain() async throws {
    let configuration = URLSessionConfiguration.solitary
    configuration.urlCache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    let fake = FakeTransport(
      .cacheable("one", "public, max-age=60", tag: "1", ("Set-Cookie", "a=1")),
      .status(304, headers: [("Set-Cookie", "b=2")]))
    let session = Session.kept(fake: fake, configuration: configuration)
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    func get(_ headers: HTTPHeaders? = nil) async -> CacheBench.Got {
      CacheBench.Got(await session.request("http://a.test/x", headers: headers).end())
    }
    #expect(await get().hops == "n")
    #expect(storage.cookies?.map(\.name) == ["a"])
    for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
    #expect(await get().description == "200 one c")
    #expect(storage.cookies?.isEmpty != false)
    #expect(await get(["Cache-Control": "no-cache"]).description == "200 one nc")
    #expect(storage.cookies?.map(\.name) == ["b"])
  }

  @Test func theDefaultConfigurationMeansOurCache() {
    #expect(SessionCache(URLSessionConfiguration.af.default).store as? HTTPCache === HTTPCache.default)
    #expect(SessionCache(URLSessionConfiguration.default).store as? HTTPCache === HTTPCache.default)
    let ephemeral = SessionCache(URLSessionConfiguration.af.ephemeral).store as? HTTPCache
    #expect(ephemeral != nil && ephemeral !== HTTPCache.default && ephemeral?.diskCapacity == 0)
    #expect(SessionCache(.uncached).store == nil)
    #expect(Session().sessionConfiguration.urlCache === HTTPCache.default)
    let plain = URLCache(memoryCapacity: 1000, diskCapacity: 0, diskPath: "/dev/null")
    #expect(SessionCache(.cached(by: plain)).store is URLCacheStorage)
  }
}
