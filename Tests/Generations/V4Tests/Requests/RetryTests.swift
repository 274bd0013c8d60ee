import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Adapters and retriers", .timeLimit(.minutes(5))) struct RetryTests {
  private struct Own: Error {}

  /// Counts its calls, and throws at the calls with given numbers, which start at 1.
  private final class CountingAdapter: RequestAdapter {
    let calls = Notes<URLRequest>()
    let failures: ClosedRange<Int>
    init(failures: ClosedRange<Int> = 0...0) { self.failures = failures }

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
      calls.add(urlRequest)
      if failures.contains(calls.count) { throw Own() }
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
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  @Test("A retry calls the adapter but not the router") func calls() async throws {
    let (adapter, router) = (CountingAdapter(), CountingRouter(server.url("/")))
    let retrier = ScriptedRetrier { _, count in (count < 2, 0.001) }
    manager.adapter = adapter
    manager.retrier = retrier
    server.enqueue(.status(500), .status(500), .text("fine"))
    let request = manager.request(router).validate()
    let response = await request.text()
    #expect(response.value == "fine" && request.retryCount == 2)
    #expect(router.calls.count == 1 && adapter.calls.count == 3)
    // The adapter receives the same request each time.
    #expect(adapter.calls.all.allSatisfy { $0.value(forHTTPHeaderField: "X-Attempt") == nil })
    #expect(server.recordedRequests.map { $0.header("X-Attempt") } == ["1", "2", "3"])
    #expect(retrier.calls.all.map(\.count) == [0, 1] && retrier.calls.all.map(\.status) == [500, 500])
    #expect(retrier.calls.all.allSatisfy { $0.request === request })
    #expect(retrier.calls.all.allSatisfy { ($0.error as? AFError)?.responseCode == 500 })
  }

  @Test("A refused retry ends with the original error") func refusedRetry() async {
    let retrier = ScriptedRetrier { _, _ in (false, 0) }
    manager.retrier = retrier
    let response = await manager.request(server.url("/status/401")).validate().ended()
    #expect((response.error as? AFError)?.responseCode == 401 && retrier.calls.count == 1)
    #expect(server.requestCount == 1)
  }

  @Test("The retrier receives an error of the network once") func networkError() async {
    let retrier = ScriptedRetrier { _, _ in (false, 0) }
    manager.retrier = retrier
    server.enqueue(.closeBeforeReply, .closeBeforeReply)
    let response = await manager.request(server.url("/"), method: .post).json()
    #expect(response.error is URLError)
    #expect(retrier.calls.count == 1 && retrier.calls.all.first?.error is URLError)
  }

  @Test("An error of an adapter is delivered unchanged") func adapterError() async {
    manager.adapter = CountingAdapter(failures: 1...1)
    let request = manager.request(server.url("/get"))
    let response = await request.ended()
    #expect(response.error is Own && server.requestCount == 0)
  }

  @Test("An error of an adapter can be retried") func retriedAdapterError() async {
    let adapter = CountingAdapter(failures: 1...1)
    let retrier = ScriptedRetrier { error, _ in (error is Own, 0) }
    manager.adapter = adapter
    manager.retrier = retrier
    // The test holds no reference to the request.
    let response = await manager.request(server.url("/get")).ended()
    #expect(response.error == nil && response.response?.statusCode == 200)
    #expect(adapter.calls.count == 2 && retrier.calls.all.map(\.count) == [0] && server.requestCount == 1)
  }

  @Test("An adapter that throws twice ends the request", arguments: [0, 0.001]) func adapterThrowsTwice(
    after delay: TimeInterval
  ) async {
    let adapter = CountingAdapter(failures: 1...1000)
    let retrier = ScriptedRetrier { _, _ in (true, delay) }
    manager.adapter = adapter
    manager.retrier = retrier
    let request = manager.request(server.url("/get"))
    #expect(await request.ended().error is Own)
    #expect(adapter.calls.count == 2 && retrier.calls.count == 1)
    #expect(request.retryCount == 0 && server.requestCount == 0)
  }

  @Test("An adapter that throws at a retry ends the request", arguments: [0, 0.001])
  func adapterThrowsAtRetry(after delay: TimeInterval) async {
    let adapter = CountingAdapter(failures: 3...1000)
    let retrier = ScriptedRetrier { _, _ in (true, delay) }
    manager.adapter = adapter
    manager.retrier = retrier
    server.enqueue(.status(500), Reply(status: 503, body: .bytes(Array("why not".utf8))))
    let request = manager.request(server.url("/")).validate()
    let response = await request.ended()
    #expect(response.error is Own && request.delegate.error is Own)
    #expect(adapter.calls.count == 3 && retrier.calls.all.map(\.count) == [0, 1])
    #expect(request.retryCount == 1 && server.requestCount == 2)
    // The response of the last attempt is still available.
    #expect(response.response?.statusCode == 503 && request.response?.statusCode == 503)
    #expect(response.data == Data("why not".utf8) && response.metrics != nil)
    #expect(response.request?.value(forHTTPHeaderField: "X-Attempt") == "2")
    #expect(request.request == response.request && request.task?.response != nil)
    // Other requests can still be retried.
    server.enqueue(.status(500))
    #expect(await manager.request(server.url("/")).validate().ended().error is Own)
  }

  @Test("An adapter that throws at a retry ends a download") func adapterThrowsAtRetryOfDownload() async {
    manager.adapter = CountingAdapter(failures: 2...1000)
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    let request = manager.download(server.url("/status/500")).validate()
    let response = await request.ended()
    #expect(response.error is Own && response.response?.statusCode == 500 && response.temporaryURL == nil)
    #expect(retrier.calls.count == 1 && request.retryCount == 0 && server.requestCount == 1)
  }

  @Test("The timeline is the last attempt's") func timeline() async throws {
    let retried = Notes<TimeInterval>()
    manager.retrier = ScriptedRetrier { _, count in
      retried.add(Date().timeIntervalSinceReferenceDate)
      return (count == 0, 0)
    }
    server.enqueue(.status(500), .ok)
    let timeline = await manager.request(server.url("/")).validate().ended().timeline
    #expect(timeline.requestStartTime >= (try #require(retried.all.first)))
    #expect(timeline.latency >= 0 && timeline.requestDuration >= timeline.latency)
  }

  @Test("Failed serializers are not retried") func serializers() async {
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    server.enqueue(.text("no JSON"))
    let request = manager.request(server.url("/"))
    let (json, text) = (await request.json(), await request.text())
    #expect((json.error as? AFError)?.isResponseSerializationError == true && text.value == "no JSON")
    #expect(retrier.calls.count == 0 && server.requestCount == 1)
  }

  @Test("No retrier is called for a cancelled request") func cancelledRequest() async throws {
    let retrier = ScriptedRetrier { _, _ in (true, 0) }
    manager.retrier = retrier
    server.enqueue(.stall)
    let request = manager.request(server.url("/"))
    _ = try await server.takeRequest()
    request.cancel()
    #expect((await request.ended().error as? URLError)?.code == .cancelled)
    #expect(retrier.calls.count == 0 && server.requestCount == 1)
  }

  @Test("A completion that is released without a call ends the request with its error")
  func releasedCompletion() async {
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

  @Test("Resume data that cannot be read end the request without a retry", arguments: [0, 0.001])
  func unreadableResumeData(after delay: TimeInterval) async {
    let retrier = ScriptedRetrier { _, count in (count == 0, delay) }
    manager.retrier = retrier
    let ends = Notes<Bool>()
    let request = manager.download(resumingWith: Data("garbage".utf8))
    request.response { ends.add($0.error != nil) }
    #expect(await eventually { ends.all == [true] })
    #expect(retrier.calls.count == 0 && request.retryCount == 0)
    // Other requests can still be retried.
    let other = manager.request(server.url("/status/500")).validate()
    other.response { ends.add($0.error != nil) }
    #expect(await eventually { ends.all == [true, true] })
    #expect(other.retryCount == 1 && server.requestCount == 2)
  }

  @Test("A download is retried from the beginning") func download() async throws {
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
