import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Who watches cached answers", .timeLimit(.minutes(5))) struct CacheWatchingTests {
  private final class Refusing: SessionDelegate, @unchecked Sendable {
    override func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask,
      willCacheResponse proposedResponse: CachedURLResponse,
      completionHandler: @escaping (CachedURLResponse?) -> Void
    ) { completionHandler(nil) }
  }

  @Test func whoeverDecidesIsAskedFirst() async {
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60"), .cacheable("two", "max-age=60")),
      watching: SessionWatching(cachedResponseHandler: .doNotCache))
    #expect(await bench.get().hops == "n")
    #expect(await bench.get().description == "200 two n")
    let delegated = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60")), watching: SessionWatching(delegate: Refusing()))
    _ = await delegated.get()
    #expect(delegated.cache.currentMemoryUsage == 0)
    let changed = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60")),
      watching: SessionWatching(
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

  @Test func redirectsAreOfferedToo() async {
    let offered = Recorder<String>()
    let bench = CacheBench(
      FakeTransport(
        .status(301, headers: [("Location", "/y"), ("Cache-Control", "max-age=60")]),
        .cacheable("there", "max-age=60")),
      watching: SessionWatching(
        cachedResponseHandler: .modify { _, proposed in
          offered.add(proposed.response.url?.path ?? "")
          return proposed
        }))
    _ = await bench.get()
    #expect(offered.values == ["/x", "/y"])
    #expect(await bench.get().description == "200 there cc")
  }

  @Test("A response of an attempt that failed is not offered after the retry")
  func offersOfFailedAttempts() async {
    let offered = Recorder<String>()
    let redirect = FakeReply.status(301, headers: [("Location", "/y"), ("Cache-Control", "max-age=60")])
    let bench = CacheBench(
      FakeTransport(redirect, .failure(.connectionLost), redirect, .cacheable("there", "max-age=60")),
      watching: SessionWatching(
        cachedResponseHandler: .modify { _, proposed in
          offered.add(proposed.response.url?.path ?? "")
          return proposed
        }))
    let response = await bench.session.request("http://a.test/x", interceptor: SpyInterceptor(retries: 1))
      .end()
    #expect(response.data == Data("there".utf8))
    #expect(offered.values == ["/x", "/y"])
  }

  @Test func monitorsHearTheSameButForStoring() async {
    let spy = EventSpy()
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60")), watching: SessionWatching(eventMonitors: [spy]))
    _ = await bench.get()
    let first = spy.told
    _ = await bench.get()
    let second = Array(spy.told.dropFirst(first.count))
    #expect(first.contains("willCacheResponse 3"))
    #expect(second == first.filter { $0 != "willCacheResponse 3" })
  }

  @Test func aValidationIsNotSeen() async {
    let spy = EventSpy()
    let heads = Recorder<Int>()
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "no-cache", tag: "1"), .status(304)),
      watching: SessionWatching(eventMonitors: [spy]))
    _ = await bench.get()
    let request = bench.session.request("http://a.test/x").onHTTPResponse(on: .global()) { response in
      heads.add(response.statusCode)
    }
    _ = await request.end()
    #expect(heads.values == [200])
    #expect(!spy.told.contains("didReceive response 304"))
    #expect(request.metrics?.transactionMetrics.map(\.resourceFetchType) == [.networkLoad, .localCache])
    #expect((request.metrics?.transactionMetrics.first?.response as? HTTPURLResponse)?.statusCode == 304)
  }

  @Test("The head of a 304 that answers no condition is shown")
  func headOfAnUnconditionalNotModified() async {
    let heads = Recorder<Int>()
    let bench = CacheBench(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=600"), .status(304)))
    _ = await bench.get()
    bench.clock.advance(70)
    let queue = DispatchQueue(label: "heads")
    let request = bench.session.request("http://a.test/x").onHTTPResponse(on: queue) { response in
      heads.add(response.statusCode)
    }
    #expect(await request.end().response?.statusCode == 304)
    queue.sync {}
    #expect(heads.values == [304])
    #expect(bench.fake.requests[1].value("If-None-Match") == nil)
  }

  @Test func progressAndValidationAreTheSame() async {
    let bench = CacheBench(FakeTransport(.cacheable("0123456789", "max-age=60")))
    _ = await bench.get()
    let moved = Recorder<Int64>()
    let request = bench.session.request("http://a.test/x").downloadProgress(queue: .global()) {
      moved.add($0.completedUnitCount)
    }
    let response = await request.validate().end()
    #expect(response.error == nil && response.data?.count == 10)
    #expect(await moved.wait(for: 1) == [10])
  }

  @Test func aHandlerMayRefuseACachedHead() async {
    let bench = CacheBench(FakeTransport(.cacheable("one", "max-age=60")))
    _ = await bench.get()
    let request = bench.session.request("http://a.test/x").onHTTPResponse(on: .global()) {
      (_: HTTPURLResponse, completion: @escaping @Sendable (Request.ResponseDisposition) -> Void) in
      completion(.cancel)
    }
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
  }

  @Test func aSuspendedRequestGetsItsAnswerWhenItGoesOn() async {
    let bench = CacheBench(FakeTransport(.cacheable("one", "max-age=60")))
    _ = await bench.get()
    let request = bench.session.request("http://a.test/x", shouldAutomaticallyResume: false)
    let done = Latch()
    request.response(queue: .global()) { _ in done.open() }
    request.suspend()
    #expect(!done.isOpen)
    request.resume()
    await done.wait()
    #expect(request.data == Data("one".utf8) && bench.fake.requests.count == 1)
  }
}
