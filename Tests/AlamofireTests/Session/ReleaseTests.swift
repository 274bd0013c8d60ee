import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Nothing is kept after its end: neither by a cycle nor by a thread.
@Suite("What is released", .timeLimit(.minutes(1)))
struct ReleaseTests {
  /// Weak references to everything of one request.
  struct Traces {
    weak var session: Session?
    weak var sessionCore: SessionCore?
    weak var request: DataRequest?
    weak var core: RequestCore?
    weak var captured: Token?

    var areGone: Bool { request == nil && core == nil && captured == nil }
    var allAreGone: Bool { areGone && session == nil && sessionCore == nil }
  }

  final class Token: Sendable {}

  enum Ending: CaseIterable { case completed, cancelled, failed, retried, held }

  @Test("By the real engine", arguments: Ending.allCases)
  func engine(ending: Ending) async throws {
    let server = try HTTPTestServer()
    let traces = await run(ending, server)
    #expect(await eventually { traces.areGone })
    #expect(await eventually { traces.session == nil && traces.sessionCore == nil })
  }

  private func run(_ ending: Ending, _ server: HTTPTestServer) async -> Traces {
    let token = Token()
    let interceptor = ending == .retried ? SpyInterceptor(retries: 1) : nil
    let session = Session(interceptor: interceptor)
    switch ending {
    case .completed, .held: break
    case .cancelled: server.enqueue(.stall)
    case .failed: server.enqueue(.reset)
    case .retried: server.enqueue(.status(500))
    }
    let request = session.request(server.url("/bytes/100")).validate { [token] _, response, _ in
      withExtendedLifetime(token) {}
      return response.statusCode == 200 ? .success(()) : .failure(TestError())
    }
    request.downloadProgress(queue: .global()) { [token] _ in withExtendedLifetime(token) {} }
    if ending == .held {
      request.onHTTPResponse(on: .global()) { _, decide in decide(.allow) }
    }
    request.responseString(queue: .global()) { [token] _ in withExtendedLifetime(token) {} }
    let task = request.serializingData()
    if ending == .cancelled {
      _ = try? await server.takeRequest()
      request.cancel()
    }
    _ = await task.response
    return Traces(
      session: session, sessionCore: session.core, request: request, core: request.core, captured: token)
  }

  @Test func releasingTheSessionReleasesWhatItsRequestsHold() async throws {
    let server = try HTTPTestServer(routes: .none.adding("/**") { _, _ in .stall })
    func begin() async throws -> Traces {
      let token = Token()
      let session = Session()
      let request = session.request(server.url("/"))
      request.response(queue: .global()) { [token] _ in withExtendedLifetime(token) {} }
      _ = try await server.takeRequest()
      return Traces(
        session: session, sessionCore: session.core, request: request, core: request.core, captured: token)
    }
    let traces = try await begin()
    #expect(await eventually { traces.allAreGone })
  }

  @Test func aRequestThatNobodyStartedIsReleased() async {
    func make() -> Traces {
      let token = Token()
      let session = Session.kept(fake: FakeTransport(), startRequestsImmediately: false)
      let request = session.request("http://a.test/")
      request.response { [token] _ in withExtendedLifetime(token) {} }
      return Traces(session: nil, sessionCore: nil, request: request, core: request.core, captured: token)
    }
    let traces = make()
    #expect(await eventually { traces.areGone })
  }

  @Test func validatedRequestsOfAllKindsAreReleased() async {
    let session = Session.kept(fake: FakeTransport())
    func run() async -> [PipelineWalk.Traces] {
      let data = session.request("http://a.test/").validate().validate { _, _, _ in .success(()) }
      let download = session.download("http://a.test/").validate().validate { _, _, _ in .success(()) }
      let stream = session.streamRequest("http://a.test/").validate().validate { _, _ in .success(()) }
      _ = await data.serializingData().response
      if let file = await download.serializingDownloadedFileURL().response.fileURL {
        try? FileManager.default.removeItem(at: file)
      }
      for await _ in stream.streamTask().streamingData() {}
      return [data, download, stream].map { PipelineWalk.Traces(request: $0, core: $0.core) }
    }
    let traces = await run()
    #expect(await eventually { traces.allSatisfy(\.isGone) }, "left: \(traces.compactMap(\.left))")
  }

  @Test func aTaskThatNobodyAwaitsIsReleasedAfterItsEnd() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    func begin() -> Traces {
      let request = session.request(server.url("/get"))
      _ = request.serializingString()
      return Traces(session: nil, sessionCore: nil, request: request, core: request.core, captured: nil)
    }
    let traces = begin()
    _ = try await server.takeRequest()
    #expect(await eventually { traces.areGone })
    #expect(session.core.activeCount == 0)
  }
}
