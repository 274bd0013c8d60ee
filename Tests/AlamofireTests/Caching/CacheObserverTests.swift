import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Observers of cached responses", .timeLimit(.minutes(5))) struct CacheObserverTests {
  private final class Refusing: SessionDelegate, @unchecked Sendable {
    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask,
      willCacheResponse proposedResponse: CachedURLResponse,
      completionHandler: @escaping (CachedURLResponse?) -> Void
    ) { completionHandler(nil) }
  }

  @Test("A handler or delegate decides about storing a response") func storageDecision() async {
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60"), .cacheable("two", "max-age=60")),
      observers: SessionObservers(cachedResponseHandler: .doNotCache))
    #expect(await fixture.get().hops == "n")
    #expect(await fixture.get().description == "200 two n")
    let delegated = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60")), observers: SessionObservers(delegate: Refusing()))
    _ = await delegated.get()
    #expect(delegated.cache.currentMemoryUsage == 0)
    let changed = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60")),
      observers: SessionObservers(
        cachedResponseHandler: .modify { _, proposed in
          CachedURLResponse(
            response: proposed.response, data: Data("other".utf8), userInfo: ["note": "mine"],
            storagePolicy: .allowed)
        }))
    #expect(await changed.get().body == "one")
    #expect(await changed.get().description == "200 other c")
    let request = URLRequest(url: URL(string: "http://a.test/x") ?? URL(fileURLWithPath: "/"))
    #expect(changed.cache.cachedResponse(for: request)?.userInfo?["note"] as? String == "mine")
  }

  @Test("A response is not refreshed in the background if a handler decides about storing it") func refresh()
    async
  {
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60", tag: "1"),
        .cacheable("two", "max-age=60")),
      observers: SessionObservers(cachedResponseHandler: .cache, eventMonitors: []))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().description == "200 two n")
  }

  @Test(
    "A response is not stored if a handler was added too late to be asked about it", arguments: [false, true])
  func lateHandler(isLate: Bool) async {
    let (gate, reached) = (Latch(), Latch())
    let bench = CacheFixture(
      FakeTransport(FakeReply.cacheable("one", "max-age=60").held(by: gate, reached: reached)))
    let request = bench.session.request("http://a.test/x")
    async let response = request.end()
    await reached.wait()
    let offers = Recorder<String>()
    if isLate {
      request.cacheResponse(
        using: .modify { _, proposed in
          offers.add("offer")
          return proposed
        })
    }
    gate.open()
    #expect(await response.data == Data("one".utf8))
    #expect(offers.count == 0 && (bench.cache.currentMemoryUsage == 0) == isLate)
  }

  @Test("A redirect is passed to the cached response handler") func redirects() async {
    let offered = Recorder<String>()
    let fixture = CacheFixture(
      FakeTransport(
        .status(301, headers: [("Location", "/y"), ("Cache-Control", "max-age=60")]),
        .cacheable("there", "max-age=60")),
      observers: SessionObservers(
        cachedResponseHandler: .modify { _, proposed in
          offered.add(proposed.response.url?.path ?? "")
          return proposed
        }))
    _ = await fixture.get()
    #expect(offered.values == ["/x", "/y"])
    #expect(await fixture.get().description == "200 there cc")
  }

  @Test("The response of a failed attempt is not passed to the handler after the retry")
  func offersOfFailedAttempts() async {
    let offered = Recorder<String>()
    let redirect = FakeReply.status(301, headers: [("Location", "/y"), ("Cache-Control", "max-age=60")])
    let fixture = CacheFixture(
      FakeTransport(redirect, .failure(.connectionLost), redirect, .cacheable("there", "max-age=60")),
      observers: SessionObservers(
        cachedResponseHandler: .modify { _, proposed in
          offered.add(proposed.response.url?.path ?? "")
          return proposed
        }))
    let response = await fixture.session.request("http://a.test/x", interceptor: SpyInterceptor(retries: 1))
      .end()
    #expect(response.data == Data("there".utf8))
    #expect(offered.values == ["/x", "/y"])
  }

  @Test("Monitors receive the same events for a cached response, except for storing") func monitors() async {
    let spy = EventSpy()
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60")), observers: SessionObservers(eventMonitors: [spy]))
    _ = await fixture.get()
    let first = spy.reported
    _ = await fixture.get()
    let second = Array(spy.reported.dropFirst(first.count))
    #expect(first.contains("willCacheResponse 3"))
    #expect(second == first.filter { $0 != "willCacheResponse 3" })
  }

  @Test("Observers do not receive the head of a revalidation") func revalidation() async {
    let spy = EventSpy()
    let heads = Recorder<Int>()
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "no-cache", tag: "1"), .status(304)),
      observers: SessionObservers(eventMonitors: [spy]))
    _ = await fixture.get()
    let request = fixture.session.request("http://a.test/x").onHTTPResponse(on: .global()) { response in
      heads.add(response.statusCode)
    }
    _ = await request.end()
    #expect(heads.values == [200])
    #expect(!spy.reported.contains("didReceive response 304"))
    #expect(request.metrics?.transactionMetrics.map(\.resourceFetchType) == [.networkLoad, .localCache])
    #expect((request.metrics?.transactionMetrics.first?.response as? HTTPURLResponse)?.statusCode == 304)
  }

  @Test("The head of a 304 to a request without a condition is delivered")
  func headOfAnUnconditionalNotModified() async {
    let heads = Recorder<Int>()
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=600"), .status(304)))
    _ = await fixture.get()
    fixture.clock.advance(70)
    let queue = DispatchQueue(label: "heads")
    let request = fixture.session.request("http://a.test/x").onHTTPResponse(on: queue) { response in
      heads.add(response.statusCode)
    }
    #expect(await request.end().response?.statusCode == 304)
    queue.sync {}
    #expect(heads.values == [304])
    #expect(fixture.fake.requests[1].value("If-None-Match") == nil)
  }

  @Test("Progress and validation do not depend on the cache") func progressAndValidation() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("0123456789", "max-age=60")))
    _ = await fixture.get()
    let moved = Recorder<Int64>()
    let request = fixture.session.request("http://a.test/x").downloadProgress(queue: .global()) {
      moved.add($0.completedUnitCount)
    }
    let response = await request.validate().end()
    #expect(response.error == nil && response.data?.count == 10)
    #expect(await moved.wait(for: 1) == [10])
  }

  @Test("A head handler can cancel a cached response") func cancelledHead() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("one", "max-age=60")))
    _ = await fixture.get()
    let request = fixture.session.request("http://a.test/x").onHTTPResponse(on: .global()) {
      (_: HTTPURLResponse, completion: @escaping @Sendable (Request.ResponseDisposition) -> Void) in
      completion(.cancel)
    }
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
  }

  @Test("A suspended request receives its cached response after resume") func suspendedRequest() async {
    let fixture = CacheFixture(FakeTransport(.cacheable("one", "max-age=60")))
    _ = await fixture.get()
    let request = fixture.session.request("http://a.test/x", shouldAutomaticallyResume: false)
    let done = Latch()
    request.response(queue: .global()) { _ in done.open() }
    request.suspend()
    #expect(!done.isOpen)
    request.resume()
    await done.wait()
    #expect(request.data == Data("one".utf8) && fixture.fake.requests.count == 1)
  }
}
