import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

@testable import Alamofire

@Suite("Caching of requests", .timeLimit(.minutes(5))) struct CacheStageTests {
  @Test("A fresh response is used without a request") func freshResponse() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("one", "max-age=60")))
    #expect(await fixture.get().description == "200 one n")
    fixture.clock.advance(20)
    let again = await fixture.get()
    #expect(again.description == "200 one c" && again.fields["Age"] == "20")
    #expect(fixture.fake.requests.count == 1)
    #expect(await fixture.get("y").description == "200 ok n")
  }

  @Test("A request that names another host than its URL is not answered from the cache") func ownHost() async
  {
    let fixture = CacheFixture(
      FakeTransport { _, index in .cacheable("\(index)", "max-age=60", tag: "\(index)") })
    #expect(await fixture.get(headers: ["Host": "a.test:1"]).description == "200 0 n")
    #expect(await fixture.get(headers: ["host": "b.test"]).description == "200 1 n")
    #expect(await fixture.get().description == "200 2 n")
    #expect(await fixture.get(headers: ["Host": "b.test"]).description == "200 3 n")
    #expect(await fixture.get().description == "200 2 c")
    for host in ["a.test", "A.test:80", "a.test:"] {
      #expect(await fixture.get(headers: ["Host": host]).description == "200 2 c", "\(host)")
    }
    #expect(fixture.fake.requests.allSatisfy { $0.value("If-None-Match") == nil })
    let only = await fixture.get(headers: ["Host": "b.test", "Cache-Control": "only-if-cached"])
    #expect(only.description.hasPrefix("504") && fixture.fake.requests.count == 4, "\(only.description)")
  }

  /// Unchecked, as its superclass is: it has no properties.
  private final class OwnCache: URLCache, @unchecked Sendable {}

  /// Runs in a process of its own, because the shared cache belongs to all tests.
  @Test("Foundation's shared cache is replaced, unless it is a subclass") func sharedCache() async {
    await #expect(processExitsWith: .success) {
      #expect(SessionCache.inPlace(of: URLCache.shared) === HTTPCache.default)
      #expect(SessionCache.inPlace(of: URLCache(memoryCapacity: 1, diskCapacity: 0, diskPath: nil)) == nil)
      #expect(SessionCache.inPlace(of: nil) == nil)
      URLCache.shared = OwnCache(memoryCapacity: 1, diskCapacity: 0, diskPath: nil)
      #expect(SessionCache.inPlace(of: URLCache.shared) == nil)
    }
  }

  @Test("A stale response is revalidated") func staleResponse() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: "1"),
        .status(304, headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=90"), ("X", "new")])))
    _ = await fixture.get()
    fixture.clock.advance(60)
    let validated = await fixture.get()
    #expect(validated.description == "200 one nc" && validated.fields["X"] == "new")
    #expect(fixture.fake.requests[1].value("If-None-Match") == "\"1\"")
    fixture.clock.advance(89)
    #expect(await fixture.get().description == "200 one c")
  }

  @Test("A new version replaces the stored response") func newVersion() async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1"), .cacheable("two", "max-age=60", tag: "2")))
    _ = await fixture.get()
    fixture.clock.advance(60)
    #expect(await fixture.get().description == "200 two n")
    #expect(await fixture.get().description == "200 two c")
  }

  @Test("A 304 with another entity tag is not used") func foreignNotModified() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "no-cache", tag: "1"), .status(304, headers: [("ETag", "\"9\"")]),
        .cacheable("two", "no-cache", tag: "2")))
    _ = await fixture.get()
    #expect(await fixture.get().description == "200 two nn")
    #expect(fixture.fake.requests[2].value("If-None-Match") == nil)
  }

  @Test("Bodies that are not decoded are neither stored nor answered from the cache")
  func bodiesAsTheyCame() async {
    var options = TransportOptions()
    options.decodesContent = false
    let decoding = CacheFixture(FakeTransport(.cacheable("decoded", "max-age=60")))
    _ = await decoding.get()
    let raw = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60"), .cacheable("two", "max-age=60")), options: options,
      sharing: decoding)
    #expect(await raw.get().description == "200 one n")
    #expect(await raw.get().description == "200 two n")
    #expect(await decoding.get().description == "200 decoded c")
  }

  @Test("A 304 is delivered only to a request with a condition of its own") func ownCondition() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: "1"), .status(304, headers: [("ETag", "\"1\"")])))
    _ = await fixture.get()
    fixture.clock.advance(100)
    #expect(await fixture.get(headers: ["If-None-Match": "\"1\""]).description == "304  n")
    // The cache is updated by the 304.
    #expect(await fixture.get().description == "200 one c")
  }

  @Test(
    "Each cache policy decides about fresh and stale responses",
    arguments: [
      (URLRequest.CachePolicy.useProtocolCachePolicy, "200 one c", "200 two n"),
      (.reloadIgnoringLocalCacheData, "200 two n", "200 two n"),
      (.reloadIgnoringLocalAndRemoteCacheData, "200 two n", "200 two n"),
      (.returnCacheDataElseLoad, "200 one c", "200 one c"),
      (.returnCacheDataDontLoad, "200 one c", "200 one c"),
      (.reloadRevalidatingCacheData, "200 two n", "200 two n"),
    ]) func policies(policy: URLRequest.CachePolicy, fresh: String, stale: String) async
  {
    for (age, expected) in [(Int64(10), fresh), (100, stale)] {
      for isOfSession in [true, false] {
        let first = CacheFixture(FakeTransport(.cacheable("one", "max-age=60", tag: "1")))
        _ = await first.get()
        first.clock.advance(age)
        let second = CacheFixture(
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

  @Test("returnCacheDataDontLoad fails without a stored response") func dontLoad() async {
    let fixture = CacheFixture(FakeTransport())
    #expect(await fixture.get(policy: .returnCacheDataDontLoad).code == .resourceUnavailable)
    #expect(await fixture.get(method: .post, policy: .returnCacheDataDontLoad).code == .resourceUnavailable)
    #expect(await fixture.get(policy: .returnCacheDataElseLoad).description == "200 ok n")
    // A request with returnCacheDataElseLoad stored the response, although it is never fresh.
    #expect(await fixture.get(policy: .returnCacheDataDontLoad).description == "200 ok c")
    #expect(fixture.fake.requests.count == 1)
    var only = URLRequest(url: URL(fileURLWithPath: "/"))
    only.url = URL(string: "http://a.test/x")
    only.cachePolicy = .returnCacheDataDontLoad
    let download = await fixture.session.download(only).serializingData().response
    defer { download.removeFile() }
    #expect(download.value == Data("ok".utf8))
    only.url = URL(string: "http://a.test/y")
    let missing = await fixture.session.download(only).serializingData().response
    #expect((missing.error?.underlyingError as? URLError)?.code == .resourceUnavailable)
    let uncached = Session.retained(fake: fixture.fake)
    #expect(CacheFixture.Received(await uncached.request(only).end()).code == .resourceUnavailable)
    #expect(fixture.fake.requests.count == 1)
  }

  @Test("only-if-cached is answered with 504 without a stored response") func onlyIfCached() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("one", "max-age=60")))
    let only: HTTPHeaders = ["Cache-Control": "only-if-cached"]
    #expect(await fixture.get(headers: only).description == "504  c")
    _ = await fixture.get()
    #expect(await fixture.get(headers: only).description == "200 one c")
    let condition: HTTPHeaders = ["Cache-Control": "only-if-cached", "If-None-Match": "\"1\""]
    #expect(await fixture.get(headers: condition).description == "504  c")
    let policies: [URLRequest.CachePolicy] = [
      .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData, .reloadRevalidatingCacheData,
      .returnCacheDataElseLoad,
    ]
    for policy in policies {
      let got = await fixture.get("y", headers: only, policy: policy)
      #expect(got.description == "504  c", "\(policy.rawValue)")
    }
    #expect(await fixture.get(headers: only, method: .post).description == "504  c")
    #expect(fixture.fake.requests.count == 1)
  }

  @Test("A request with no-store that may not be sent fails, even with a stored response")
  func storedOnlyWithoutStoring() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("one", "max-age=60")))
    _ = await fixture.get()
    let answer = await fixture.get(headers: ["Cache-Control": "no-store"], policy: .returnCacheDataDontLoad)
    #expect(answer.code == .resourceUnavailable && fixture.fake.requests.count == 1)
  }

  @Test("Unsafe methods invalidate the URL and the Location") func unsafeRequests() async {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        request.method == "GET"
          ? .cacheable("\(index)", "max-age=600")
          : .status(request.method == "PUT" ? 500 : 201, headers: [("Location", "/y?z")])
      })
    for path in ["x", "y?z", "y"] { _ = await fixture.get(path) }
    _ = await fixture.get(method: .put)
    #expect(await fixture.get().hops == "c")
    _ = await fixture.get(method: .post)
    #expect(await fixture.get().hops == "n")
    #expect(await fixture.get("y?z").hops == "n")
    #expect(await fixture.get("y").hops == "c")
  }

  @Test("Each name of another resource invalidates it, if nothing is stored for the request itself")
  func namedResources() async {
    for name in ["Location", "Content-Location"] {
      let fixture = CacheFixture(
        FakeTransport { request, index in
          request.method == "GET"
            ? .cacheable("\(index)", "max-age=600") : .status(200, headers: [(name, "/y")])
        })
      _ = await fixture.get("y")
      _ = await fixture.get(method: .post)
      #expect(await fixture.get("y").hops == "n", "\(name)")
    }
  }

  @Test("A redirect of an unsafe request invalidates its URL", arguments: [301, 302, 303, 307, 308])
  func redirectedUnsafeRequest(status: Int) async {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        if request.url.hasSuffix("/x"), request.method == "POST" { return .redirect(status, to: "/done") }
        return request.method == "GET" ? .cacheable("\(index)", "max-age=600") : .status(200)
      })
    for path in ["x", "y"] { _ = await fixture.get(path) }
    _ = await fixture.get(method: .post)
    #expect(await fixture.get().hops == "n", "the POST to x was answered by \(status)")
    #expect(await fixture.get("y").hops == "c")
  }

  @Test("A response is not stored if an unsafe request ended before it") func overtakenResponse() async {
    let (gate, reached) = (Latch(), Latch())
    let fixture = CacheFixture(
      FakeTransport(.cacheable("old", "max-age=600").held(by: gate, reached: reached), .status(200)))
    async let slow = fixture.get()
    await reached.wait()
    _ = await fixture.get(method: .post)
    gate.open()
    #expect(await slow.body == "old")
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  @Test("A 304 with no-store removes the stored response") func noStoreInNotModified() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "no-cache", tag: "1"), .status(304, headers: [("Cache-Control", "no-store")])))
    _ = await fixture.get()
    #expect(await fixture.get().description == "200 one nc")
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  @Test("HEAD is answered from the cache and can invalidate it") func headRequests() async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1")) { request, _ in
        .status(200, headers: [("ETag", request.url.hasSuffix("x") ? "\"2\"" : "\"1\"")])
      })
    _ = await fixture.get()
    #expect(await fixture.get(method: .head).description == "200  c")
    _ = await fixture.get(headers: ["Cache-Control": "no-cache"], method: .head)
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  @Test("A failed HEAD does not change the cache") func failedHead() async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1")) { _, _ in .status(503) })
    _ = await fixture.get()
    #expect(await fixture.get(headers: ["Cache-Control": "no-cache"], method: .head).status == 503)
    #expect(await fixture.get().description == "200 one c")
  }

  @Test("A range is served from a complete response") func range() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("0123456789", "max-age=60"), .status(416)))
    _ = await fixture.get()
    let part = await fixture.get(headers: ["Range": "bytes=2-4"])
    #expect(part.description == "206 234 c" && part.fields["Content-Range"] == "bytes 2-4/10")
    #expect(await fixture.get(headers: ["Range": "bytes=20-"]).hops == "n")
    #expect(await fixture.get().description == "200 0123456789 c")
  }

  @Test("Variants are stored separately") func separateVariants() async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        .cacheable(request.value("Accept") ?? "", "max-age=60", tag: nil, ("Vary", "Accept"))
      })
    for type in ["a/a", "b/b", "a/a", "b/b"] {
      #expect(await fixture.get(headers: ["Accept": type]).body == type)
    }
    #expect(fixture.fake.requests.count == 2)
  }

  @Test(
    "Responses with different credentials are stored separately",
    arguments: ["max-age=60", "public, private, max-age=60"])
  func separateCredentials(control: String) async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in .cacheable(request.value("Authorization") ?? "", control) })
    for token in ["a", "b", "a"] {
      #expect(await fixture.get(headers: [.authorization(bearerToken: token)]).body == "Bearer \(token)")
    }
    #expect(await fixture.get().body == "")
    #expect(fixture.fake.requests.count == 3)
  }

  @Test("stale-while-revalidate uses a stale response and revalidates it") func staleWhileRevalidate() async {
    let reached = Latch()
    let gate = Latch()
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60", tag: "1"),
        .cacheable("two", "max-age=60").held(by: gate, reached: reached)))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().description == "200 one c")
    #expect(await fixture.get().description == "200 one c")
    await reached.wait()
    gate.open()
    let cache = fixture.cache
    let isThere = await eventually {
      cache.cachedResponse(for: URLRequest(url: URL(string: "http://a.test/x") ?? URL(fileURLWithPath: "/")))?
        .data == Data("two".utf8)
    }
    #expect(isThere)
    #expect(await fixture.get().description == "200 two c")
    #expect(fixture.fake.requests.count == 2)
    #expect(fixture.fake.requests[1].value("If-None-Match") == "\"1\"")
  }

  @Test("stale-if-error uses a stale response for errors") func staleIfError() async {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-if-error=60", tag: "1"), .failure(.cannotConnectToHost),
        .status(503, "busy"), .status(404, "gone")))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().body == "one")
    #expect(await fixture.get().description == "200 one nc")
    #expect(await fixture.get().description == "404 gone n")
    let strict = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60", tag: "1"), .failure(.cannotConnectToHost)))
    _ = await strict.get()
    strict.clock.advance(70)
    #expect(await strict.get().code == .cannotConnectToHost)
  }

  @Test("A stored redirect does not announce the body that was not read") func bodyOfRedirect() async {
    let fields = [
      ("Location", "/y"), ("Cache-Control", "max-age=60"), ("Content-Length", "5"),
      ("Content-Type", "text/plain"),
    ]
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.url.hasSuffix("x")
          ? .status(301, "moved", headers: fields) : .cacheable("there", "max-age=60")
      })
    #expect(await fixture.get().description == "200 there nn")
    let request = fixture.session.request("http://a.test/x").redirect(using: Redirector.doNotFollow)
    let stored = CacheFixture.Received(await request.end())
    #expect(stored.status == 301 && stored.hops == "c" && stored.body == "")
    #expect(stored.fields["Content-Length"] == nil && stored.fields["Content-Type"] == "text/plain")
  }

  @Test("Every hop of a redirect is cached") func redirects() async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.url.hasSuffix("x")
          ? .status(301, headers: [("Location", "/y"), ("Cache-Control", "max-age=60")])
          : .cacheable("there", "max-age=60")
      })
    #expect(await fixture.get().description == "200 there nn")
    #expect(await fixture.get().description == "200 there cc")
    #expect(fixture.fake.requests.count == 2)
  }

  @Test("A no-store response removes the stored one", arguments: ["no-store", "no-store, max-age=60"])
  func noStoreResponse(control: String) async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60"), .cacheable("two", control), .ok))
    _ = await fixture.get()
    _ = await fixture.get(policy: .reloadIgnoringLocalCacheData)
    // Neither the new response is stored nor the old one.
    #expect(fixture.cache.currentMemoryUsage == 0)
    #expect(await fixture.get().hops == "n")
  }

  @Test("A response that could never be used is not stored") func unusableResponse() async {
    let fixture = CacheFixture(FakeTransport(.text("plain")))
    _ = await fixture.get()
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  @Test("Responses under other trust settings are used by their session only") func trustSettings() async {
    var options = TransportOptions()
    options.trustStore = .file("/nowhere")
    let own = CacheFixture(FakeTransport(.cacheable("own", "max-age=60")), options: options)
    #expect(await own.get().description == "200 own n")
    #expect(await own.get().description == "200 own c")
    let usual = CacheFixture(FakeTransport(.cacheable("usual", "max-age=60")), sharing: own)
    #expect(await usual.get().description == "200 usual n")
    let third = CacheFixture(FakeTransport(.cacheable("third", "max-age=60")), options: options, sharing: own)
    #expect(await third.get().description == "200 third n")
    #expect(await own.get().description == "200 own c")
    #expect(await usual.get().description == "200 usual c")
  }

  @Test("Responses over other routes are stored separately") func routes() async {
    let fixture = CacheFixture(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    func get(_ change: @escaping @Sendable (inout TransportOptions) -> Void) async -> String {
      let request = fixture.session.request("http://a.test/x").transportOptions { change(&$0) }
      return CacheFixture.Received(await request.end()).description
    }
    #expect(await get { _ in } == "200 0 n")
    #expect(await get { $0.unixSocket = "/a" } == "200 1 n")
    #expect(await get { $0.unixSocket = "/b" } == "200 2 n")
    #expect(await get { $0.hostOverrides = [.init(host: "a.test", target: "b.test")] } == "200 3 n")
    #expect(await get { $0.proxy = .none } == "200 4 n")
    #expect(await get { $0.unixSocket = "/a" } == "200 1 c")
    #expect(await get { _ in } == "200 0 c")
    #expect(await get { $0.unixSocket = "/\u{E9}" } == "200 5 n")
    #expect(await get { $0.unixSocket = "/e\u{301}" } == "200 6 n", "its path is equal in Swift only")
  }

  @Test("Cookies of a stored response are not stored again") func cookies() async throws {
    let configuration = URLSessionConfiguration.isolated
    configuration.urlCache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    let fake = FakeTransport(
      .cacheable("one", "public, max-age=60", tag: "1", ("Set-Cookie", "a=1")),
      .status(304, headers: [("Set-Cookie", "b=2")]))
    let session = Session.retained(fake: fake, configuration: configuration)
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    func get(_ headers: HTTPHeaders? = nil) async -> CacheFixture.Received {
      CacheFixture.Received(await session.request("http://a.test/x", headers: headers).end())
    }
    #expect(await get().hops == "n")
    #expect(storage.cookies?.map(\.name) == ["a"])
    for cookie in storage.cookies ?? [] { storage.deleteCookie(cookie) }
    #expect(await get().description == "200 one c")
    #expect(storage.cookies?.isEmpty != false)
    #expect(await get(["Cache-Control": "no-cache"]).description == "200 one nc")
    #expect(storage.cookies?.map(\.name) == ["b"])
  }

  @Test("A refresh stores cookies as its request does", arguments: [true, false])
  func cookiesOfRefresh(handlesCookies: Bool) async throws {
    let configuration = URLSessionConfiguration.isolated
    let clock = CacheFixture.Clock()
    let cache = HTTPCache(clock: { clock.now })
    configuration.urlCache = cache
    let fake = FakeTransport(
      .cacheable("one", "max-age=60, stale-while-revalidate=60", tag: "1"),
      .cacheable("two", "max-age=60", tag: "2", ("Set-Cookie", "a=1")))
    let session = Session.retained(
      fake: fake, configuration: configuration, observers: SessionObservers(eventMonitors: []))
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    var request = try URLRequest(url: "http://a.test/x", method: .get)
    request.httpShouldHandleCookies = handlesCookies
    _ = await session.request(request).end()
    clock.advance(70)
    #expect(CacheFixture.Received(await session.request(request).end()).description == "200 one c")
    let isRefreshed = await eventually { cache.cachedResponse(for: request)?.data == Data("two".utf8) }
    #expect(isRefreshed)
    // They were handed to their queue before the response was stored.
    await session.core.cookies?.storesFinished()
    #expect((storage.cookies ?? []).map(\.name) == (handlesCookies ? ["a"] : []))
  }

  @Test("The default configurations use HTTPCache") func defaultConfiguration() {
    #expect(SessionCache(URLSessionConfiguration.af.default).store as? HTTPCache === HTTPCache.default)
    #expect(SessionCache(URLSessionConfiguration.default).store as? HTTPCache === HTTPCache.default)
    let ephemeral = SessionCache(URLSessionConfiguration.af.ephemeral).store as? HTTPCache
    #expect(ephemeral != nil && ephemeral !== HTTPCache.default && ephemeral?.diskCapacity == 0)
    #expect(SessionCache(.uncached).store == nil)
    #expect(Session().sessionConfiguration.urlCache === HTTPCache.default)
    let plain = URLCache(memoryCapacity: 1000, diskCapacity: 0, diskPath: "/dev/null")
    #expect(SessionCache(.cached(by: plain)).store is URLCacheStorage)
  }

  @Test("A response that a later request invalidates is not stored in a cache of Foundation", .steps)
  func overtakenInURLCache() async {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(
      .cacheable("old", "max-age=60").held(by: gate, reached: reached), .status(204),
      .cacheable("new", "max-age=60"))
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let session = Session.retained(
      fake: fake, configuration: .cached(by: cache), observers: SessionObservers(eventMonitors: []))
    func send(_ method: HTTPMethod) async -> String {
      CacheFixture.Received(await session.request("http://a.test/x", method: method).end()).description
    }
    async let first = send(.get)
    step("a POST while the response is on its way")
    await reached.wait()
    #expect(await send(.post) == "204  n")
    step("the old response")
    gate.open()
    #expect(await first == "200 old n")
    step("a request after it")
    #expect(await send(.get) == "200 new n")
    #expect(await send(.get) == "200 new c")
  }
}
