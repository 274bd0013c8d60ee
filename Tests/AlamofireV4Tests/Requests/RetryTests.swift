import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Adapters and retriers", .timeLimit(.minutes(1))) struct RetryTests {
  private struct Own: Error {}

  /// Counts how often it is asked; for its first calls it throws.
  private final class CountingAdapter: RequestAdapter {
    let calls = Notes<URLRequest>()
    let failures: Int
    init(failures: Int = 0) { self.failures = failures }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      calls.add(urlRequest)
      if calls.count <= failures { throw Own() }
      var urlRequest = urlRequest
      urlRequest.setValue("\(calls.count)", forHTTPHeaderField: "X-Attempt")
      return urlRequest
    }
  }

  private final class CountingRouter: URLRequestConvertible {
    let calls = Notes<Int>()
    let url: String
    init(_ url: String) { self.url = url }

    func asURLRequest() throws -> URLRequest {
      calls.add(1)
      return try URLRequest(url: url, method: .get)
    }
  }

  private let server: HTTPTestServer
  private let manager = SessionManager.solitary()

  init() throws { server = try HTTPTestServer() }

  @Test func aRetryAsksTheAdapterButNotTheRouter() async throws {
    let (adapter, router) = (CountingAdapter(), CountingRouter(server.url("/")))
    let retrier = ScriptedRetrier { _, count in (count < 2, 0.001) }
    manager.adapter = adapter
    manager.retrier = retrier
    server.enqueue(.status(500), .status(500), .text("fine"))
    let request = manager.request(router).validate()
    let response = await request.text()
    #expect(response.value == "fine" && request.retryCount == 2)
    #expect(router.calls.count == 1 && adapter.calls.count == 3)
    // The adapter begins with the same request each time.
    #expect(adapter.calls.all.allSatisfy { $0.value(forHTTPHeaderField: "X-Attempt") == nil })
    #expect(server.recordedRequests.map { $0.header("X-Attempt") } == ["1", "2", "3"])
    #expect(retrier.asked.all.map(\.count) == [0, 1] && retrier.asked.all.map(\.status) == [500, 500])
    #expect(retrier.asked.all.allSatisfy { $0.request === request })
    #expect(retrier.asked.all.allSatisfy { ($0.error as? AFError)?.responseCode == 500 })
  }

  @Test func aRefusedRetryLeavesTheError() async {
    let retrier = ScriptedRetrier { _, _ in (false, 0) }
    manager.retrier = retrier
    let response = await manager.request(server.url("/status/401")).validate().ended()
    #expect((response.error as? AFError)?.responseCode == 401 && retrier.asked.count == 1)
    #expect(server.requestCount == 1)
  }

  @Test func theRetrierSeesErrorsOfTheNetworkOnce() async {
    let retrier = ScriptedRetrier { _, _ in (false, 0) }
    manager.retrier = retrier
    server.enqueue(.closeBeforeReply, .closeBeforeReply)
    let response = await manager.request(server.url("/"), method: .post).json()
    #expect(response.error is URLError)
    #expect(retrier.asked.count == 1 && retrier.asked.all.first?.error is URLError)
  }

  @Test func anAdaptersErrorArrivesUntouched() async {
    manager.adapter = CountingAdapter(failures: 1)
    let request = manager.request(server.url("/get"))
    let response = await request.ended()
    #expect(response.error is Own && server.requestCount == 0)
  }

  @Test func anAdaptersErrorMayBeRetried() async {
    let adapter = CountingAdapter(failures: 2)
    let retrier = ScriptedRetrier { error, _ in (error is Own, 0) }
    manager.adapter = adapter
    manager.retrier = retrier
    // Nobody keeps the request.
    let response = await manager.request(server.url("/get")).ended()
    #expect(response.error == nil && response.response?.statusCode == 200)
    #expect(adapter.calls.count == 3 && retrier.asked.count == 2 && server.requestCount == 1)
  }

  @Test func failingSerializersAreNotRetried() async {
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    server.enqueue(.text("no JSON"))
    let request = manager.request(server.url("/"))
    let (json, text) = (await request.json(), await request.text())
    #expect((json.error as? AFError)?.isResponseSerializationError == true && text.value == "no JSON")
    #expect(retrier.asked.count == 0 && server.requestCount == 1)
  }

  @Test func aForgottenCompletionEndsTheRequestWithItsError() async {
    struct Forgetful: RequestRetrier {
      func should(
        _ manager: SessionManager, retry request: Request, with error: any Error,
        completion: @escaping RequestRetryCompletion
      ) {}
    }
    manager.retrier = Forgetful()
    let response = await manager.request(server.url("/status/500")).validate().ended()
    #expect((response.error as? AFError)?.responseCode == 500)
  }

  @Test func aDownloadIsRetriedFromTheBeginning() async throws {
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(503), .text("fine"))
    let folder = try Folder()
    let target = folder.file("a")
    let response = await manager.download(server.url("/")) { _, _ in (target, [.removePreviousFile]) }
      .validate().ended()
    #expect(response.error == nil && response.destinationURL == target)
    #expect(try String(contentsOf: target, encoding: .utf8) == "fine")
  }
}
