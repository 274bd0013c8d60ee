import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Factories of interceptors and handlers", .timeLimit(.minutes(1))) struct InterceptorFactoryTests {
  private static let adapt: AdaptHandler = { request, _, completion in
    var request = request
    request.setValue("yes", forHTTPHeaderField: "X-Adapted")
    completion(.success(request))
  }
  private static let retry: RetryHandler = { request, _, _, completion in
    completion(request.retryCount < 1 ? .retry : .doNotRetry)
  }

  /// Sends a request that fails once. Returns whether each attempt was adapted.
  private func attempts(_ interceptor: any RequestInterceptor) async -> [Bool] {
    let fake = FakeTransport(.failure(.timedOut))
    _ = await Session.retained(fake: fake).request("http://a.test/", interceptor: interceptor).end()
    return fake.requests.map { $0.value("X-Adapted") == "yes" }
  }

  @Test("An interceptor of two closures or two objects adapts and retries") func pairs() async {
    #expect(await attempts(.interceptor(adapter: Self.adapt, retrier: Self.retry)) == [true, true])
    #expect(
      await attempts(.interceptor(adapter: Adapter(Self.adapt), retrier: Retrier(Self.retry))) == [
        true, true,
      ])
  }

  @Test("An interceptor of lists uses each list") func lists() async {
    #expect(await attempts(.interceptor(adapters: [.adapter(using: Self.adapt)])) == [true])
    #expect(await attempts(.interceptor(retriers: [.retrier(using: Self.retry)])) == [false, false])
    let both = Interceptor(adaptHandler: Self.adapt, retryHandler: Self.retry)
    #expect(await attempts(.interceptor(interceptors: [both])) == [true, true])
    let all = Interceptor.interceptor(adapters: [both], retriers: [both], interceptors: [both, both])
    #expect(all.adapters.count == 3 && all.retriers.count == 3)
  }

  @Test("A request takes adapters and retriers one by one") func chained() async {
    let fake = FakeTransport(.failure(.timedOut))
    let request = Session.retained(fake: fake).request("http://a.test/")
      .adapt(using: .adapter(using: Self.adapt)).retry(using: .retrier(using: Self.retry))
    _ = await request.end()
    #expect(fake.requests.map { $0.value("X-Adapted") } == ["yes", "yes"])
    #expect((request.interceptor as? Interceptor)?.adapters.isEmpty == false)
  }

  @Test("Handlers of redirects and of cached responses keep their behaviour") func handlers() async throws {
    let task = URLSession.shared.dataTask(with: URL(fileURLWithPath: "/"))
    let url = URL(fileURLWithPath: "/next")
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil))
    let answers = Recorder<String>()
    for handler in [
      .follow, .doNotFollow,
      .modify { _, request, response in
        var request = request
        request.httpMethod = "\(response.statusCode)"
        return request
      },
    ] as [Redirector] {
      handler.task(task, willBeRedirectedTo: URLRequest(url: url), for: response) { request in
        answers.add(request.map { "\($0.httpMethod ?? "") \($0.url?.path ?? "")" } ?? "none")
      }
    }
    #expect(answers.values == ["GET /next", "none", "302 /next"])
    let cached = CachedURLResponse(response: response, data: Data("a".utf8))
    let stored = Recorder<Int?>()
    for handler in [
      .cache, .doNotCache,
      .modify { _, cached in CachedURLResponse(response: cached.response, data: cached.data + Data("b".utf8))
      },
    ] as [ResponseCacher] {
      handler.dataTask(task, willCacheResponse: cached) { stored.add($0?.data.count) }
    }
    #expect(stored.values == [1, nil, 2])
  }
}
