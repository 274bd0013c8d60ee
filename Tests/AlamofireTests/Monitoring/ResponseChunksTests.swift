import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Chunks of a body reported to observers", .timeLimit(.minutes(5)))
struct ResponseChunksTests {
  private static let chunks = FakeReply(
    chunks: ["one", "two", "three"].map { Data($0.utf8) })

  private func watcher(_ chunks: Recorder<String>) -> ClosureEventMonitor {
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "watcher"))
    monitor.dataTaskDidReceiveData = { _, _, data in chunks.add(String(decoding: data, as: UTF8.self)) }
    monitor.taskDidComplete = { _, _, _ in chunks.add("end") }
    return monitor
  }

  @Test("A monitor receives a chunk before the body is complete") func monitorEvents() async throws {
    let gates = [Gate(), Gate()]
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.parts("one", .gate(gates[0]), "two", .gate(gates[1]), "three"))
    let chunks = Recorder<String>()
    let request = Session.real().request(server.url("/")).transferMonitor(watcher(chunks))
    async let response = request.end()
    #expect(await chunks.wait(for: 1) == ["one"])
    gates[0].open()
    #expect(await chunks.wait(for: 2) == ["one", "two"])
    gates[1].open()
    #expect(await response.data == Data("onetwothree".utf8))
    #expect(await chunks.wait(for: 4) == ["one", "two", "three", "end"])
    #expect(request.data == Data("onetwothree".utf8))
  }

  @Test("A delegate receives each chunk in order") func delegate() async {
    final class Listener: SessionDelegate, @unchecked Sendable {
      let reported = Recorder<String>()
      override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        reported.add(String(decoding: data, as: UTF8.self))
      }
      override func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
      ) {
        reported.add("end")
      }
    }
    let listener = Listener()
    let session = Session.retained(
      fake: FakeTransport(Self.chunks), observers: SessionObservers(delegate: listener))
    #expect(await session.request("http://a.test/").end().data == Data("onetwothree".utf8))
    #expect(listener.reported.values == ["one", "two", "three", "end"])
  }

  @Test("A body without observers is collected by the transport") func unobservedBody() async {
    let fake = FakeTransport(Self.chunks, Self.chunks)
    // Notifications do not report chunks.
    let observers = SessionObservers(eventMonitors: [AlamofireNotifications()])
    let session = Session.retained(fake: fake, observers: observers)
    _ = await session.request("http://a.test/").end()
    _ = await session.request("http://a.test/").transferMonitor(EventSpy()).end()
    #expect(fake.requests.map { $0.sink == nil } == [true, false])
  }

  @Test("A monitor that is added late receives one chunk") func lateMonitor() async {
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(Self.chunks.held(by: gate, reached: reached))
    let chunks = Recorder<String>()
    let request = Session.retained(fake: fake).request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    request.transferMonitor(watcher(chunks))
    gate.open()
    #expect(await response.data == Data("onetwothree".utf8))
    #expect(await chunks.wait(for: 1).first == "onetwothree")
  }

  @Test("The body of a redirect that is followed is not reported") func followedRedirect() async {
    let moved = FakeReply.status(302, "moved", headers: [("Location", "/next")])
    let chunks = Recorder<String>()
    let session = Session.retained(fake: FakeTransport(moved, Self.chunks))
    let response = await session.request("http://a.test/").transferMonitor(watcher(chunks)).end()
    #expect(response.data == Data("onetwothree".utf8))
    #expect(await chunks.wait(for: 4) == ["one", "two", "three", "end"])
  }

  @Test("The body of a redirect that must not be followed is not reported") func refusedRedirect() async {
    let moved = FakeReply.status(302, "moved", headers: [("Location", "ftp://b.test/")])
    let chunks = Recorder<String>()
    let watched = await Session.retained(fake: FakeTransport(moved)).request("http://a.test/")
      .transferMonitor(watcher(chunks)).end()
    let unwatched = await Session.retained(fake: FakeTransport(moved)).request("http://a.test/").end()
    #expect(watched.error != nil)
    #expect(watched.data == nil && unwatched.data == nil)
    #expect(await chunks.wait(for: 1) == ["end"])
  }

  @Test("A retry reports the body from its beginning") func retry() async {
    let broken = FakeReply(chunks: [Data("half".utf8)], failure: TransportFailure(.connectionLost, "lost"))
    let chunks = Recorder<String>()
    let session = Session.retained(
      fake: FakeTransport(broken, Self.chunks), interceptor: SpyInterceptor(retries: 1))
    let response = await session.request("http://a.test/").transferMonitor(watcher(chunks)).end()
    #expect(response.data == Data("onetwothree".utf8))
    #expect(await chunks.wait(for: 6) == ["half", "end", "one", "two", "three", "end"])
  }

  @Test("An empty body is reported as no chunk and no data") func emptyBody() async {
    let chunks = Recorder<String>()
    let response = await Session.retained(fake: FakeTransport(.status(204))).request("http://a.test/")
      .transferMonitor(watcher(chunks)).end()
    #expect(response.data == nil)
    #expect(await chunks.wait(for: 1) == ["end"])
  }

  @Test("A body above the limit fails an observed request") func bodySizeLimit() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.bytes(100_000))
    var options = TransportOptions()
    options.bodySizeLimit = 1000
    let response = await Session.real(options: options).request(server.url("/")).transferMonitor(EventSpy())
      .end()
    #expect((response.error?.underlyingError as? URLError)?.code == .dataLengthExceedsMaximum)
    #expect(response.data == nil)
  }
}
