import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// The timeline of version 4 of the API, computed from the current properties.
private struct Timeline {
  let requestStartTime: Date
  let initialResponseTime: Date
  let requestCompletedTime: Date
  let serializationCompletedTime: Date

  init?(_ attempts: [TaskMetrics], serializationDuration: TimeInterval) {
    guard let first = attempts.first, let last = attempts.last else { return nil }
    requestStartTime = first.taskInterval.start
    requestCompletedTime = last.taskInterval.end
    initialResponseTime = last.transactionMetrics.last?.responseStartDate ?? requestCompletedTime
    serializationCompletedTime = requestCompletedTime.addingTimeInterval(serializationDuration)
  }

  var dates: [Date] {
    [requestStartTime, initialResponseTime, requestCompletedTime, serializationCompletedTime]
  }
}

@Suite("Times of a request", .timeLimit(.minutes(5))) struct TimelineTests {
  private let routes = Routes.standard.adding("/stored") { _, _ in
    .text("stored").with(header: "Cache-Control", value: "max-age=60")
  }.adding("/validated") { request, _ in
    let isKnown = request.header("If-None-Match") != nil
    return (isKnown ? Reply(status: 304) : .text("validated"))
      .with(header: "Cache-Control", value: "no-cache").with(header: "ETag", value: "\"1\"")
  }

  private func session(retrying: Bool = false) -> Session {
    let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    return .real(
      configuration: .cached(by: cache),
      interceptor: retrying ? RetryPolicy(exponentialBackoffScale: 0.001) : nil)
  }

  /// Checks that the times of a request are in order, and returns the attempts.
  @discardableResult
  private func check(
    _ request: DataRequest, since begin: Date, at location: SourceLocation = #_sourceLocation
  ) async throws -> (hops: [String], timeline: [Date]) {
    let response = await request.serializingData(emptyResponseCodes: [200]).response
    let attempts = request.allMetrics
    let timeline = try #require(
      Timeline(attempts, serializationDuration: response.serializationDuration), sourceLocation: location)
    #expect(response.serializationDuration >= 0, sourceLocation: location)
    // The wall clock and the monotonic clock differ by less than this.
    let end = Date().addingTimeInterval(0.01)
    let dates = [begin.addingTimeInterval(-0.01)] + timeline.dates + [end]
    #expect(dates == dates.sorted(), "\(dates.map(\.timeIntervalSince1970))", sourceLocation: location)
    #expect(attempts.last === response.metrics, sourceLocation: location)
    var last = begin.addingTimeInterval(-0.01)
    for attempt in attempts {
      #expect(attempt.taskInterval.start >= last, sourceLocation: location)
      for hop in attempt.transactionMetrics {
        let known = [
          hop.fetchStartDate, hop.domainLookupStartDate, hop.domainLookupEndDate, hop.connectStartDate,
          hop.secureConnectionStartDate, hop.secureConnectionEndDate, hop.connectEndDate,
          hop.requestStartDate, hop.responseStartDate, hop.responseEndDate,
        ].compactMap { $0 }
        #expect(known == known.sorted(), sourceLocation: location)
        let start = try #require(known.first, sourceLocation: location)
        #expect(start >= last.addingTimeInterval(-0.01), sourceLocation: location)
        #expect((known.last ?? start) <= attempt.taskInterval.end, sourceLocation: location)
        if let sent = hop.requestStartDate, let done = hop.requestEndDate {
          #expect(sent <= done, sourceLocation: location)
        }
        last = known.last ?? start
      }
    }
    let hops = attempts.map { attempt in
      attempt.transactionMetrics.map { $0.resourceFetchType == .localCache ? "c" : "n" }.joined()
    }
    return (hops, timeline.dates)
  }

  @Test("Times of successes, redirects and stored responses are in order") func successes() async throws {
    let server = try HTTPTestServer(routes: routes)
    let session = session()
    for (path, hops) in [
      ("/get", "n"), ("/redirect/2", "nnn"), ("/stored", "n"), ("/stored", "c"), ("/validated", "n"),
      ("/validated", "nc"),
    ] {
      let found = try await check(session.request(server.url(path)), since: Date())
      #expect(found.hops == [hops], "\(path)")
    }
  }

  @Test("Times of failures are in order") func failures() async throws {
    let server = try HTTPTestServer(routes: routes)
    let session = session()
    server.enqueue(.closeAfterBody(bytes: 10))
    #expect(try await check(session.request(server.url("/")), since: Date()).hops == ["n"])
    server.enqueue(.redirect(to: "/get"), .closeAfterBody(bytes: 10))
    #expect(try await check(session.request(server.url("/")), since: Date()).hops == ["nn"])
    let url = "http://127.0.0.1:\(try HTTPTestServer.refusedPort())/"
    #expect(try await check(session.request(url), since: Date()).hops == ["n"])
  }

  @Test("Times of retries are in order") func retries() async throws {
    let server = try HTTPTestServer(routes: routes)
    server.enqueue(.closeAfterBody(bytes: 10), .status(503), .text("ok"))
    let found = try await check(session(retrying: true).request(server.url("/")).validate(), since: Date())
    #expect(found.hops == ["n", "n", "n"])
    // The first byte of the response belongs to the last attempt.
    #expect(found.timeline[1] > found.timeline[0])
  }

  @Test("Times before a failure without times are included") func timesBeforeFailure() async throws {
    let session = Session.retained(
      fake: FakeTransport(.redirect(302, to: "/next"), .failure(.cannotConnectToHost)))
    let response = await session.request("http://a.test/").end()
    let metrics = try #require(response.metrics)
    #expect(metrics.redirectCount == 1)
    #expect(
      metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, nil])
    #expect(metrics.transactionMetrics.map { $0.request.url?.path } == ["/", "/next"])
  }
}
