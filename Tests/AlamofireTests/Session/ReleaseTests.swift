import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Objects are released after the end of a request: neither a cycle nor a thread retains them.
@Suite("Release of requests and sessions", .timeLimit(.minutes(5)))
struct ReleaseTests {
  /// Weak references to all objects of one request.
  struct Traces {
    weak var session: Session?
    weak var sessionCore: SessionCore?
    weak var request: DataRequest?
    weak var core: RequestCore?
    weak var captured: Token?

    var areGone: Bool { request == nil && core == nil && captured == nil }
    var allAreGone: Bool { areGone && session == nil && sessionCore == nil }
  }

  /// An object that the closures of a request capture.
  final class Token: Sendable {
    let releaseSignal: ReleaseSignal

    init(_ gone: Latch) { releaseSignal = ReleaseSignal(gone) }
  }

  private let gone = Latch()
  private let sessionGone = Latch()

  enum Ending: CaseIterable { case completed, cancelled, failed, retried, held }

  @Test("A request on the engine is released after its end", arguments: Ending.allCases)
  func engine(ending: Ending) async throws {
    let server = try HTTPTestServer()
    let traces = await run(ending, server)
    await gone.wait()
    await sessionGone.wait()
    #expect(traces.allAreGone)
  }

  private func run(_ ending: Ending, _ server: HTTPTestServer) async -> Traces {
    let token = Token(gone)
    let interceptor = ending == .retried ? SpyInterceptor(retries: 1) : nil
    let session = Session(
      interceptor: interceptor,
      redirectHandler: ReleaseSignalRedirector(releaseSignal: ReleaseSignal(sessionGone)))
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

  @Test("Releasing the session releases the objects of its requests") func session() async throws {
    let server = try HTTPTestServer(routes: .none.adding("/**") { _, _ in .stall })
    func begin() async throws -> Traces {
      let token = Token(gone)
      let session = Session(
        redirectHandler: ReleaseSignalRedirector(releaseSignal: ReleaseSignal(sessionGone)))
      let request = session.request(server.url("/")).validate(holding: token)
      request.response(queue: .global()) { [token] _ in withExtendedLifetime(token) {} }
      _ = try await server.takeRequest()
      return Traces(
        session: session, sessionCore: session.core, request: request, core: request.core, captured: token)
    }
    let traces = try await begin()
    await gone.wait()
    await sessionGone.wait()
    #expect(traces.allAreGone)
  }

  @Test("A request that was not started is released") func unstartedRequest() async {
    func make() -> Traces {
      let token = Token(gone)
      let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
      let request = session.request("http://a.test/").validate(holding: token)
      request.response { [token] _ in withExtendedLifetime(token) {} }
      return Traces(session: nil, sessionCore: nil, request: request, core: request.core, captured: token)
    }
    let traces = make()
    await gone.wait()
    #expect(traces.areGone)
  }

  @Test("Validated requests of all kinds are released") func validatedRequests() async {
    let session = Session.retained(fake: FakeTransport())
    let latches = (0..<3).map { _ in Latch() }
    func run() async -> [RandomRequestOperations.Traces] {
      let held = latches.map { ReleaseSignal($0) }
      let data = session.request("http://a.test/").validate().validate { [held = held[0]] _, _, _ in
        withExtendedLifetime(held) { .success(()) }
      }
      let download = session.download("http://a.test/").validate().validate { [held = held[1]] _, _, _ in
        withExtendedLifetime(held) { .success(()) }
      }
      let stream = session.streamRequest("http://a.test/").validate().validate { [held = held[2]] _, _ in
        withExtendedLifetime(held) { .success(()) }
      }
      _ = await data.serializingData().response
      if let file = await download.serializingDownloadedFileURL().response.fileURL {
        try? FileManager.default.removeItem(at: file)
      }
      for await _ in stream.streamTask().streamingData() {}
      return [data, download, stream].map { RandomRequestOperations.Traces(request: $0, core: $0.core) }
    }
    let traces = await run()
    for latch in latches { await latch.wait() }
    let areGone = traces.allSatisfy(\.isGone)
    #expect(areGone, "left: \(traces.compactMap(\.left))")
  }

  @Test("A task that is not awaited is released after its end") func unawaitedTask() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    func begin() -> Traces {
      let token = Token(gone)
      let request = session.request(server.url("/get")).validate(holding: token)
      _ = request.serializingString()
      return Traces(session: nil, sessionCore: nil, request: request, core: request.core, captured: token)
    }
    let traces = begin()
    _ = try await server.takeRequest()
    await gone.wait()
    #expect(traces.areGone)
    #expect(session.core.activeCount == 0)
  }
}

extension DataRequest {
  /// Holds the token as long as the core of the request exists.
  fileprivate func validate(holding token: ReleaseTests.Token) -> Self {
    validate { _, _, _ in withExtendedLifetime(token) { .success(()) } }
  }
}
