import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Cached response handlers", .timeLimit(.minutes(5)))
struct CachedResponseHandlerTests {
  // A separate folder, because Foundation's caches without a folder share one on disk.
  private let folder: TemporaryFolder
  private let cache: URLCache
  private let spy = EventSpy()

  init() throws {
    folder = try TemporaryFolder()
    cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: folder["cache"].path)
  }

  private func session(_ fake: FakeTransport, _ handler: (any CachedResponseHandler)? = nil) -> Session {
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache = cache
    return Session.retained(
      fake: fake, configuration: configuration,
      observers: SessionObservers(cachedResponseHandler: handler, eventMonitors: [spy]))
  }

  private func stored(_ url: String) throws -> Data? {
    cache.cachedResponse(for: try URLRequest(url: url, method: .get))?.data
  }

  @Test("The handler stores a response, refuses it or changes it")
  func behaviours() async throws {
    _ = await session(FakeTransport(), .cache).request("http://a.test/1").end()
    #expect(try stored("http://a.test/1") == Data("ok".utf8))
    #expect(spy.reported.contains("willCacheResponse 2"))
    _ = await session(FakeTransport(), .doNotCache).request("http://a.test/2").end()
    #expect(try stored("http://a.test/2") == nil)
    let other = ResponseCacher(
      behavior: .modify { _, proposed in
        CachedURLResponse(response: proposed.response, data: Data("other".utf8))
      })
    let request = session(FakeTransport(), .doNotCache).request("http://a.test/3").cacheResponse(using: other)
    #expect(await request.end().data == Data("ok".utf8))
    #expect(try stored("http://a.test/3") == Data("other".utf8))
  }

  @Test("Sessions that share a delegate use their own handlers", arguments: [false, true])
  func sharedDelegate(isReleased: Bool) async throws {
    let delegate = SessionDelegate()
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache = cache
    func session(_ handler: (any CachedResponseHandler)?) -> Session {
      Session(
        fake: FakeTransport(), configuration: configuration,
        observers: SessionObservers(delegate: delegate, cachedResponseHandler: handler))
    }
    let guarded = session(.doNotCache)
    var other: Session? = session(.cache)
    _ = await other?.request("http://a.test/other").end()
    #expect(try stored("http://a.test/other") == Data("ok".utf8))
    if isReleased { other = nil }
    _ = await guarded.request("http://a.test/guarded").end()
    #expect(try stored("http://a.test/guarded") == nil)
    #expect((other == nil) == isReleased)
  }

  @Test("A later handler of a request replaces its earlier one")
  func replacement() async throws {
    let request = session(FakeTransport()).request("http://a.test/4").cacheResponse(using: .doNotCache)
      .cacheResponse(using: .cache)
    #expect(await request.end().data == Data("ok".utf8))
    #expect(try stored("http://a.test/4") == Data("ok".utf8))
  }

  @Test("A response that is not cacheable is not passed to the handler") func uncacheableResponse()
    async throws
  {
    let fake = FakeTransport { _, _ in .status(200, "x", headers: [("Cache-Control", "no-store")]) }
    _ = await session(fake, .cache).request("http://a.test/no-store").end()
    #expect(try stored("http://a.test/no-store") == nil)
    #expect(!spy.reported.contains { $0.hasPrefix("willCache") })
  }

  @Test("A response is not stored with a status that no server sends", arguments: [false, true])
  func impossibleStatus(isOurs: Bool) async throws {
    let configuration = URLSessionConfiguration.af.default
    configuration.urlCache =
      isOurs ? HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: folder["ours"]) : cache
    let handler = ResponseCacher(
      behavior: .modify { _, proposed in
        let url = proposed.response.url ?? URL(fileURLWithPath: "/")
        return HTTPURLResponse(url: url, statusCode: -1, httpVersion: nil, headerFields: nil)
          .map { CachedURLResponse(response: $0, data: proposed.data) }
      })
    let session = Session.retained(
      fake: FakeTransport(), configuration: configuration,
      observers: SessionObservers(cachedResponseHandler: handler))
    #expect(await session.request("http://a.test/1").end().data == Data("ok".utf8))
    (configuration.urlCache as? HTTPCache)?.settle()
    let request = try URLRequest(url: "http://a.test/1", method: .get)
    #expect(configuration.urlCache?.cachedResponse(for: request) == nil)
  }

  @Test("A response under other trust settings is not written to a file", arguments: [true, false])
  func ownTrust(isOwn: Bool) async throws {
    let own = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: folder["ours"])
    var options = TransportOptions()
    if isOwn { options.trustStore = .file("/nowhere") }
    let session = Session.retained(
      fake: FakeTransport(.cacheable("own", "max-age=60")), configuration: .cached(by: own), options: options,
      observers: SessionObservers(cachedResponseHandler: .cache))
    #expect(await session.request("http://a.test/").end().data == Data("own".utf8))
    own.settle()
    #expect(own.currentMemoryUsage > 0 && (own.currentDiskUsage == 0) == isOwn)
  }

  @Test("A program finds the response of an https URL") func secureURL() async throws {
    for url in ["https://a.test/1", "https://a.test:443/2", "http://a.test:80/3"] {
      _ = await session(FakeTransport(), .cache).request(url).end()
      #expect(
        try stored(url.replacing(":443", with: "").replacing(":80", with: "")) == Data("ok".utf8), "\(url)")
    }
  }

  @Test("A response that a program has stored is as old as its Date says", arguments: [0, 7200, nil])
  func foreignResponse(age: TimeInterval?) async throws {
    var fields = ["Cache-Control": "max-age=3600"]
    if let age {
      fields["Date"] = HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970 - age)).text
    }
    let url = try #require(URL(string: "http://a.test/foreign"))
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
    cache.storeCachedResponse(
      CachedURLResponse(response: response, data: Data("stored".utf8)), for: URLRequest(url: url))
    let fake = FakeTransport()
    let data = await session(fake).request(url).end().data
    #expect(data == Data((age == 0 ? "stored" : "ok").utf8) && fake.requests.count == (age == 0 ? 0 : 1))
  }

  @Test("A response is stored under its URL with the query") func query() async throws {
    let fake = FakeTransport { request, _ in
      .status(200, request.url, headers: [("Cache-Control", "max-age=600")])
    }
    let session = session(fake, .cache)
    for url in ["http://a.test/q?x=1", "http://a.test/q?x=2", "https://a.test/q?x=1"] {
      #expect(await session.request(url).end().data == Data(url.utf8))
    }
    // Foundation's lookup ignores the query and would return one of the others.
    #expect(try stored("http://a.test/q?x=3") == nil)
    #expect(await session.request("http://a.test/q?x=2").end().data == Data("http://a.test/q?x=2".utf8))
    #expect(fake.requests.count == 3)
  }

  @Test("A question mark in the query belongs to the URL of a stored response, as well as an escaped one")
  func laterQuestionMark() async throws {
    let fake = FakeTransport { request, _ in
      .status(200, request.url, headers: [("Cache-Control", "max-age=600")])
    }
    let session = session(fake, .cache)
    let urls = ["http://a.test/q?x=1?y=1", "http://a.test/q?x=2?y=1", "http://a.test/q?x=2?y=2"]
    for url in urls + urls { #expect(await session.request(url).end().data == Data(url.utf8), "\(url)") }
    #expect(fake.requests.count == 3)
    #expect(try stored("http://a.test/q?x=3?y=1") == nil)
    // In the path, the mark is not the beginning of a query.
    let escaped = "http://a.test/q%3Fx=1?y=1"
    #expect(await session.request(escaped).end().data == Data(escaped.utf8))
    #expect(fake.requests.count == 4)
  }
}
