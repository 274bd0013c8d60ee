import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// The number of calls of interceptors, with the engine.
@Suite("Retries with a server", .timeLimit(.minutes(5)))
struct RetryOnServerTests {
  struct Item: Decodable, Sendable { let id: Int }

  private func decoded(_ request: DataRequest) async -> AFDataResponse<Item> {
    await withCheckedContinuation { continuation in
      request.responseDecodable(of: Item.self, queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  @Test("One retrier is called for each failure") func oneRetrier() async throws {
    let server = try HTTPTestServer()
    let spy = SpyInterceptor(retries: 1)
    let request = Session.real(interceptor: spy).request(server.url("/status/401")).validate()
    #expect(await decoded(request).error?.responseCode == 401)
    #expect(spy.adaptCount == 2)
    #expect(spy.retryCount == 3)
    #expect(request.retryCount == 1)
    server.stop()
  }

  @Test("Two retriers are called in order") func twoRetriers() async throws {
    let server = try HTTPTestServer()
    let sessions = SpyInterceptor("session", retries: 1)
    let own = SpyInterceptor("request", retries: 1)
    let request = Session.real(interceptor: sessions)
      .request(server.url("/status/401")).interceptor(own).validate()
    #expect(await decoded(request).error?.responseCode == 401)
    #expect(sessions.retryCount == 4)
    #expect(own.retryCount == 3)
    #expect(sessions.adaptCount == 3)
    #expect(own.adaptCount == 3)
    #expect(request.retryCount == 2)
    server.stop()
  }

  @Test("A retrier that fails ends the request") func failingRetrier() async throws {
    let server = try HTTPTestServer()
    let spy = SpyInterceptor(retry: { _, _, count in .doNotRetryWithError(TestError(text: "\(count)")) })
    let request = Session.real(interceptor: spy).request(server.url("/status/401")).validate()
    let response = await decoded(request)
    #expect(spy.retryCount == 2)
    #expect(response.error?.underlyingError as? TestError == TestError(text: "2"))
    server.stop()
  }

  @Test("A request succeeds when the server recovers") func recovery() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.status(503).with(header: "Retry-After", value: "0"), .status(500), .json(#"{"id": 7}"#))
    let policy = RetryPolicy(exponentialBackoffScale: 0.001, maximumRetryAfter: 5, jitter: .full)
    let request = Session.real(interceptor: policy).request(server.url("/item")).validate()
    #expect(await decoded(request).value?.id == 7)
    #expect(request.retryCount == 2)
    server.stop()
  }
}
