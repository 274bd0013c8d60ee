import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@Suite("Session as the delegate of its requests", .timeLimit(.minutes(5)))
struct RequestDelegateTests {
  private static let failure = AFError.sessionTaskFailed(error: URLError(.timedOut))

  private func answer(
    of session: Session, for request: Request, to error: AFError = failure
  ) async -> RetryResult {
    await withCheckedContinuation { continuation in
      session.retryResult(for: request, dueTo: error) { continuation.resume(returning: $0) }
    }
  }

  @Test("A request returns its session until the session is released") func session() {
    let configuration = URLSessionConfiguration.af.default
    configuration.timeoutIntervalForRequest = 7
    var session: Session? = Session(
      fake: FakeTransport(), configuration: configuration, startRequestsImmediately: false)
    let request = session?.request("http://a.test/")
    #expect(request?.delegate === session)
    #expect(request?.delegate?.startImmediately == false)
    #expect(request?.delegate?.sessionConfiguration.timeoutIntervalForRequest == 7)
    session = nil
    #expect(request?.delegate == nil)
  }

  @Test("readyToPerform creates the request and does not send it before resume") func readyToPerform() async {
    let fake = FakeTransport()
    let session = Session.retained(fake: fake, startRequestsImmediately: false)
    let request = session.request("http://a.test/")
    let made = Recorder<URLRequest>()
    request.onURLRequestCreation(on: .global()) { made.add($0) }
    request.delegate?.readyToPerform(request: request)
    await made.wait(for: 1)
    session.readyToPerform(request: request)
    #expect(fake.requests.isEmpty)
    request.resume()
    #expect(await request.end().error == nil)
    session.readyToPerform(request: request)
    #expect(fake.requests.count == 1)
    #expect(made.count == 1)
  }

  @Test("The session's retriers precede the request's") func retriers() async {
    let recorder = Recorder<String>()
    let sessions = SpyInterceptor("session", recorder: recorder)
    let own = SpyInterceptor("request", recorder: recorder, retry: { _, _, _ in .retryWithDelay(3) })
    let session = Session.retained(fake: FakeTransport(), interceptor: sessions)
    let request = session.request("http://a.test/", interceptor: own)
    guard case .retryWithDelay(3) = await answer(of: session, for: request) else {
      Issue.record("the request's own retrier was not heard")
      return
    }
    #expect(recorder.values == ["session retries", "request retries"])
    #expect(own.errors.values.first?.asAFError?.isSessionTaskError == true)
    #expect(request.isInitialized, "asking changes nothing")
  }

