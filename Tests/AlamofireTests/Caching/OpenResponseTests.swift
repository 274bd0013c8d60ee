import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("The cache and unsafe requests with an open body", .timeLimit(.minutes(5))) struct OpenResponseTests {
  private static func server(answering status: Int = 200) -> FakeTransport {
    FakeTransport { request, index in
      request.method == "GET"
        ? .cacheable("\(index)", "max-age=600")
        : .status(status, "body", headers: [("Location", "/y")])
    }
  }

  @Test(
    "Stored responses are invalidated by the head of the response, and not by an error",
    arguments: [(200, "200 3 n", "200 4 n"), (201, "200 3 n", "200 4 n"), (500, "200 0 c", "200 1 c")])
  func openUnsafeResponse(status: Int, target: String, location: String) async {
    let fixture = CacheFixture(Self.server(answering: status))
    #expect(await fixture.get().description == "200 0 n")
    #expect(await fixture.get("y").description == "200 1 n")
    let post = OpenPost(fixture.session)
    async let posted = post.request.end()
    await post.headReceived()
    #expect(await fixture.get().description == target, "the target of the POST")
    #expect(await fixture.get("y").description == location, "the Location of its response")
    post.finish()
    #expect(await posted.response?.statusCode == status)
  }

  @Test("Responses that are stored while the body is open are invalidated at its end")
  func endOfUnsafeResponse() async {
    let fixture = CacheFixture(Self.server())
    let post = OpenPost(fixture.session)
    async let posted = post.request.end()
    await post.headReceived()
    for (path, description) in [("x", "200 1 n"), ("y", "200 2 n"), ("x", "200 1 c"), ("y", "200 2 c")] {
      #expect(await fixture.get(path).description == description, "\(path) is stored while the body is open")
    }
    post.finish()
    #expect(await posted.error == nil)
    #expect(await fixture.get().description == "200 3 n", "the target of the POST")
    #expect(await fixture.get("y").description == "200 4 n", "the Location of its response")
  }

  @Test(
    "They are invalidated as well if the body breaks off or the request is cancelled",
    arguments: [Request.ResponseDisposition.allow, .cancel])
  func brokenOpenResponse(disposition: Request.ResponseDisposition) async {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        guard request.method != "GET" else { return .cacheable("\(index)", "max-age=600") }
        var reply = FakeReply.status(200, "half")
        if disposition == .allow {
          reply.failure = TransportFailure(.connectionLost, "A failure of the script.")
        }
        return reply
      })
    let post = OpenPost(fixture.session, ending: disposition)
    async let posted = post.request.end()
    await post.headReceived()
    #expect(await fixture.get().description == "200 1 n")
    #expect(await fixture.get().description == "200 1 c", "it is stored while the body is open")
    post.finish()
    #expect(await posted.error != nil)
    #expect(await fixture.get().description == "200 2 n", "the POST may have changed the resource until then")
  }

  @Test("A response that is on its way at the end of the body is not stored") func overtakenByEnd() async {
    let (gate, reached) = (Latch(), Latch())
    let fixture = CacheFixture(
      FakeTransport(
        .status(200, "body"), FakeReply.cacheable("old", "max-age=600").held(by: gate, reached: reached)))
    let post = OpenPost(fixture.session)
    async let posted = post.request.end()
    await post.headReceived()
    async let early = fixture.get()
    await reached.wait()
    post.finish()
    #expect(await posted.error == nil)
    gate.open()
    #expect(await early.description == "200 old n")
    #expect(fixture.cache.currentMemoryUsage == 0, "it was requested before the end of the POST")
  }

  @Test("A response that is on its way when the head arrives is not stored") func overtakenByHead() async {
    let (gate, reached) = (Latch(), Latch())
    let fixture = CacheFixture(
      FakeTransport(FakeReply.cacheable("old", "max-age=600").held(by: gate, reached: reached)) { _, _ in
        .status(200, "body")
      })
    async let early = fixture.get()
    await reached.wait()
    let post = OpenPost(fixture.session)
    async let posted = post.request.end()
    await post.headReceived()
    gate.open()
    #expect(await early.description == "200 old n")
    #expect(fixture.cache.currentMemoryUsage == 0, "the POST has changed the resource")
    post.finish()
    #expect(await posted.error == nil)
  }

  @Test("Responses that are only in files are invalidated at once") func responsesInFiles() async throws {
    let folder = try TemporaryFolder()
    let cache = HTTPCache(memoryCapacity: 4_096, diskCapacity: 1 << 20, directory: folder["cache"])
    let body = String(repeating: "a", count: 2_000)
    let session = Session.retained(
      fake: FakeTransport(.cacheable(body, "max-age=600"), .ok), configuration: .cached(by: cache),
      observers: SessionObservers(eventMonitors: []))
    let get = try URLRequest(url: "http://a.test/x", method: .get)
    _ = await session.request(get).end()
    cache.settle()
    #expect(cache.currentMemoryUsage == 0 && cache.cachedResponse(for: get)?.data == Data(body.utf8))
    let fake = FakeTransport(.ok)
    _ = await Session.retained(fake: fake).request("http://a.test/x", method: .post).end()
    let post = try #require(fake.requests.first)
    // An invalidation in the background would find that the transfer has ended.
    SessionCache(.cached(by: cache)).invalidateEarly(by: post, ResponseHead(status: 200)) { true }
    #expect(cache.cachedResponse(for: get) == nil, "the handler of the head may send the next GET")
    #expect(try folder.names == ["cache"], "the folder is removed with its object")
  }

  @Test("Stored responses of a cache of the program are invalidated in the background")
  func waitingStore() async throws {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let session = Session.retained(
      fake: Self.server(), configuration: .cached(by: cache), observers: SessionObservers(eventMonitors: []))
    let get = try URLRequest(url: "http://a.test/x", method: .get)
    _ = await session.request(get).end()
    #expect(cache.cachedResponse(for: get) != nil)
    let post = OpenPost(session)
    async let posted = post.request.end()
    await post.headReceived()
    #expect(await eventually { cache.cachedResponse(for: get) == nil }, "the body of the POST is still open")
    _ = await session.request(get).end()
    #expect(cache.cachedResponse(for: get) != nil)
    post.finish()
    #expect(await posted.error == nil)
    #expect(cache.cachedResponse(for: get) == nil, "the end of the body removes it before the POST ends")
  }
}
