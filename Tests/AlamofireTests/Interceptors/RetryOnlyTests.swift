import Foundation
import Testing

@testable import Alamofire

/// Interceptors that retry and adapt nothing. A request with such ones needs no task until a retrier is asked.
@Suite("Requests whose interceptors only retry", .timeLimit(.minutes(2))) struct RetryOnlyTests {
  /// Unchecked, as its superclass is.
  private final class AdaptingPolicy: RetryPolicy, @unchecked Sendable {}

  @Test("Subclasses and compositions may adapt, and the policies themselves do not") func interests() {
    let retrying: [any RequestInterceptor] = [
      RetryPolicy(), ConnectionLostRetryPolicy(), Retrier { _, _, _, completion in completion(.doNotRetry) },
    ]
    for interceptor in retrying {
      #expect(RequestInterests(of: interceptor) == [.interceptors, .retriers], "\(interceptor)")
    }
    let adapting: [any RequestInterceptor] = [
      AdaptingPolicy(), Interceptor(retriers: [RetryPolicy()]), Interceptor(interceptors: [RetryPolicy()]),
    ]
    for interceptor in adapting {
      #expect(RequestInterests(of: interceptor) == [.interceptors, .adapters, .retriers], "\(interceptor)")
    }
    let adapter = Adapter { request, _, completion in completion(.success(request)) }
    for interceptor: any RequestInterceptor in [adapter, Interceptor(adapters: [adapter])] {
      #expect(RequestInterests(of: interceptor) == [.interceptors, .adapters], "\(interceptor)")
    }
  }

  @Test("A response that cannot be created is retried, and the handlers before it are served once")
  func failedSerialization() async {
    let fake = FakeTransport(.text(""), .text("7"), .text("8"))
    let retrier = Retrier { _, _, error, completion in
      completion(error.asAFError?.isResponseSerializationError == true ? .retry : .doNotRetry)
    }
    let request = Session.retained(fake: fake).request("http://a.test/", interceptor: retrier)
    let order = Recorder<String>()
    let data = await withCheckedContinuation { continuation in
      request.response(queue: .global()) { order.add("plain \($0.data?.count ?? 0)") }
        .responseData(queue: .global()) { continuation.resume(returning: $0.value) }
    }
    #expect(data == Data("7".utf8))
    #expect(fake.requests.count == 2 && request.retryCount == 1)
    await order.wait(for: 1)
    #expect(order.values == ["plain 1"])
  }

  @Test("A failure that no retrier undoes is delivered, and later handlers are called")
  func refused() async {
    let fake = FakeTransport(.text(""))
    let asked = Recorder<Bool>()
    let retrier = Retrier { _, _, _, completion in
      asked.add(true)
      completion(.doNotRetryWithError(URLError(.cannotParseResponse)))
    }
    let request = Session.retained(fake: fake).request("http://a.test/", interceptor: retrier)
    let task = request.serializingData()
    let plain = await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
    #expect(await task.response.error?.isRequestRetryError == true)
    #expect(plain.error == nil && plain.response?.statusCode == 200)
    #expect(asked.values.count == 1 && fake.requests.count == 1)
  }
}