  @Test("An error of a retrier contains both errors") func retrierError() async {
    let retrier = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError(text: "no")) })
    let session = Session.retained(fake: FakeTransport(), interceptor: retrier)
    let request = session.request("http://a.test/")
    guard case .doNotRetryWithError(let error) = await answer(of: session, for: request),
      case .requestRetryFailed(let retryError, let original)? = error.asAFError
    else {
      Issue.record("no error of the retrier")
      return
    }
    #expect(retryError as? TestError == TestError(text: "no"))
    #expect(original.asAFError?.isSessionTaskError == true)
  }

  @Test("No retrier is called for a cancelled request") func cancelledRequest() async {
    let retrier = SpyInterceptor(retries: 5)
    let session = Session.retained(fake: FakeTransport(), interceptor: retrier)
    let request = session.request("http://a.test/").cancel()
    guard case .doNotRetry = await answer(of: session, for: request) else {
      Issue.record("a cancelled request is retried")
      return
    }
    #expect(retrier.retryCount == 0)
  }

  @Test("A finished request is sent again", arguments: [nil, 0, 0.01]) func finishedRequest(
    delay: TimeInterval?
  ) async {
    let fake = FakeTransport(.status(503, "busy"), .text("fine"))
    let session = Session.retained(fake: fake)
    let spy = EventSpy()
    let retried = Recorder<Int>()
    let request = session.request("http://a.test/").validate().eventMonitor(spy)
    let first = Recorder<AFError?>()
    request.response(queue: .global()) { first.add($0.error) }
    await first.wait(for: 1)
    #expect(request.isFinished)
    request.onURLSessionTaskCreation(on: .global()) { _ in retried.add(1) }
    session.retryRequest(request, withDelay: delay)
    // The tasks of both attempts.
    await retried.wait(for: 2)
    let second = await request.end()
    #expect(second.error == nil)
    #expect(second.data == Data("fine".utf8))
    #expect(request.retryCount == 1)
    #expect(fake.requests.count == 2)
    #expect(request.requests.count == 2)
    #expect(first.count == 1, "who was served is not called again")
    #expect(spy.reported.count { $0 == "requestIsRetrying" } == 1)
    #expect(spy.reported.count { $0 == "requestDidFinish" } >= 2)
  }

  @Test("A cancelled request is not sent again") func cancelledRetry() async {
    let fake = FakeTransport()
    let session = Session.retained(fake: fake)
    let request = session.request("http://a.test/").cancel()
    _ = await request.end()
    session.retryRequest(request, withDelay: nil)
    #expect(request.isCancelled)
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
    #expect(fake.requests.isEmpty)
    #expect(request.retryCount == 0)
  }

  @Test("A finished request keeps its outcome after the end of its session", arguments: [false, true])
  func endedSession(isCancelled: Bool) async {
    let fake = FakeTransport(.text("one"))
    let session = Session.retained(fake: fake)
    let request = session.request("http://a.test/")
    #expect(await request.end().error == nil)
    if isCancelled {
      session.session.invalidateAndCancel()
    } else {
      session.session.finishTasksAndInvalidate()
    }
    session.retryRequest(request, withDelay: nil)
    #expect(request.isFinished && request.retryCount == 0 && request.error == nil)
    #expect(request.data == Data("one".utf8) && request.response != nil)
    #expect(await request.end().value == Data("one".utf8))
    #expect(fake.requests.count == 1)
  }

  @Test("A running request is not changed") func runningRequest() async {
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(FakeReply.text("once").held(by: gate, reached: reached))
    let session = Session.retained(fake: fake)
    let request = session.request("http://a.test/")
    session.retryRequest(request, withDelay: nil)
    #expect(request.isInitialized)
    async let response = request.end()
    await reached.wait()
    session.retryRequest(request, withDelay: nil)
    session.cleanup(after: request)
    gate.open()
    #expect(await response.data == Data("once".utf8))
    #expect(fake.requests.count == 1)
    #expect(request.retryCount == 0)
  }

  @Test("A retrier can retry by the session") func retryBySession() async {
    /// Stores its completions, and retries by the session.
    final class Postponing: RequestInterceptor {
      let held = Recorder<@Sendable (RetryResult) -> Void>()
      func retry(
        _ request: Request, for session: Session, dueTo error: any Error,
        completion: @escaping @Sendable (RetryResult) -> Void
      ) {
        held.add(completion)
        session.retryRequest(request, withDelay: 0.001)
      }
    }
    let retrier = Postponing()
    let fake = FakeTransport(.failure(.timedOut), .text("fine"))
    let request = Session.retained(fake: fake, interceptor: retrier).request("http://a.test/")
    #expect(await request.end().data == Data("fine".utf8))
    #expect(request.retryCount == 1)
    // The completions are called too late.
    for completion in retrier.held.values { completion(.retry) }
    #expect(fake.requests.count == 2)
  }

  @Test("A finished stream is sent again") func finishedStream() async {
    let fake = FakeTransport(.text("one"), .text("two"))
    let session = Session.retained(fake: fake)
    let request = session.streamRequest("http://a.test/")
    let first = Recorder<String>()
    let ended = Recorder<Int>()
    request.responseStreamString(on: DispatchQueue(label: "first")) { stream in
      if let value = stream.value { first.add(value) }
      if stream.completion != nil { ended.add(1) }
    }
    await ended.wait(for: 1)
    let tasks = Recorder<Int>()
    let finished = Recorder<Int>()
    let watcher = ClosureEventMonitor(queue: DispatchQueue(label: "watcher"))
    watcher.requestDidFinish = { _ in finished.add(1) }
    request.eventMonitor(watcher)
    request.onURLSessionTaskCreation(on: .global()) { _ in tasks.add(1) }
    while !request.isFinished { await Task.yield() }
    session.retryRequest(request, withDelay: nil)
    await tasks.wait(for: 2)
    await finished.wait(for: 1)
    #expect(fake.requests.count == 2)
    #expect(first.values == ["one"])
    #expect(request.error == nil)
  }

  @Test("The file of a running upload is not removed") func fileOfRunningUpload() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let folder = try TemporaryFolder()
    let file = try folder.file("body")
    let session = Session.real()
    let request = session.upload(
      UploadRequest.Uploadable.file(file, shouldRemove: true),
      with: try URLRequest(url: server.url("/"), method: .post), nil, nil, .default)
    async let end = request.end()
    await gate.waitUntilReached()
    session.cleanup(after: request)
    #expect(FileManager.default.fileExists(atPath: file.path))
    gate.open()
    #expect(await end.error == nil)
    session.cleanup(after: request)
    #expect(!FileManager.default.fileExists(atPath: file.path))
  }

  @Test("The file of a body is removed with the request") func fileOfBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("body")
    try Data("x".utf8).write(to: file)
    let session = Session.real()
    let request = session.upload(
      UploadRequest.Uploadable.file(file, shouldRemove: true),
      with: try URLRequest(url: server.url("/"), method: .post),
      nil, nil, .default)
    _ = await request.end()
    session.cleanup(after: request)
    session.cleanup(after: request)
    #expect(!FileManager.default.fileExists(atPath: file.path))
  }
}
