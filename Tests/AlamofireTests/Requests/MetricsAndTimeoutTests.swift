import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Metrics and timeouts", .timeLimit(.minutes(5)))
struct MetricsAndTimeoutTests {
  private func code(_ response: AFDataResponse<Data?>) -> URLError.Code? {
    (response.error?.underlyingError as? URLError)?.code
  }

  private func configuration(idle: TimeInterval = 60, total: TimeInterval = 3600) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.uncached
    configuration.timeoutIntervalForRequest = idle
    configuration.timeoutIntervalForResource = total
    return configuration
  }

  @Test("Each hop has a transaction whose dates are in order") func transactions() async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/redirect/2"))
    _ = await request.end()
    let metrics = try #require(request.metrics)
    #expect(metrics.transactionMetrics.count == 3)
    #expect(metrics.redirectCount == 2)
    #expect(request.allMetrics.count == 1)
    for (index, transaction) in metrics.transactionMetrics.enumerated() {
      let dates = [
        transaction.fetchStartDate, transaction.domainLookupStartDate, transaction.domainLookupEndDate,
        transaction.connectStartDate, transaction.connectEndDate, transaction.requestStartDate,
        transaction.requestEndDate, transaction.responseStartDate, transaction.responseEndDate,
      ].compactMap { $0 }
      #expect(dates == dates.sorted())
      #expect(transaction.fetchStartDate != nil)
      #expect(transaction.responseEndDate != nil)
      #expect(transaction.isReusedConnection == (index > 0))
      #expect((transaction.response as? HTTPURLResponse)?.statusCode == (index < 2 ? 302 : 200))
    }
    let urls = metrics.transactionMetrics.map(\.request.url?.path)
    #expect(urls == ["/redirect/2", "/redirect/1", "/get"])
    let starts = metrics.transactionMetrics.compactMap(\.fetchStartDate)
    #expect(starts == starts.sorted())
    #expect(metrics.taskInterval.duration >= 0)
  }

  @Test("First and last values are those of the first and the last attempt") func attempts() async {
    let count = Recorder<Int>()
    let numbering = Adapter { request, _, completion in
      var request = request
      request.headers.update(name: "X-Attempt", value: "\(count.values.count)")
      count.add(0)
      completion(.success(request))
    }
    let retrier = Retrier { request, _, _, completion in
      completion(request.retryCount < 2 ? .retry : .doNotRetry)
    }
    let fake = FakeTransport(.status(500), .status(500), .text("ok"))
    let request = Session.retained(fake: fake).request("http://a.test/").validate()
      .adapt(using: numbering).retry(using: retrier)
    #expect(request.firstMetrics == nil && request.firstRequest == nil && request.lastRequest == nil)
    _ = await request.end()
    #expect(request.requests.map { $0.headers["X-Attempt"] } == ["0", "1", "2"])
    #expect(request.firstRequest == request.requests.first && request.lastRequest == request.requests.last)
    #expect(request.request == request.lastRequest)
    let metrics = request.allMetrics
    let statuses = metrics.map { ($0.transactionMetrics.last?.response as? HTTPURLResponse)?.statusCode }
    #expect(statuses == [500, 500, 200])
    #expect(request.firstMetrics === metrics.first && request.lastMetrics === metrics.last)
    #expect(request.metrics === metrics.last)
  }

  @Test("A failed transfer has metrics") func failedTransfer() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.closeAfterBody(bytes: 10))
    let response = await Session.real().request(server.url("/")).end()
    #expect(response.error?.isSessionTaskError == true)
    #expect(response.metrics?.transactionMetrics.count == 1)
  }

  @Test("timeoutIntervalForRequest ends an idle request") func idleTimeout() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall)
    let session = Session.real(configuration: configuration(idle: 0.05))
    #expect(code(await session.request(server.url("/")).end()) == .timedOut)
    server.enqueue(.stallAfterBody(bytes: 10))
    #expect(code(await session.request(server.url("/")).end()) == .timedOut)
  }

  @Test("Transferred bytes restart the idle timeout") func activity() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.slowDrip(bytesPerStep: 10, interval: .milliseconds(60)))
    let session = Session.real(configuration: configuration(idle: 0.4))
    let response = await session.request(server.url("/")).end()
    #expect(response.error == nil)
    #expect(response.data?.count == 100)
  }

  @Test("The timeout of the request has priority unless it is the default") func priority() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall, .stall)
    var request = try URLRequest(url: server.url("/"), method: .get)
    request.timeoutInterval = 0.05
    #expect(
      code(await Session.real(configuration: configuration(idle: 600)).request(request).end()) == .timedOut)
    request.timeoutInterval = 60
    #expect(
      code(await Session.real(configuration: configuration(idle: 0.05)).request(request).end()) == .timedOut)
  }

  @Test("timeoutIntervalForResource limits the total") func totalTimeout() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.slowDrip(bytesPerStep: 10, interval: .milliseconds(50)))
    let session = Session.real(configuration: configuration(total: 0.12))
    let response = await session.request(server.url("/")).end()
    #expect(code(response) == .timedOut)
    #expect(response.error?.localizedDescription.contains("timeoutIntervalForResource") == true)
  }

  @Test("The total includes all redirects") func totalOfRedirects() async throws {
    let routes = Routes.standard.adding("/again") { _, _ in
      .redirect(to: "/again").delayed(by: .milliseconds(30))
    }
    let server = try HTTPTestServer(routes: routes)
    let session = Session.real(configuration: configuration(total: 0.1))
    #expect(code(await session.request(server.url("/again")).end()) == .timedOut)
  }

  @Test("A suspended request has no idle timeout") func suspended() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("late").held(by: gate))
    server.enqueue(.stall)
    let session = Session.real(configuration: configuration(idle: 0.05))
    let request = session.request(server.url("/"))
    async let response = request.end()
    request.suspend()
    // The second request has the same timeout and times out as well.
    let second = session.request(server.url("/"))
    request.resume()
    await gate.waitUntilReached()
    request.suspend()
    #expect(code(await second.end()) == .timedOut)
    gate.open()
    request.resume()
    let result = await response
    #expect(result.error == nil || code(result) == .timedOut)
    #expect(request.isFinished)
  }

  @Test("A refused connection has no response") func refusedConnection() async throws {
    let url = "http://127.0.0.1:\(try HTTPTestServer.refusedPort())/"
    let response = await Session.real().request(url).end()
    #expect(code(response) == .cannotConnectToHost)
    #expect(response.response == nil)
  }
}
