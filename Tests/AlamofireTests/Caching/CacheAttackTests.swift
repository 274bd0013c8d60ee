import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// Attempts to get a wrong response or a secret from the cache, or to crash it.
@Suite("Attacks on the cache", .timeLimit(.minutes(5))) struct CacheAttackTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func request(_ path: String = "x") throws -> URLRequest {
    try URLRequest(url: "http://a.test/\(path)", method: .get)
  }

  private func onDisk(_ fake: FakeTransport) -> (HTTPCache, Session) {
    let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 24, directory: folder["cache"])
    return (cache, Session.retained(fake: fake, configuration: .cached(by: cache)))
  }

  @Test("A stored response whose head exceeds the limit of a request does not answer it")
  func largeHead() async {
    let fields = ("X-Long", String(repeating: "x", count: 3_000))
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60", tag: nil, fields), .cacheable("two", "max-age=60")))
    func get(limit: Int) async -> String {
      let request = fixture.session.request("http://a.test/x")
        .transportOptions { $0.headerSizeLimit = limit }
      return CacheFixture.Received(await request.end()).description
    }
    #expect(await get(limit: 10_000) == "200 one n")
    #expect(await get(limit: 10_000) == "200 one c")
    #expect(await get(limit: 1_000) == "200 two n", "the server's response would have been refused")
    #expect(fixture.fake.requests.count == 2)
  }

  @Test("Indices of a stored body start at zero") func indicesOfStoredBodies() async throws {
    let (first, writer) = onDisk(FakeTransport(.cacheable("0123456789", "max-age=60")))
    _ = await writer.request(try request()).end()
    first.settle()
    let (second, reader) = onDisk(FakeTransport())
    let fromFile = try #require(await reader.request(try request()).end().data)
    #expect(fromFile.startIndex == 0 && fromFile == Data("0123456789".utf8))
    let shown = try #require(second.cachedResponse(for: try request()))
    #expect(shown.data.startIndex == 0)
    var partial = try request()
    partial.setValue("bytes=2-4", forHTTPHeaderField: "Range")
    let part = try #require(await reader.request(partial).end().data)
    #expect(part.startIndex == 0 && part == Data("234".utf8))
  }

  @Test("The limit of the body size applies to stored responses") func sizeLimitOfStoredBodies() async throws
  {
    let fixture = CacheFixture(
      FakeTransport { _, index in .cacheable("0123456789", "max-age=60", tag: "\(index)") })
    _ = await fixture.get()
    func get(_ limit: Int64, _ change: (inout URLRequest) -> Void = { _ in }) async throws
      -> CacheFixture.Received
    {
      var request = try request()
      change(&request)
      let limited = fixture.session.request(request).transportOptions { $0.bodySizeLimit = limit }
      return CacheFixture.Received(await limited.end())
    }
    #expect(try await get(10).hops == "c")
    // The request is sent, and the transport refuses the response.
    #expect(try await get(9).hops == "n")
    #expect(try await get(9) { $0.setValue("bytes=0-3", forHTTPHeaderField: "Range") }.hops == "c")
    #expect(try await get(9) { $0.cachePolicy = .returnCacheDataDontLoad }.code == .resourceUnavailable)
    fixture.clock.advance(100)
    #expect(try await get(9).hops == "n")
    #expect(fixture.fake.requests.last?.value("If-None-Match") == nil)
  }

  @Test("A response from a private address is not used by requests that refuse such addresses")
  func privateAddresses() async {
    let fixture = CacheFixture(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    func get(_ refuses: Bool) async -> String {
      let request = fixture.session.request("http://a.test/x")
        .transportOptions { $0.refusesPrivateAddresses = refuses }
      return CacheFixture.Received(await request.end()).description
    }
    #expect(await get(false) == "200 0 n")
    #expect(await get(true) == "200 1 n")
    #expect(await get(false) == "200 0 c")
    #expect(await get(true) == "200 1 c")
  }

  @Test("A background revalidation stores its cookies") func cookiesOfRevalidation() async throws {
    let configuration = URLSessionConfiguration.isolated
    configuration.urlCache = HTTPCache(clock: { 1_800_000_000 })
    let fake = FakeTransport(
      .cacheable("one", "max-age=0, stale-while-revalidate=60", tag: "1"),
      .status(304, headers: [("Set-Cookie", "fresh=1")]))
    let session = Session.retained(fake: fake, configuration: configuration)
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    _ = await session.request("http://a.test/x").end()
    #expect(CacheFixture.Received(await session.request("http://a.test/x").end()).description == "200 one c")
    #expect(await eventually { storage.cookies?.map(\.name) == ["fresh"] })
  }

  @Test("A failed revalidation does not replace the stale response") func failedRevalidation() async {
    let gone = Latch()
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=600, stale-if-error=600", tag: "1"),
        .status(503, "busy", headers: [("Cache-Control", "max-age=60")]).held(by: gone)))
    _ = await fixture.get()
    fixture.clock.advance(70)
    #expect(await fixture.get().description == "200 one c")
    let caching = fixture.session.core.cache
    gone.open()
    let key = CacheKey("http://a.test/x") ?? CacheKey("", Origin(scheme: "", host: "", port: nil))
    // A new revalidation can begin only after the end of the first one.
    #expect(
      await eventually {
        guard caching.beginRefreshing(key) else { return false }
        caching.endRefreshing(key)
        return true
      })
    #expect(await fixture.get().body == "one")
  }

  @Test("One head is delivered although a revalidation breaks off") func brokenRevalidation() async {
    var broken = FakeReply.cacheable("two", "max-age=60", tag: "2")
    broken.failure = TransportFailure(.connectionLost, "lost")
    let reply = broken
    let fixture = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=600", tag: "1")) { _, _ in reply })
    _ = await fixture.get()
    fixture.clock.advance(70)
    let heads = Recorder<String>()
    let request = fixture.session.request("http://a.test/x").onHTTPResponse(on: .global()) { response in
      heads.add(response.headers["ETag"] ?? "")
    }
    let response = await request.end()
    #expect(heads.values == ["\"2\""] && response.error != nil)
    // The result does not depend on observers.
    #expect(await fixture.get().code == .networkConnectionLost)
    // If there is no head, the stored response is used.
    let lost = CacheFixture(
      FakeTransport(.cacheable("one", "max-age=60, stale-if-error=600", tag: "1")) { _, _ in
        .failure(.connectionLost)
      })
    _ = await lost.get()
    lost.clock.advance(70)
    #expect(await lost.get().body == "one")
  }

  @Test("A wrong clock does not disable the cache") func wrongClock() async {
    let fixture = CacheFixture(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    fixture.clock.advance(1_000_000)
    _ = await fixture.get()
    _ = await fixture.get(method: .post)
    fixture.cache.removeAllCachedResponses()
    _ = await fixture.get("y")
    fixture.clock.advance(-1_000_000)
    for path in ["x", "y"] {
      _ = await fixture.get(path)
      #expect(await fixture.get(path).hops == "c", "\(path)")
    }
  }

  @Test("A response that varies by Cookie is not used with other cookies") func varyCookie() async throws {
    let configuration = URLSessionConfiguration.isolated
    configuration.urlCache = HTTPCache(clock: { 1_800_000_000 })
    let fake = FakeTransport { request, _ in
      .cacheable(request.value("Cookie") ?? "nobody", "max-age=60", tag: nil, ("vary", "accept,COOKIE"))
    }
    let session = Session.retained(fake: fake, configuration: configuration)
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    for (user, count) in [("ada", 1), ("bob", 2), ("ada", 2), ("bob", 2)] {
      let properties: [HTTPCookiePropertyKey: Any] = [
        .name: "user", .value: user, .domain: "a.test", .path: "/",
      ]
      storage.setCookie(try #require(HTTPCookie(properties: properties)))
      let got = CacheFixture.Received(await session.request("http://a.test/x").end())
      #expect(got.body == "user=\(user)" && fake.requests.count == count)
    }
    storage.removeCookies(since: .distantPast)
    #expect(CacheFixture.Received(await session.request("http://a.test/x").end()).body == "nobody")
  }

  @Test("The request time is the start of the request") func requestTime() {
    func requestTime(start: Double, microseconds: Int64) -> Int64 {
      var values = TransferMetrics.Values()
      values.start = start
      values.end = microseconds
      return WireResponse(
        head: ResponseHead(status: 200), body: nil, metrics: TransferMetrics(values: values)
      )
      .requestTime(1_000)
    }
    #expect(requestTime(start: 999.9, microseconds: 300_000) == 999)
    #expect(requestTime(start: 1_000.1, microseconds: 300_000) == 1_000)
    #expect(requestTime(start: 997.9, microseconds: 2_300_000) == 997)
    // If the clock was changed, the start is unknown.
    for start in [0, 5_000, -Double.infinity, Double.nan] {
      #expect(requestTime(start: start, microseconds: 2_300_000) == 998)
    }
  }

  // MARK: Files

  @Test(
    "A file that the cache did not write is not read",
    arguments: ["link", "folder", "pipe", "hole", "nobody's"])
  func foreignFiles(kind: String) async throws {
    let (first, writer) = onDisk(FakeTransport(.cacheable("one", "max-age=60")))
    _ = await writer.request(try request()).end()
    first.settle()
    let path = folder["cache"].path
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: path).first)
    let file = "\(path)/\(name)"
    let (second, reader) = onDisk(FakeTransport(.text("two")))
    #expect(second.currentDiskUsage > 0, "the folder has been listed")
    switch kind {
    case "link":
      let other = folder["other"].path
      #expect(rename(file, other) == 0 && symlink(other, file) == 0)
    case "folder": #expect(unlink(file) == 0 && mkdir(file, 0o700) == 0)
    case "pipe": #expect(unlink(file) == 0 && mkfifo(file, 0o600) == 0)
    case "hole": #expect(truncate(file, 1 << 43) == 0)
    default: #expect(chmod(file, 0) == 0 || true)
    }
    let got = CacheFixture.Received(await reader.request(try request()).end())
    #expect(got.body == (kind == "nobody's" && geteuid() == 0 ? "one" : "two"))
    second.settle()
  }

  @Test("A folder that was removed is created again") func removedFolder() async throws {
    let (cache, session) = onDisk(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    _ = await session.request(try request()).end()
    cache.settle()
    try FileManager.default.removeItem(at: folder["cache"])
    // The index in memory knows the files, which can no longer be read.
    #expect(await session.request(try request()).end().data == Data("0".utf8))
    cache.memoryCapacity = 0
    #expect(await session.request(try request()).end().data == Data("1".utf8))
    cache.settle()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder["cache"].path).count == 1)
    let (_, other) = onDisk(FakeTransport(.text("two")))
    #expect(await other.request(try request()).end().data == Data("1".utf8))
  }

  @Test("A folder that another user can write to is not used") func foreignFolder() async throws {
    let (cache, session) = onDisk(FakeTransport(.cacheable("secret", "max-age=60")))
    #expect(cache.currentDiskUsage == 0, "there was no folder yet")
    try FileManager.default.createDirectory(at: folder["cache"], withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder["cache"].path)
    _ = await session.request(try request()).end()
    cache.settle()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder["cache"].path).isEmpty)
    #expect(await session.request(try request()).end().data == Data("secret".utf8))
  }

  @Test("Any capacity is accepted", arguments: [Int.min, -1, 0, 1, 4096, Int.max])
  func capacities(capacity: Int) async throws {
    let cache = HTTPCache(memoryCapacity: capacity, diskCapacity: capacity, directory: folder["cache"])
    let session = Session.retained(
      fake: FakeTransport { _, _ in .cacheable("one", "max-age=60") }, configuration: .cached(by: cache))
    for _ in 0..<3 { #expect(await session.request(try request()).end().data == Data("one".utf8)) }
    cache.settle()
    // A response may use a quarter of the capacity, and files use whole blocks.
    #expect((cache.currentMemoryUsage > 0) == (capacity >= 4096))
    #expect((cache.currentDiskUsage > 0) == (capacity == .max))
    cache.memoryCapacity = capacity
    cache.diskCapacity = capacity
    cache.removeAllCachedResponses()
    #expect(cache.currentDiskUsage == 0 && cache.memoryCapacity == max(0, capacity))
  }

  @Test("A full disk does not fail requests") func fullDisk() async throws {
    struct Full: EntryFiles {
      var location: String { "/full" }
      func list() -> [EntryFile]? { [] }
      func read(_ name: String) -> EntryReading { .missing }
      func write(_ name: String, _ bytes: Data) -> Bool { false }
      func remove(_ name: String) -> Bool { true }
      func touch(_ name: String) {}
    }
    let cache = HTTPCache(memoryCapacity: 0, diskCapacity: 1 << 24, files: { Full() }, clock: nil)
    let session = Session.retained(
      fake: FakeTransport { _, index in .cacheable("\(index)", "max-age=60") },
      configuration: .cached(by: cache))
    for index in 0..<3 {
      #expect(await session.request(try request()).end().data == Data("\(index)".utf8))
      cache.settle()
      #expect(cache.currentDiskUsage == 0)
    }
  }
}
