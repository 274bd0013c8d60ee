import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Retriers", .timeLimit(.minutes(5)))
struct RetryTests {
  struct Item: Decodable, Sendable { let id: Int }

  static let unauthorized = FakeTransport { _, _ in .status(401, "no") }

  private func decoded(_ request: DataRequest) async -> AFDataResponse<Item> {
    await withCheckedContinuation { continuation in
      request.responseDecodable(of: Item.self, queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  @Test("A retrier is called for each failed attempt and serializer") func calls() async {
    let spy = SpyInterceptor(retries: 1)
    let request = Session.retained(fake: Self.unauthorized, interceptor: spy).request("http://a.test/")
      .validate()
    let response = await decoded(request)
    #expect(response.error?.responseCode == 401)
    #expect(spy.adaptCount == 2)
    #expect(spy.retryCount == 3)
    #expect(request.retryCount == 1)
    #expect(request.allMetrics.count == 2)
  }

  @Test("The retriers of the request and the session are called in order") func order() async {
    let recorder = Recorder<String>()
    let sessions = SpyInterceptor("session", recorder: recorder, retries: 1)
    let own = SpyInterceptor("request", recorder: recorder, retries: 1)
    let request = Session.retained(fake: Self.unauthorized, interceptor: sessions)
      .request("http://a.test/", interceptor: own).validate()
    _ = await decoded(request)
    #expect(sessions.retryCount == 4)
    #expect(own.retryCount == 3)
    #expect(sessions.adaptCount == 3)
    #expect(own.adaptCount == 3)
    #expect(request.retryCount == 2)
    #expect(
      recorder.values.filter { $0.hasSuffix("retries") }.prefix(3)
        == ["session retries", "session retries", "request retries"])
  }

  @Test("Each failed serializer calls the retrier") func serializers() async {
    let spy = SpyInterceptor(
      adapt: { request, count in count == 1 ? .success(request) : .failure(TestError()) },
      retry: { _, _, count in count == 1 ? .retry : .doNotRetry })
    let request = Session.retained(fake: Self.unauthorized, interceptor: spy).request("http://a.test/")
      .validate()
    let errors = Recorder<AFError?>()
    request.responseDecodable(of: Item.self, queue: .global()) { errors.add($0.error) }
    request.responseString(queue: .global()) { errors.add($0.error) }
    await errors.wait(for: 2)
    #expect(spy.adaptCount == 2)
    #expect(spy.retryCount == 4)
    #expect(request.retryCount == 1)
    #expect(errors.values.allSatisfy { $0?.isRequestAdaptationError == true })
  }

  @Test("An error of a retrier is the error of the request") func retrierError() async {
    let spy = SpyInterceptor(retry: { _, _, count in .doNotRetryWithError(TestError(text: "\(count)")) })
    let request = Session.retained(fake: Self.unauthorized, interceptor: spy).request("http://a.test/")
      .validate()
    let response = await decoded(request)
    #expect(spy.retryCount == 2)
    guard case .requestRetryFailed(let second, let original)? = response.error,
      case .requestRetryFailed(let first, let cause)? = original.asAFError
    else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(second as? TestError == TestError(text: "2"))
    #expect(first as? TestError == TestError(text: "1"))
    #expect(cause.asAFError?.responseCode == 401)
    #expect(request.retryCount == 0)
    #expect(request.error?.isRequestRetryError == true)
  }

  @Test("An error of a retrier reaches only the handler whose serializer failed") func errorOfHandler() async
  {
    let fake = FakeTransport(.text("not JSON"))
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    async let decoded = decoded(request)
    async let plain = request.serializingString().response
    #expect(await decoded.error?.isRequestRetryError == true)
    #expect(await plain.value == "not JSON")
    #expect(spy.retryCount == 1)
    #expect(request.error == nil)
  }

  @Test("An error of a retrier about a later attempt is not one of the handler that failed before")
  func errorAfterRetryOfHandler() async {
    let fake = FakeTransport(.text("not JSON"), .failure(.connectionLost))
    // Asked about the handler, the transport, and the handler again.
    let spy = SpyInterceptor(retry: { _, _, count in
      switch count {
      case 1: .retry
      case 2: .doNotRetryWithError(TestError())
      default: .doNotRetry
      }
    })
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    let response = await decoded(request)
    #expect(fake.requests.count == 2 && spy.retryCount == 3)
    #expect(response.error?.isRequestRetryError == true)
    #expect(request.error?.isRequestRetryError == true, "the error did not reach the request")
  }

  @Test("An error of a retrier is thrown by an awaited response") func awaitedError() async {
    let fake = FakeTransport(.text("not JSON"))
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let response = await Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
      .serializingDecodable(Item.self).response
    #expect(response.error?.isRequestRetryError == true)
  }

  @Test("A failed serializer can cause another attempt") func serializerRetry() async {
    let fake = FakeTransport(.text("not JSON"), .json(#"{"id": 1}"#))
    let spy = SpyInterceptor(retries: 5)
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    let strings = Recorder<String?>()
    request.responseString(queue: .global()) { strings.add($0.value) }
    #expect(await decoded(request).value?.id == 1)
    #expect(await strings.wait(for: 1) == [#"{"id": 1}"#], "every handler gets the last attempt, once")
    #expect(request.retryCount == 1)
  }

  @Test("A late handler can cause another attempt") func lateHandler() async {
    let fake = FakeTransport(.text("not JSON"), .json(#"{"id": 1}"#))
    let session = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1))
    let request = session.request("http://a.test/")
    #expect(await request.end().error == nil)
    #expect(await decoded(request).value?.id == 1)
    #expect(fake.requests.count == 2)
    #expect(request.isFinished)
    // If this request ended twice, two requests would share its entry in the session.
    let gate = Latch()
    let held = FakeTransport { _, _ in .ok.held(by: gate) }
    let other = Session.retained(fake: held)
    let requests = (0..<2).map { _ in other.request("http://a.test/").resume() }
    #expect(other.core.activeCount == 2)
    gate.open()
    for request in requests { #expect(await request.end().error == nil) }
    #expect(session.core.activeCount == 0)
  }

  @Test("After the end of its session a late handler causes no attempt", arguments: [false, true])
  func lateHandlerOfEndedSession(isCancelled: Bool) async {
    let fake = FakeTransport(.text("not JSON"), .json(#"{"id": 1}"#))
    let spy = SpyInterceptor(retries: 1)
    let session = Session.retained(fake: fake, interceptor: spy)
    let request = session.request("http://a.test/", method: .post)
    #expect(await request.end().error == nil)
    if isCancelled {
      session.session.invalidateAndCancel()
    } else {
      session.session.finishTasksAndInvalidate()
    }
    #expect(await decoded(request).error?.isResponseSerializationError == true)
    #expect(fake.requests.count == 1 && request.retryCount == 0 && spy.retryCount == 0)
    #expect(await request.end().value == Data("not JSON".utf8))
    #expect(request.isFinished && request.error == nil)
  }

  @Test("A late handler whose retry is cancelled keeps its failure", arguments: [false, true])
  func cancelledLateRetry(endsSession: Bool) async {
    let isCalled = Latch()
    let spy = SpyInterceptor(retry: { _, _, _ in
      isCalled.open()
      return .retryWithDelay(3600)
    })
    let fake = FakeTransport(.text("not JSON"))
    let session = Session.retained(fake: fake, interceptor: spy)
    let request = session.request("http://a.test/")
    #expect(await request.end().error == nil)
    async let response = decoded(request)
    await isCalled.wait()
    if endsSession { session.session.invalidateAndCancel() } else { request.cancel() }
    #expect(await response.error?.isResponseSerializationError == true)
    #expect(request.isFinished && request.error == nil)
    #expect(await request.end().value == Data("not JSON".utf8))
    #expect(fake.requests.count == 1 && request.retryCount == 0 && spy.retryCount == 1)
  }

  /// Decodes nothing, waits for a latch, and returns whether its task was cancelled.
  private struct TaskObserver: DataResponseSerializerProtocol {
    let wait: @Sendable () -> Void

    func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?) throws
      -> Bool
    {
      wait()
      return Task.isCancelled
    }
  }

  @Test("A cancellation does not reach the serializers of late handlers", arguments: [false, true])
  func cancelledWhileSerializing(asksBefore: Bool) async {
    let (isAsked, isSerializing) = (Latch(), Latch())
    let gate = DispatchSemaphore(value: 0)
    let spy = SpyInterceptor(retry: { _, _, _ in
      isAsked.open()
      return .retryWithDelay(3600)
    })
    let session = Session.retained(fake: FakeTransport(.text("not JSON")), interceptor: spy)
    let request = session.request("http://a.test/")
    #expect(await request.end().error == nil)
    async let first = asksBefore ? decoded(request) : nil
    if asksBefore { await isAsked.wait() }
    let observer = TaskObserver {
      isSerializing.open()
      if !asksBefore { _ = gate.wait(timeout: .now() + 60) }
    }
    async let isCancelled = withCheckedContinuation { continuation in
      request.response(queue: .global(), responseSerializer: observer) {
        continuation.resume(returning: $0.value)
      }
    }
    if asksBefore {
      request.cancel()
      #expect(await first?.error?.isResponseSerializationError == true)
    } else {
      await isSerializing.wait()
      request.cancel()
      gate.signal()
    }
    #expect(await isCancelled == false)
    #expect(request.isFinished && request.error == nil && spy.retryCount == (asksBefore ? 1 : 0))
  }

  @Test("An attempt for a late handler can be cancelled") func cancelledLateAttempt() async {
    let reached = Latch()
    let fake = FakeTransport(.text("not JSON"), .json("{}").held(by: Latch(), reached: reached))
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      "http://a.test/")
    #expect(await request.end().error == nil)
    async let response = decoded(request)
    await reached.wait()
    request.suspend()
    #expect(request.isSuspended)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    #expect(request.isCancelled && request.retryCount == 1)
  }

  @Test("A request with many attempts keeps the last hundred") func manyAttempts() async {
    let fake = FakeTransport { _, _ in .failure(.connectionLost) }
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 150)).request(
      "http://a.test/")
    #expect(await request.end().error != nil)
    #expect(fake.requests.count == 151 && request.retryCount == 150)
    #expect(request.requests.count == 100 && request.tasks.count == 100 && request.allMetrics.count == 100)
  }

  @Test("A handler without a serializer does not call the retrier") func plainHandler() async {
    let spy = SpyInterceptor()
    _ = await Session.retained(fake: FakeTransport(.status(204)), interceptor: spy).request("http://a.test/")
      .end()
    #expect(spy.retryCount == 0)
  }

  @Test("Any delay is accepted", arguments: [0.001, 0, -1, .nan, -.infinity])
  func delays(delay: TimeInterval) async {
    let spy = SpyInterceptor(retry: { _, _, count in count == 1 ? .retryWithDelay(delay) : .doNotRetry })
    let fake = FakeTransport(.failure(.connectionLost))
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    #expect(await request.end().error == nil)
    #expect(request.retryCount == 1)
  }

  @Test("A request with an endless delay can be cancelled", arguments: [TimeInterval.infinity, 1e300, 3600])
  func endless(delay: TimeInterval) async {
    let isCalled = Latch()
    let spy = SpyInterceptor(retry: { _, _, _ in
      isCalled.open()
      return .retryWithDelay(delay)
    })
    let fake = FakeTransport(.failure(.connectionLost))
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    async let response = request.end()
    await isCalled.wait()
    request.cancel()
    #expect(await response.error != nil)
    #expect(request.isCancelled)
    #expect(fake.requests.count == 1)
    #expect(request.retryCount == 0)
  }

  @Test("A cancellation during the delay of a retry keeps the failure", arguments: [false, true])
  func cancelledDelay(failsInSerializer: Bool) async {
    let isCalled = Latch()
    let spy = SpyInterceptor(retry: { _, _, _ in
      isCalled.open()
      return .retryWithDelay(3600)
    })
    let fake = FakeTransport(failsInSerializer ? .text("not JSON") : .failure(.connectionLost))
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    async let response = decoded(request)
    await isCalled.wait()
    request.cancel()
    let error = await response.error
    if failsInSerializer {
      #expect(error?.isResponseSerializationError == true)
    } else {
      #expect((error?.underlyingError as? URLError)?.code == .networkConnectionLost)
      #expect((request.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    }
    #expect(request.isCancelled && request.retryCount == 0 && fake.requests.count == 1)
  }

  @Test("A delay does not retain the session") func releasedSession() async {
    let isCalled = Latch()
    let spy = SpyInterceptor(retry: { _, _, _ in
      isCalled.open()
      return .retryWithDelay(3600)
    })
    var session: Session? = Session(fake: FakeTransport(.failure(.connectionLost)), interceptor: spy)
    weak let released = session
    let request = session?.request("http://a.test/")
    async let response = request?.end()
    await isCalled.wait()
    session = nil
    // Only the end of the session can end this delay.
    #expect(await response?.error != nil)
    #expect(released == nil)
  }

  @Test("A cancelled request does not call the retrier") func cancelled() async {
    let spy = SpyInterceptor(retries: 10)
    let reached = Latch()
    let fake = FakeTransport(.ok.held(by: Latch(), reached: reached))
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/").validate()
    async let response = decoded(request)
    await reached.wait()
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    #expect(spy.retryCount == 0)
  }

  /// Retains its completion, and never answers.
  private final class SilentRetrier: RequestInterceptor {
    let isAsked = Latch()
    private let completions = Recorder<@Sendable (RetryResult) -> Void>()

    func retry(
      _ request: Request, for session: Session, dueTo error: any Error,
      completion: @escaping @Sendable (RetryResult) -> Void
    ) {
      completions.add(completion)
      isAsked.open()
    }

    /// Answers after the cancellation.
    func answer() { for completion in completions.values { completion(.doNotRetry) } }
  }

  @Test("After a cancellation no further retrier is asked", arguments: [false, true])
  func cancelledWhileAsking(endsSession: Bool) async {
    let silent = SilentRetrier()
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let session = Session.retained(fake: FakeTransport(.failure(.connectionLost)), interceptor: silent)
    let request = session.request("http://a.test/", interceptor: spy).retry(using: spy)
    async let response = request.end()
    await silent.isAsked.wait()
    if endsSession { session.session.invalidateAndCancel() } else { request.cancel() }
    let error = await response.error
    #expect(spy.retryCount == 0)
    if endsSession {
      #expect(error?.isSessionInvalidatedError == true)
    } else {
      #expect((error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    }
  }

  @Test("After a cancellation an interceptor asks none of its other retriers", arguments: [false, true])
  func cancelledInterceptor(isLate: Bool) async {
    let silent = SilentRetrier()
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let fake = FakeTransport(isLate ? .text("not JSON") : .failure(.connectionLost))
    let request = Session.retained(fake: fake).request(
      "http://a.test/", interceptor: Interceptor(retriers: [silent, spy]))
    if isLate { #expect(await request.end().error == nil) }
    async let response = decoded(request)
    await silent.isAsked.wait()
    request.cancel()
    silent.answer()
    let error = await response.error
    #expect(spy.retryCount == 0)
    #expect(isLate ? error?.isResponseSerializationError == true : error?.isSessionTaskError == true)
  }

  @Test("After the cancellation of a late handler no further retrier is asked")
  func cancelledWhileAskingForLateHandler() async {
    let silent = SilentRetrier()
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let request = Session.retained(fake: FakeTransport(.text("not JSON")), interceptor: silent)
      .request("http://a.test/", interceptor: spy)
    #expect(await request.end().error == nil)
    async let response = decoded(request)
    await silent.isAsked.wait()
    request.cancel()
    #expect(await response.error?.isResponseSerializationError == true)
    #expect(spy.retryCount == 0 && request.isFinished)
  }

  @Test("A cancellation by the retrier ends the request") func cancelledByRetrier() async {
    let spy = SpyInterceptor(retry: { request, _, _ in
      request.cancel()
      return .retry
    })
    let fake = FakeTransport(.failure(.connectionLost))
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    let response = await decoded(request)
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(request.isCancelled)
    #expect(spy.retryCount == 1)
    #expect(fake.requests.count == 1)
  }

  @Test("A completion that is released without a call ends the request") func releasedCompletion() async {
    final class Forgetful: RequestInterceptor {
      func retry(
        _ request: Request, for session: Session, dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
      ) {}
    }
    let fake = FakeTransport(.failure(.timedOut))
    let response = await Session.retained(fake: fake, interceptor: Forgetful()).request("http://a.test/")
      .end()
    #expect((response.error?.underlyingError as? URLError)?.code == .timedOut)
  }

  @Test("A retry resets the state of the last attempt") func reset() async {
    let fake = FakeTransport(.status(500, "broken"), .failure(.connectionLost))
    let seen = Recorder<Bool>()
    let spy = SpyInterceptor(
      adapt: { request, _ in .success(request) },
      retry: { _, _, count in count <= 1 ? .retry : .doNotRetry })
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/").validate()
    let response = await request.end()
    #expect(response.data == nil)
    #expect(response.response == nil)
    #expect(request.data == nil)
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    _ = seen
  }

  @Test("Validators run once per attempt") func validators() async {
    let count = Recorder<Int>()
    let fake = FakeTransport(.status(500), .status(500), .status(200, "ok"))
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 9)).request(
      "http://a.test/"
    )
    .validate { _, response, _ in
      count.add(response.statusCode)
      return response.statusCode == 200 ? .success(()) : .failure(TestError())
    }
    #expect(await request.end().error == nil)
    #expect(count.values == [500, 500, 200])
    #expect(request.retryCount == 2)
  }

  @Test("The body of an attempt is not shown for a later attempt that is not sent")
  func bodyOfEarlierAttempt()
    async
  {
    let spy = SpyInterceptor(
      adapt: { request, count in count == 1 ? .success(request) : .failure(TestError()) },
      retry: { _, _, count in count == 1 ? .retry : .doNotRetry })
    let request = Session.retained(fake: Self.unauthorized, interceptor: spy).request("http://a.test/")
      .validate()
    let response = await request.end()
    #expect(response.error?.isRequestAdaptationError == true && request.retryCount == 1)
    #expect(response.response == nil && response.data == nil)
  }
}
