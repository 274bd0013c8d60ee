import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Metrics of requests without a response.
@Suite("Metrics of failures", .timeLimit(.minutes(5)))
struct MetricsOfFailuresTests {
  private let spy = EventSpy()

  private func session(
    _ fake: FakeTransport = FakeTransport(), requestSetup: Session.RequestSetup = .lazy
  ) -> Session {
    Session.retained(
      fake: fake, requestSetup: requestSetup, observers: SessionObservers(eventMonitors: [spy]))
  }

  private var gathered: [String] {
    spy.reported.filter { ["didFinishCollecting", "didGatherMetrics"].contains($0) }
  }

  private let both = ["didFinishCollecting", "didGatherMetrics"]

  @Test("A failure before the transfer has metrics")
  func unmeasured() async throws {
    let before = Date()
    let request = session(FakeTransport(.failure(.cannotFindHost))).request("http://a.test/")
    let response = await request.end()
    let metrics = try #require(response.metrics)
    #expect(metrics.transactionMetrics.map(\.request.url?.host) == ["a.test"])
    #expect(metrics.transactionMetrics.first?.response == nil)
    #expect(metrics.taskInterval.start >= before.addingTimeInterval(-1))
    #expect(request.metrics === metrics)
    #expect(gathered == both)
    let reported = spy.reported
    let places = ["didGatherMetrics", "didCompleteWithError URLError"].map {
      reported.firstIndex(of: $0) ?? 99
    }
    #expect(places[0] < places[1])
  }

  @Test("A refused connection has metrics")
  func refused() async throws {
    let port = try HTTPTestServer.refusedPort()
    let response = await Session.real(eventMonitors: [spy]).request("http://127.0.0.1:\(port)/").end()
    #expect(response.error != nil)
    #expect(response.metrics?.transactionMetrics.count == 1)
    #expect(gathered == both)
  }

  @Test("A request that cannot be created has metrics, and no task to report them")
  func unmade() async {
    let response = await session().request("").end()
    #expect(response.metrics?.transactionMetrics.isEmpty == true)
    #expect(gathered.isEmpty)
  }

  @Test("A request that is cancelled before its start has metrics")
  func cancelledBeforeStart() async {
    let request = session().request("http://a.test/")
    request.cancel()
    let response = await request.end()
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(response.metrics?.transactionMetrics.isEmpty == true)
    #expect(request.metrics === response.metrics)
  }

  @Test("A task that is cancelled before it is sent has metrics")
  func cancelledTask() async {
    let request = session(requestSetup: .eager).request("http://a.test/")
    request.suspend()
    #expect(await eventually { request.task != nil })
    request.cancel()
    let response = await request.end()
    #expect(response.metrics != nil)
    #expect(gathered == both)
  }

  @Test("A URL that the engine does not request has metrics", arguments: ["data:,x", "ftp://a.test/"])
  func local(url: String) async throws {
    let before = Date()
    let response = await session().request(url).end()
    let metrics = try #require(response.metrics)
    #expect(metrics.transactionMetrics.isEmpty)
    #expect(metrics.taskInterval.start >= before)
    #expect(metrics.taskInterval.end <= Date())
    #expect(gathered == both)
  }

  @Test("Every attempt has metrics")
  func attempts() async {
    let fake = FakeTransport(.failure(.timedOut), .failure(.timedOut))
    let request = session(fake).request("http://a.test/")
      .retry(
        using: Retrier { request, _, _, completion in
          completion(request.retryCount == 0 ? .retry : .doNotRetry)
        })
    _ = await request.end()
    #expect(request.allMetrics.count == 2)
    #expect(gathered == both + both)
  }
}
