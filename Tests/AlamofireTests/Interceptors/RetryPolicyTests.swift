import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Retry policies", .timeLimit(.minutes(5)))
struct RetryPolicyTests {
  /// Returns a failed request with the properties that policies read.
  private func failed(
    _ reply: FakeReply, method: Alamofire.HTTPMethod = .get, retries: Int = 0
  ) async -> (request: Request, session: Session, error: AFError) {
    let spy = SpyInterceptor(retries: retries)
    let session = Session.retained(fake: FakeTransport { _, _ in reply }, interceptor: spy)
    let request = session.request("http://a.test/", method: method).validate()
    let response = await request.end()
    return (request, session, response.error ?? .explicitlyCancelled)
  }

  private func answer(
    of policy: RetryPolicy, to failed: (request: Request, session: Session, error: AFError)
  ) async -> RetryResult {
    await withCheckedContinuation { continuation in
      policy.retry(failed.request, for: failed.session, dueTo: failed.error) {
        continuation.resume(returning: $0)
      }
    }
  }

  private func delay(
    of policy: RetryPolicy, after reply: FakeReply, retries: Int = 0
  ) async -> TimeInterval? {
    guard case .retryWithDelay(let delay) = await answer(of: policy, to: failed(reply, retries: retries))
    else { return nil }
    return delay
  }

  @Test("The defaults match the documentation") func defaults() {
    let policy = RetryPolicy()
    #expect(policy.retryLimit == 2)
    #expect(policy.exponentialBackoffBase == 2)
    #expect(policy.exponentialBackoffScale == 0.5)
    #expect(policy.retryableHTTPMethods == [.delete, .get, .head, .options, .put, .trace])
    #expect(policy.retryableHTTPStatusCodes == [408, 500, 502, 503, 504])
    #expect(policy.retryableURLErrorCodes.count == 18)
    #expect(policy.maximumRetryAfter == nil)
    #expect(policy.jitter == .none)
    let lost = ConnectionLostRetryPolicy()
    #expect(lost.retryLimit == 2)
    #expect(lost.retryableHTTPStatusCodes.isEmpty)
    #expect(lost.retryableURLErrorCodes == [.networkConnectionLost])
  }

  @Test("A base below two is replaced by two", arguments: [0, 1, 2] as [UInt])
  func base(base: UInt) async {
    let policy = RetryPolicy(exponentialBackoffBase: base)
    #expect(policy.exponentialBackoffBase == 2)
    #expect(await delay(of: policy, after: .status(503), retries: 1) == 1)
  }

  @Test("The delay grows until the retry limit") func growth() async {
    let policy = RetryPolicy(retryLimit: 4)
    var delays: [TimeInterval?] = []
    for retries in 0...4 { delays.append(await delay(of: policy, after: .status(503), retries: retries)) }
    #expect(delays == [0.5, 1, 2, 4, nil])
  }

  @Test(
    "Only idempotent methods are retried",
    arguments: ["DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE", "POST", "PATCH", "CONNECT"])
  func methods(name: String) async {
    let failure = await failed(.failure(.connectionLost), method: Alamofire.HTTPMethod(rawValue: name))
    let isRetried = RetryPolicy().shouldRetry(request: failure.request, dueTo: failure.error)
    #expect(isRetried == !["POST", "PATCH", "CONNECT"].contains(name))
  }

  @Test(
    "Only certain status codes are retried",
    arguments: [400, 401, 403, 404, 408, 409, 429, 500, 501, 502, 503, 504, 505])
  func statusCodes(status: Int) async {
    let failure = await failed(.status(status))
    let isRetried = RetryPolicy().shouldRetry(request: failure.request, dueTo: failure.error)
    #expect(isRetried == [408, 500, 502, 503, 504].contains(status))
    #expect(!ConnectionLostRetryPolicy().shouldRetry(request: failure.request, dueTo: failure.error))
  }

