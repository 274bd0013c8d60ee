import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// A request shows its response as soon as the head is there, and not only at the end of the body.
@Suite("Responses whose body is under way", .timeLimit(.minutes(5)))
struct BegunResponseTests {
  enum Watched: CaseIterable {
    case nobody, monitor, progress, redirects
  }

  private let server: HTTPTestServer

  init() throws {
    let stalled = Reply.bytes(100_000).with(header: "X-Head", value: "seen")
    server = try HTTPTestServer(
      routes: .standard
        .adding("/stalled") { _, _ in stalled.with(effect: .stallAfterBody(bytes: 40_000)) }
        .adding("/silent") { _, _ in stalled.with(effect: .stallAfterBody(bytes: 0)) }
        .adding("/lead") { _, _ in .redirect(to: "/stalled") })
  }

  private func watch(_ request: DataRequest, _ watched: Watched) {
    switch watched {
    case .nobody: break
    case .monitor: request.eventMonitor(ClosureEventMonitor())
    case .progress: request.downloadProgress { _ in }
    case .redirects: request.redirect(using: .follow)
    }
  }

  @Test(
    "The response is there while the body is read", arguments: ["/stalled", "/silent", "/lead"],
    Watched.allCases)
  func response(path: String, watched: Watched) async throws {
    let request = Session.real().request(server.url(path))
    watch(request, watched)
    #expect(request.response == nil)
    async let end = request.end()
    #expect(await eventually { request.response != nil })
    let response = try #require(request.response)
    #expect(response.statusCode == 200)
    #expect(response.value(forHTTPHeaderField: "X-Head") == "seen")
    #expect(response.url?.absoluteString == server.url(path == "/lead" ? "/stalled" : path))
    #expect(request.response === response, "one object for all who ask")
    #expect(request.task?.response === response)
    #expect(request.description.hasSuffix("(200)"))
    #expect(request.metrics == nil && request.responseTrailers == nil)
    request.cancel()
    let ended = await end
    #expect(ended.error?.isExplicitlyCancelledError == true)
    #expect(ended.response?.value(forHTTPHeaderField: "X-Head") == "seen")
    #expect(request.response === ended.response)
  }

  @Test("Handlers of the head, the progress and the body see the response") func handlers() async throws {
    let session = Session.real()
    let statuses = Recorder<[Int?]>()
    let request = session.streamRequest(server.url("/stalled"))
    request.onHTTPResponse(on: .global()) { [unowned request] head, decide in
      statuses.add([head.statusCode, request.response?.statusCode])
      decide(.allow)
    }
    request.responseStream(on: .global()) { [unowned request] stream in
      guard case .stream = stream.event else { return }
      statuses.add([request.response?.statusCode])
    }
    #expect(await statuses.wait(for: 2).prefix(2) == [[200, 200], [200]])
    request.cancel()

    let progress = Recorder<Int?>()
    let download = session.download(server.url("/stalled"))
    download.downloadProgress(queue: .global()) { [unowned download] _ in
      progress.add(download.response?.statusCode)
    }
    download.response { _ in }
    #expect(await progress.wait(for: 1).first == 200)
    download.cancel()
  }

  @Test("A challenge that is answered is not shown") func challenge() async throws {
    let gate = Latch()
    let fake = FakeTransport(.challenge(), .text("ok").held(by: gate))
    let request = Session.retained(fake: fake).request("http://a.test/").authenticate(
      username: "a", password: "b")
    async let end = request.end()
    #expect(await eventually { fake.requests.count == 2 })
    #expect(request.response == nil)
    gate.open()
    #expect(await end.response?.statusCode == 200)
  }

  @Test("The response of a failed attempt is not shown as the next one's", arguments: [false, true])
  func retry(isMonitored: Bool) async throws {
    let gate = Latch()
    let fake = FakeTransport(
      .chunks(["part"], failure: .connectionLost), .text("ok").held(by: gate))
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      "http://a.test/")
    if isMonitored { request.eventMonitor(ClosureEventMonitor()) }
    async let end = request.end()
    #expect(await eventually { fake.requests.count == 2 })
    #expect(request.response == nil)
    #expect(request.lastTask?.response == nil)
    gate.open()
    #expect(await end.response?.statusCode == 200)
    #expect((request.firstTask?.response as? HTTPURLResponse)?.statusCode == 200)
  }
}
