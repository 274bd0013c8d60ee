import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("The cache before a real server", .timeLimit(.minutes(5))) struct CacheOnServerTests {
  private let folder: TemporaryFolder
  private let server: HTTPTestServer

  init() throws {
    folder = try TemporaryFolder()
    server = try HTTPTestServer()
  }

  /// Returns a session with a new cache in the folder, as another run of a program would have it.
  private func session(memory: Int = 1 << 20, options: TransportOptions = TransportOptions()) -> (
    Session, HTTPCache
  ) {
    let cache = HTTPCache(memoryCapacity: memory, diskCapacity: 1 << 24, directory: folder["cache"])
    return (Session.real(configuration: .cached(by: cache), options: options), cache)
  }

  private func get(_ path: String, _ session: Session) async -> CacheFixture.Received {
    CacheFixture.Received(await session.request(server.url(path)).end())
  }

  @Test("A fresh response is served from memory and from disk") func freshResponse() async {
    let (first, cache) = session()
    let original = await get("/cache/600?x=1", first)
    #expect(original.hops == "n")
    let again = await get("/cache/600?x=1", first)
    #expect(again.hops == "c" && again.body == original.body)
    #expect(await get("/cache/600?x=2", first).hops == "n")
    cache.settle()
    let (second, _) = session(memory: 0)
    let later = await get("/cache/600?x=1", second)
    #expect(later.hops == "c" && later.body == original.body && later.fields["Age"] != nil)
    #expect(later.fields["Content-Type"] == original.fields["Content-Type"])
    #expect(server.requestCount == 2)
  }

  @Test("Responses to a session without proxies stay in its memory") func sessionWithoutProxies() async {
    var options = TransportOptions()
    options.proxy = .none
    let (first, cache) = session(options: options)
    #expect(await get("/cache/600", first).hops == "n")
    #expect(await get("/cache/600", first).hops == "c")
    cache.settle()
    #expect(cache.currentMemoryUsage > 0 && cache.currentDiskUsage == 0, "other programs could use a file")
    for options in [options, TransportOptions()] {
      let other = Session.real(configuration: .cached(by: cache), options: options)
      #expect(await get("/cache/600", other).hops == "n")
    }
    #expect(server.requestCount == 3)
  }

  @Test("Trailers of a response are not stored") func trailersAreNotStored() async {
    let (session, _) = session()
    server.enqueue(
      Reply(headers: [HTTPHeader(name: "Cache-Control", value: "max-age=1000")], body: .parts(["text"]))
        .with(trailers: [HTTPHeader(name: "X-End", value: "1")]))
    let original = await session.request(server.url("/trailers")).end()
    #expect(original.value == Data("text".utf8) && original.trailers == ["X-End": "1"])
    let again = await session.request(server.url("/trailers")).end()
    #expect(again.value == Data("text".utf8) && again.trailers == nil)
    #expect(again.response?.value(forHTTPHeaderField: "X-End") == nil)
    #expect(server.requestCount == 1)
  }

  @Test("A stale response is revalidated") func staleResponse() async {
    let (session, _) = session()
    let original = await get("/etag/v1", session)
    let again = await get("/etag/v1", session)
    #expect(original.hops == "n" && again.hops == "nc")
    #expect(again.status == 200 && again.body == original.body)
    #expect(server.requestCount == 2)
  }

  @Test("A stored response is decoded") func encodedResponse() async {
    let (session, _) = session()
    var all: [CacheFixture.Received] = []
    for _ in 0..<2 {
      let request = session.request(server.url("/gzip")) { $0.cachePolicy = .returnCacheDataElseLoad }
      all.append(CacheFixture.Received(await request.end()))
    }
    #expect(all.map(\.hops) == ["n", "c"] && all[0].body == all[1].body && all[1].body.hasPrefix("{"))
  }

  @Test("An incomplete response is not stored") func incompleteResponse() async {
    let (session, cache) = session()
    server.enqueue(.closeAfterBody(bytes: 5).with(header: "Cache-Control", value: "max-age=60"))
    #expect(await get("/", session).code == .networkConnectionLost)
    #expect(cache.currentMemoryUsage == 0)
  }

  @Test("Concurrent identical requests share a transfer") func sharedTransfer() async {
    var options = TransportOptions()
    options.sharesIdenticalRequests = true
    let (session, _) = session(options: options)
    let gate = Gate()
    server.enqueue(Reply.text("shared").held(by: gate))
    let bodies = Recorder<Data?>()
    for _ in 0..<3 {
      session.request(server.url("/")).response(queue: .global()) { bodies.add($0.data) }
    }
    let shared = session.core.sharedTransfers
    #expect(await eventually { shared.memberCount == 3 })
    gate.open()
    #expect(await bodies.wait(for: 3) == [Data?](repeating: Data("shared".utf8), count: 3))
    #expect(server.requestCount == 1)
  }

  @Test("Concurrent requests get their own responses") func concurrentRequests() async {
    let (session, _) = session()
    let server = server
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let url = server.url("/cache/600?n=\(number % 10)")
          let text = try? await session.request(url).serializingString().value
          return text?.contains("n=\(number % 10)") == true
        }
      }
      for await isRight in group { #expect(isRight) }
    }
    #expect(server.requestCount >= 10)
  }
}