  @Test("URLError codes are read from the error or its underlying error") func errorCodes() async {
    let request = await failed(.status(404)).request
    let lost = URLError(.networkConnectionLost)
    for policy in [RetryPolicy(), ConnectionLostRetryPolicy()] {
      #expect(policy.shouldRetry(request: request, dueTo: lost))
      #expect(policy.shouldRetry(request: request, dueTo: AFError.sessionTaskFailed(error: lost)))
      #expect(!policy.shouldRetry(request: request, dueTo: URLError(.cancelled)))
      #expect(!policy.shouldRetry(request: request, dueTo: AFError.explicitlyCancelled))
      #expect(!policy.shouldRetry(request: request, dueTo: TestError()))
    }
    #expect(!ConnectionLostRetryPolicy().shouldRetry(request: request, dueTo: URLError(.timedOut)))
  }

  @Test("A request that could not be created is not retried") func creationFailure() async {
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("")
    _ = await request.end()
    #expect(!RetryPolicy().shouldRetry(request: request, dueTo: URLError(.networkConnectionLost)))
  }

  @Test("A subclass can decide") func subclass() async {
    final class Never: RetryPolicy, @unchecked Sendable {
      override func shouldRetry(request: Request, dueTo error: any Error) -> Bool { false }
    }
    #expect(await delay(of: Never(), after: .status(503)) == nil)
  }

  @Test("Retry-After is ignored by default") func ignoredRetryAfter() async {
    let reply = FakeReply.status(503, headers: [("Retry-After", "7")])
    #expect(await delay(of: RetryPolicy(), after: reply) == 0.5)
  }

  @Test(
    "Retry-After is obeyed up to a limit",
    arguments: [("7", 7), ("0", 0.5), ("60", 60), ("61", nil), ("soon", 0.5)])
  func retryAfter(value: String, expected: TimeInterval?) async {
    let reply = FakeReply.status(503, headers: [("Retry-After", value)])
    #expect(await delay(of: RetryPolicy(maximumRetryAfter: 60), after: reply) == expected)
  }

  @Test("A date in Retry-After is compared with the Date of the response") func dates() async {
    let reply = FakeReply.status(
      503,
      headers: [
        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Retry-After", "Sunday, 06-Nov-94 08:49:57 GMT"),
      ])
    #expect(await delay(of: RetryPolicy(maximumRetryAfter: 60), after: reply) == 20)
    let past = FakeReply.status(503, headers: [("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT")])
    #expect(await delay(of: RetryPolicy(maximumRetryAfter: 60), after: past) == 0.5)
  }

  @Test("An invalid limit of Retry-After does not cause an early retry", arguments: [-1, TimeInterval.nan])
  func bounds(bound: TimeInterval) async {
    let reply = FakeReply.status(503, headers: [("Retry-After", "1")])
    #expect(await delay(of: RetryPolicy(maximumRetryAfter: bound), after: reply) == nil)
  }

  @Test("Jitter is less than the delay") func jitter() async {
    let failure = await failed(.status(503), retries: 1)
    let policy = RetryPolicy(jitter: .full)
    var delays: Set<TimeInterval> = []
    for _ in 0..<20 {
      guard case .retryWithDelay(let delay) = await answer(of: policy, to: failure) else { continue }
      #expect((0...1).contains(delay))
      delays.insert(delay)
    }
    #expect(delays.count > 1)
  }

  @Test("A request is retried until it succeeds") func success() async {
    let fake = FakeTransport(.status(503), .failure(.connectionLost), .text("ok"))
    let session = Session.retained(fake: fake, interceptor: .retryPolicy(exponentialBackoffScale: 0.001))
    let request = session.request("http://a.test/").validate()
    #expect(await request.end().error == nil)
    #expect(request.retryCount == 2)
  }

  @Test("After the retry limit the last error is the result") func limit() async {
    let fake = FakeTransport { _, index in index == 2 ? .status(504) : .status(503) }
    let session = Session.retained(fake: fake, interceptor: .retryPolicy(exponentialBackoffScale: 0))
    let request = session.request("http://a.test/").validate()
    #expect(await request.end().error?.responseCode == 504)
    #expect(fake.requests.count == 3)
  }
}
