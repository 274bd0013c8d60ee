import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Closures as interceptors, and Interceptor", .timeLimit(.minutes(5)))
struct InterceptorTests {
  let recorder = Recorder<String>()

  private func spy(_ name: String, retries: Int = 0) -> SpyInterceptor {
    let answer: SpyInterceptor.Retry = { _, _, count in count <= retries ? .retry : .doNotRetry }
    return SpyInterceptor(name, recorder: recorder, adapt: AdaptationTests.adding(name), retry: answer)
  }

  private func trail(of fake: FakeTransport) -> [String?] { fake.requests.map { $0.value("X-Trail") } }

  @Test("Closures adapt and retry") func closures() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let session = Session.retained(
      fake: fake,
      interceptor: Interceptor(
        adaptHandler: { urlRequest, _, completion in
          var urlRequest = urlRequest
          urlRequest.headers.add(name: "X-Trail", value: "closure")
          completion(.success(urlRequest))
        },
        retryHandler: { request, _, _, completion in
          completion(request.retryCount == 0 ? .retry : .doNotRetry)
        }))
    #expect(await session.request("http://a.test/").end().error == nil)
    #expect(trail(of: fake) == ["closure", "closure"])
  }

  @Test("An adapter does not retry, and a retrier does not adapt") func singlePurpose() async {
    let adapter = Adapter { urlRequest, _, completion in completion(.success(urlRequest)) }
    let first = FakeTransport(.failure(.connectionLost))
    #expect(
      await Session.retained(fake: first, interceptor: adapter).request("http://a.test/").end().error != nil)
    let second = FakeTransport(.failure(.connectionLost))
    let retrier = Retrier { _, _, _, completion in completion(.retry) }
    #expect(
      await Session.retained(fake: second, interceptor: retrier).request("http://a.test/").end().error == nil)
    #expect(second.requests.count == 2)
  }

  @Test("Adapters and retriers precede interceptors") func order() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let interceptor = Interceptor(
      adapters: [spy("a"), spy("b")], retriers: [spy("c"), spy("d")], interceptors: [spy("e"), spy("f")])
    #expect(interceptor.adapters.count == 4)
    #expect(interceptor.retriers.count == 4)
    #expect(
      await Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/").end().error
        != nil)
    #expect(trail(of: fake) == ["abef"])
    #expect(
      recorder.values == [
        "a adapts", "b adapts", "e adapts", "f adapts", "c retries", "d retries", "e retries", "f retries",
      ])
  }

  @Test("The first retrier that decides ends the chain") func firstRetrier() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let interceptor = Interceptor(
      retriers: [spy("a"), SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) }), spy("b")])
    let response = await Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/")
      .end()
    #expect(response.error?.isRequestRetryError == true)
    #expect(recorder.values == ["a retries"])
  }

  @Test("The first failed adapter ends the chain") func firstFailure() async {
    let fake = FakeTransport()
    let interceptor = Interceptor(
      adapters: [spy("a"), SpyInterceptor(adapt: { _, _ in .failure(TestError()) }), spy("b")])
    let response = await Session.retained(fake: fake, interceptor: interceptor).request("http://a.test/")
      .end()
    #expect(response.error?.underlyingError as? TestError == TestError())
    #expect(recorder.values == ["a adapts"])
  }

  @Test("An interceptor without members has no effect") func empty() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let session = Session.retained(fake: fake, interceptor: Interceptor())
    #expect(await session.request("http://a.test/").end().error != nil)
    #expect(await session.request("http://a.test/").end().error == nil)
  }

  @Test("A completion that is released without a call fails the adaptation") func releasedCompletion() async {
    let forgetful = Interceptor(
      adaptHandler: { _, _, _ in }, retryHandler: { _, _, _, _ in })
    let failed = await Session.retained(
      fake: FakeTransport(), interceptor: Interceptor(adapters: [forgetful, spy("a")])
    ).request("http://a.test/").end()
    #expect(failed.error?.underlyingError?.localizedDescription.contains("completion") == true)
    let fake = FakeTransport(.failure(.connectionLost))
    let retried = await Session.retained(
      fake: fake, interceptor: Interceptor(retriers: [forgetful, spy("b", retries: 1)])
    ).request("http://a.test/").end()
    #expect(retried.error == nil, "the next retrier is called")
    #expect(recorder.values == ["b retries"])
  }

  @Test("The first of two completions counts") func twoCompletions() async {
    let twice = Interceptor(
      adaptHandler: { urlRequest, _, completion in
        completion(.success(urlRequest))
        completion(.success(urlRequest))
      },
      retryHandler: { _, _, _, completion in
        completion(.doNotRetry)
        completion(.doNotRetry)
      })
    let fake = FakeTransport(.failure(.connectionLost))
    let row = Interceptor(interceptors: [twice, spy("a")])
    _ = await Session.retained(fake: fake, interceptor: row).request("http://a.test/").end()
    #expect(recorder.values == ["a adapts", "a retries"])
  }

  /// A part of an interceptor that retains its completion and never answers.
  enum SilentPart: CaseIterable { case adapter, retrier, addedAdapter, addedRetrier, authentication }

  @Test("A part that never answers does not retain the session", arguments: SilentPart.allCases)
  func silentPart(part: SilentPart) async throws {
    let kept = Recorder<any Sendable>()
    let adapter = Adapter { _, _, completion in kept.add(completion) }
    let retrier = Retrier { _, _, _, completion in kept.add(completion) }
    let authentication = AuthenticationInterceptor(
      authenticator: TokenAuthenticator { _, completion in kept.add(completion) },
      credential: Token(text: "a", requiresRefresh: true))
    let row: Interceptor? =
      switch part {
      case .adapter: Interceptor(adapters: [adapter])
      case .retrier: Interceptor(retriers: [retrier])
      case .authentication: Interceptor(interceptors: [authentication])
      case .addedAdapter, .addedRetrier: nil
      }
    var session: Session? = Session(fake: FakeTransport(.failure(.connectionLost)), interceptor: row)
    weak let released = session
    let request = try #require(session?.request("http://a.test/"))
    if part == .addedAdapter { request.adapt(using: adapter) }
    if part == .addedRetrier { request.retry(using: retrier) }
    async let response = request.end()
    await kept.wait(for: 1)
    session = nil
    guard await isSoon({ released == nil }) else {
      request.cancel()
      return _ = Issue.record("the completion of a part retains the session")
    }
    #expect(await response.error?.isSessionDeinitializedError == true)
    withExtendedLifetime(kept) {}
  }

  @Test("After a cancellation no further adapter is called") func cancelledAdaptation() async throws {
    let kept = Recorder<@Sendable (Result<URLRequest, any Error>) -> Void>()
    let first = Adapter { _, _, completion in kept.add(completion) }
    let row = Interceptor(adapters: [first, spy("late")])
    let request = Session.retained(fake: FakeTransport(), interceptor: row).request("http://a.test/")
    async let response = request.end()
    let completion = try await kept.value(0)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    completion(.success(try URLRequest(url: "http://a.test/", method: .get)))
    #expect(recorder.values.isEmpty, "an adapter was called for a cancelled request")
  }

  @Test("The state is passed to each adapter") func state() async {
    final class Stateful: RequestAdapter {
      let seen = Recorder<UUID>()
      func adapt(
        _ urlRequest: URLRequest, for session: Session,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
      ) {
        completion(.failure(TestError(text: "the form without a state was called")))
      }
      func adapt(
        _ urlRequest: URLRequest, using state: RequestAdapterState,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
      ) {
        seen.add(state.requestID)
        completion(.success(urlRequest))
      }
    }
    let adapters = [Stateful(), Stateful()]
    let row = Interceptor(adapters: [adapters[0]], interceptors: [Interceptor(adapters: [adapters[1]])])
    let request = Session.retained(fake: FakeTransport(), interceptor: row).request("http://a.test/")
    #expect(await request.end().error == nil)
    #expect(adapters.map(\.seen.values) == [[request.id], [request.id]])
  }

  @Test("A subclass can override either form of adapt") func subclass() async {
    final class Simple: Adapter, @unchecked Sendable {
      override func adapt(
        _ urlRequest: URLRequest, for session: Session,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
      ) {
        completion(.failure(TestError(text: "overridden")))
      }
    }
    let adapter = Simple { urlRequest, _, completion in completion(.success(urlRequest)) }
    let response = await Session.retained(fake: FakeTransport(), interceptor: adapter).request(
      "http://a.test/"
    )
    .end()
    #expect(response.error?.underlyingError as? TestError == TestError(text: "overridden"))
  }

  @Test("An interceptor can be called directly") func directCall() async throws {
    let session = Session.retained(fake: FakeTransport())
    let row = Interceptor(adapter: spy("a"), retrier: spy("b"))
    let urlRequest = try URLRequest(url: "http://a.test/", method: .get)
    let result = await withCheckedContinuation { continuation in
      row.adapt(urlRequest, for: session) { continuation.resume(returning: $0) }
    }
    #expect(try result.get().headers["X-Trail"] == "a")
  }
}
