import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization
import Testing

@Suite("Adapters", .timeLimit(.minutes(5)))
struct AdaptationTests {
  let fake = FakeTransport()

  static func adding(_ value: String) -> SpyInterceptor.Adapt {
    { request, _ in
      var request = request
      request.setValue(
        (request.value(forHTTPHeaderField: "X-Trail") ?? "") + value, forHTTPHeaderField: "X-Trail")
      return .success(request)
    }
  }

  /// Stores or releases its completion, or calls it twice.
  final class Odd: RequestInterceptor {
    enum Manner { case forgets, answersTwice, keeps }
    typealias Completion = @Sendable (Result<URLRequest, any Error>) -> Void
    let manner: Manner
    let kept = Recorder<Completion>()

    init(_ manner: Manner) { self.manner = manner }

    func adapt(_ urlRequest: URLRequest, for session: Session, completion: @escaping Completion) {
      switch manner {
      case .forgets: break
      case .keeps: kept.add(completion)
      case .answersTwice:
        completion(.success(urlRequest))
        completion(.failure(TestError()))
      }
    }
  }

  @Test("The session's adapter precedes the request's") func order() async {
    let recorder = Recorder<String>()
    let session = Session.retained(
      fake: fake, interceptor: SpyInterceptor("session", recorder: recorder, adapt: Self.adding("s")))
    let request = session.request(
      "http://a.test/", interceptor: SpyInterceptor("request", recorder: recorder, adapt: Self.adding("r")))
    let response = await request.end()
    #expect(response.error == nil)
    #expect(fake.requests.first?.value("X-Trail") == "sr")
    #expect(recorder.values == ["session adapts", "request adapts"])
    #expect(request.request?.value(forHTTPHeaderField: "X-Trail") == "sr")
    #expect(request.requests.count == 1)
  }

  @Test("A failure ends the chain") func failure() async {
    let second = SpyInterceptor()
    let session = Session.retained(
      fake: fake, interceptor: SpyInterceptor(adapt: { _, _ in .failure(TestError()) }))
    let response = await session.request("http://a.test/", interceptor: second).end()
    guard case .requestAdaptationFailed(let error)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error as? TestError == TestError())
    #expect(second.adaptCount == 0)
    #expect(second.retryCount == 1)
    #expect(fake.requests.isEmpty)
    #expect(response.request?.url?.absoluteString == "http://a.test/")
  }

  @Test("An error that also stands for the end of a session is a failure of the adapter that answers with it")
  func errorOfAnotherSession() async {
    let spy = EventSpy()
    let interceptor = SpyInterceptor(adapt: { _, _ in .failure(AFError.sessionDeinitialized) })
    let session = Session.retained(
      fake: fake, interceptor: interceptor, observers: SessionObservers(eventMonitors: [spy]))
    let response = await session.request("http://a.test/").end()
    guard case .requestAdaptationFailed(AFError.sessionDeinitialized)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(spy.reported.contains("didFailToAdaptURLRequest"))
    #expect(response.request?.url?.absoluteString == "http://a.test/")
    #expect(interceptor.retryCount == 1)
    #expect(fake.requests.isEmpty)
  }

  @Test("The adapted request is validated") func validation() async {
    let session = Session.retained(
      fake: fake,
      interceptor: SpyInterceptor(adapt: { request, _ in
        var request = request
        request.httpBody = Data("x".utf8)
        return .success(request)
      }))
    let response = await session.request("http://a.test/").end()
    guard case .requestAdaptationFailed(AFError.urlRequestValidationFailed)? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(fake.requests.isEmpty)
  }

  @Test("A completion that is released without a call fails the request") func releasedCompletion() async {
    let response = await Session.retained(fake: fake, interceptor: Odd(.forgets)).request("http://a.test/")
      .end()
    #expect(response.error?.isRequestAdaptationError == true)
    #expect(response.error?.underlyingError?.localizedDescription.contains("completion") == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("The first of two completions counts") func twoCompletions() async {
    let response = await Session.retained(fake: fake, interceptor: Odd(.answersTwice)).request(
      "http://a.test/"
    )
    .end()
    #expect(response.error == nil)
    #expect(fake.requests.count == 1)
  }

  @Test("A cancelled request does not wait for its adapter") func cancelledRequest() async {
    let (odd, spy) = (Odd(.keeps), EventSpy())
    let session = Session.retained(
      fake: fake, interceptor: odd, observers: SessionObservers(eventMonitors: [spy]))
    let request = session.request("http://a.test/")
    async let response = request.end()
    let completions = await odd.kept.wait(for: 1)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    completions[0](.failure(TestError()))
    #expect(fake.requests.isEmpty)
    #expect(request.error?.isExplicitlyCancelledError == true)
    #expect(
      !spy.reported.contains("didFailToAdaptURLRequest"), "the cancellation is no failure of an adapter")
    #expect(request.request?.url?.absoluteString == "http://a.test/")
  }

  @Test("A completion from another thread is accepted") func otherThread() async throws {
    let odd = Odd(.keeps)
    let request = Session.retained(fake: fake, interceptor: odd).request("http://a.test/")
    async let response = request.end()
    let completion = try await odd.kept.value(0)
    DispatchQueue.global().async {
      completion(Result { try URLRequest(url: "http://b.test/", method: .get) })
    }
    #expect(await response.error == nil)
    #expect(fake.urls == ["http://b.test/"])
  }

  @Test("The state has the request and the session") func state() async {
    final class Stateful: RequestInterceptor {
      let seen = Recorder<(UUID, ObjectIdentifier)>()
      func adapt(
        _ urlRequest: URLRequest, using state: RequestAdapterState,
        completion: @escaping @Sendable (Result<URLRequest, any Error>) -> Void
      ) {
        seen.add((state.requestID, ObjectIdentifier(state.session)))
        completion(.success(urlRequest))
      }
    }
    let adapter = Stateful()
    let session = Session.retained(fake: fake, interceptor: adapter)
    let request = session.request("http://a.test/")
    _ = await request.end()
    #expect(adapter.seen.values.map(\.0) == [request.id])
    #expect(adapter.seen.values.map(\.1) == [ObjectIdentifier(session)])
  }

  @Test("An adapter that makes the request invalid fails it with an error") func invalidRequest() async {
    let session = Session.retained(
      fake: fake,
      interceptor: SpyInterceptor(adapt: { request, _ in
        var request = request
        request.url = nil
        return .success(request)
      }))
    let response = await session.request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .badURL)
  }
}
