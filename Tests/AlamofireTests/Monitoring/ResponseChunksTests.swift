import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("The pieces of a body, told as they come", .timeLimit(.minutes(5)))
struct ResponseChunksTests {
  private static let pieces = FakeReply(
    chunks: ["one", "two", "three"].map { Data($0.utf8) })

  private func watcher(_ pieces: Recorder<String>) -> ClosureEventMonitor {
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "watcher"))
    monitor.dataTaskDidReceiveData = { _, _, data in pieces.add(String(decoding: data, as: UTF8.self)) }
    monitor.taskDidComplete = { _, _, _ in pieces.add("end") }
    return monitor
  }

  @Test func aMonitorIsToldOfAPieceWhileTheRestIsStillToCome() async throws {
    let gates = [Gate(), Gate()]
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.parts("one", .gate(gates[0]), "two", .gate(gates[1]), "three"))
    let pieces = Recorder<String>()
    let request = Session.real().request(server.url("/")).transferMonitor(watcher(pieces))
    async let response = request.end()
    #expect(await pieces.wait(for: 1) == ["one"])
    gates[0].open()
    #expect(await pieces.wait(for: 2) == ["one", "two"])
    gates[1].open()
    #expect(await response.data == Data("onetwothree".utf8))
    #expect(await pieces.wait(for: 4) == ["one", "two", "three", "end"])
    #expect(request.data == Data("onetwothree".utf8))
  }

  @Test func aDelegateIsToldOfEachPieceInOrder() async {
    final class Listener: SessionDelegate, @unchecked Sendable {
      let told = Recorder<String>()
      override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        told.add(String(decoding: data, as: UTF8.self))
      }
      override func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
      ) {
        told.add("end")
      }
    }
    let listener = Listener()
    let session = Session.kept(
      fake: FakeTransport(Self.pieces), watching: SessionWatching(delegate: listener))
    #expect(await session.request("http://a.test/").end().data == Data("onetwothree".utf8))
    #expect(listener.told.values == ["one", "two", "three", "end"])
  }

  @Test func whatNobodyListensToIsCollectedByTheTransport() async {
    let fake = FakeTransport(Self.pieces, Self.pieces)
    // Notifications tell nothing of bodies.
    let watching = SessionWatching(eventMonitors: [AlamofireNotifications()])
    let session = Session.kept(fake: fake, watching: watching)
    _ = await session.request("http://a.test/").end()
    _ = await session.request("http://a.test/").transferMonitor(EventSpy()).end()
    #expect(fake.requests.map { $0.sink == nil } == [true, false])
  }

  @Test func whoListensLateIsToldInOnePiece() async {
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(Self.pieces.held(by: gate, reached: reached))
    let pieces = Recorder<String>()
    let request = Session.kept(fake: fake).request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    request.transferMonitor(watcher(pieces))
    gate.open()
    #expect(await response.data == Data("onetwothree".utf8))
    #expect(await pieces.wait(for: 1).first == "onetwothree")
  }

  @Test func theBodyOfARedirectThatIsFollowedIsNotTold() async {
    let moved = FakeReply.status(302, "moved", headers: [("Location", "/next")])
    let pieces = Recorder<String>()
    let session = Session.kept(fake: FakeTransport(moved, Self.pieces))
    let response = await session.request("http://a.test/").transferMonitor(watcher(pieces)).end()
    #expect(response.data == Data("onetwothree".utf8))
    #expect(await pieces.wait(for: 4) == ["one", "two", "three", "end"])
  }

  @Test func aRedirectThatMayNotBeFollowedKeepsItsBody() async {
    let moved = FakeReply.status(302, "moved", headers: [("Location", "ftp://b.test/")])
    let pieces = Recorder<String>()
    let watched = await Session.kept(fake: FakeTransport(moved)).request("http://a.test/")
      .transferMonitor(watcher(pieces)).end()
    let unwatched = await Session.kept(fake: FakeTransport(moved)).request("http://a.test/").end()
    #expect(watched.error != nil)
    #expect(watched.data == Data("moved".utf8))
    #expect(watched.data == unwatched.data)
    #expect(await pieces.wait(for: 2) == ["moved", "end"])
  }

  @Test func aRetryBeginsTheBodyAnew() async {
    let broken = FakeReply(chunks: [Data("half".utf8)], failure: TransportFailure(.connectionLost, "lost"))
    let pieces = Recorder<String>()
    let session = Session.kept(
      fake: FakeTransport(broken, Self.pieces), interceptor: SpyInterceptor(retries: 1))
    let response = await session.request("http://a.test/").transferMonitor(watcher(pieces)).end()
    #expect(response.data == Data("onetwothree".utf8))
    #expect(await pieces.wait(for: 6) == ["half", "end", "one", "two", "three", "end"])
  }

  @Test func anEmptyBodyIsNoPieceAndNoData() async {
    let pieces = Recorder<String>()
    let response = await Session.kept(fake: FakeTransport(.status(204))).request("http://a.test/")
      .transferMonitor(watcher(pieces)).end()
    #expect(response.data == nil)
    #expect(await pieces.wait(for: 1) == ["end"])
  }

  @Test func aBodyAboveTheLimitIsAnErrorForAWatchedRequestToo() async throws {
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
