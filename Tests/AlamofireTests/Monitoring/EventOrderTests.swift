import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("The order of events", .timeLimit(.minutes(5)))
struct EventOrderTests {
  private let spy = EventSpy()

  private func session(_ fake: FakeTransport, interceptor: (any RequestInterceptor)? = nil) -> Session {
    Session.retained(fake: fake, interceptor: interceptor, observers: SessionObservers(eventMonitors: [spy]))
  }

  static let eventsOfRequest = [
    "requestDidResume", "didCreateInitialURLRequest", "didCreateURLRequest", "didCreateTask", "didResumeTask",
    "didReceive response 200", "didReceive data 2", "didFinishCollecting",
    "didGatherMetrics", "didCompleteWithError nil",
  ]

  @Test("A data request") func dataRequest() async {
    _ = await session(FakeTransport()).request("http://a.test/").validate().end()
    #expect(
      spy.reported == Self.eventsOfRequest + [
        "didValidateRequest success", "didValidateRequest success", "didCompleteTask nil", "requestDidFinish",
        "didParseResponse Data?",
      ])
  }

  @Test(
    "Monitors are notified of both rules of the automatic validation until one fails",
    arguments: [
      (FakeReply.json("1"), ["success", "success"]), (.status(404, "x"), ["failure"]),
      (.text("x"), ["success", "failure"]),
    ])
  func automaticValidation(reply: FakeReply, results: [String]) async {
    let session = session(FakeTransport(reply, reply))
    let headers: HTTPHeaders = [.accept("application/json")]
    _ = await session.request("http://a.test/", headers: headers).validate().end()
    #expect(spy.reported.filter { $0.hasPrefix("didValidate") } == results.map { "didValidateRequest \($0)" })

    let before = spy.reported.count
    _ = await session.download("http://a.test/", headers: headers).validate().endedWithoutFile()
    let reported = spy.reported.dropFirst(before).filter { $0.hasPrefix("didValidate") }
    #expect(reported == results.map { "didValidateDownload \($0)" }, "downloads have the same two rules")
  }

  @Test("Awaited data and decoded values are reported with their type") func awaited() async throws {
    let request = session(FakeTransport(.json("[1]"))).request("http://a.test/")
    async let data = request.serializingData().value
    async let numbers = request.serializingDecodable([Int].self).value
    #expect(try await data == Data("[1]".utf8))
    #expect(try await numbers == [1])
    let parsed = spy.reported.filter { $0.hasPrefix("didParse") }
    #expect(Set(parsed) == ["didParseResponse Data", "didParseResponse Array<Int>"])
  }

  @Test("An adapter, a failure and a retry") func retry() async {
    let fake = FakeTransport(.failure(.timedOut))
    let once = Interceptor(
      adaptHandler: { request, _, completion in completion(.success(request)) },
      retryHandler: { request, _, _, completion in completion(request.retryCount == 0 ? .retry : .doNotRetry)
      })
    _ = await session(fake, interceptor: once).request("http://a.test/").end()
    #expect(
      spy.reported == [
        "requestDidResume", "didCreateInitialURLRequest", "didAdaptInitialRequest", "didCreateURLRequest",
        "didCreateTask", "didResumeTask", "didFinishCollecting", "didGatherMetrics",
        "didCompleteWithError URLError", "didCompleteTask error",
        "requestIsRetrying", "didCreateInitialURLRequest", "didAdaptInitialRequest", "didCreateURLRequest",
        "didCreateTask", "didResumeTask", "didReceive response 200", "didReceive data 2",
        "didFinishCollecting", "didGatherMetrics", "didCompleteWithError nil",
        "didCompleteTask nil", "requestDidFinish",
        "didParseResponse Data?",
      ])
  }

  @Test("A request that cannot be created") func creationFailure() async {
    _ = await session(FakeTransport()).request("").end()
    #expect(
      spy.reported == [
        "requestDidResume", "didFailToCreateURLRequest", "requestDidFinish", "didParseResponse Data?",
      ])
  }

  @Test("A request that cannot be adapted") func adaptationFailure() async {
    let bad = Adapter { _, _, completion in completion(.failure(URLError(.userAuthenticationRequired))) }
    _ = await session(FakeTransport(), interceptor: Interceptor(adapters: [bad])).request("http://a.test/")
      .end()
    #expect(
      spy.reported == [
        "requestDidResume", "didCreateInitialURLRequest", "didFailToAdaptURLRequest", "requestDidFinish",
        "didParseResponse Data?",
      ])
  }

  @Test("A retry that cannot be adapted has no task") func adaptationFailureOfRetry() async {
    let once = SpyInterceptor(
      adapt: { request, count in count == 1 ? .success(request) : .failure(TestError()) },
      retry: { _, _, count in count == 1 ? .retry : .doNotRetry })
    _ = await session(FakeTransport(.failure(.timedOut)), interceptor: once).request("http://a.test/").end()
    #expect(
      spy.reported.suffix(6) == [
        "didCompleteTask error", "requestIsRetrying", "didCreateInitialURLRequest",
        "didFailToAdaptURLRequest", "requestDidFinish", "didParseResponse Data?",
      ])
    #expect(spy.reported.filter { $0.hasPrefix("didCompleteTask") }.count == 1)
  }

  @Test("A rejected response") func validationFailure() async {
    _ = await session(FakeTransport(.status(404))).request("http://a.test/").validate().end()
    #expect(
      spy.reported.suffix(5) == [
        "didCompleteWithError nil", "didValidateRequest failure", "didCompleteTask error", "requestDidFinish",
        "didParseResponse Data?",
      ])
  }

  @Test("A redirect") func redirect() async {
    _ = await session(FakeTransport(.redirect(302, to: "/next"))).request("http://a.test/").end()
    #expect(spy.reported.contains("willPerformHTTPRedirection 302 http://a.test/next"))
    #expect(spy.reported.filter { $0.hasPrefix("didReceive response") } == ["didReceive response 200"])
  }

  @Test("Cancelled while it is sent") func cancellation() async {
    let (reached, gate) = (Latch(), Latch())
    let fake = FakeTransport(.text("ok").held(by: gate, reached: reached))
    let request = session(fake).request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    for _ in 0..<100 { request.cancel() }
    gate.open()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    #expect(
      spy.reported.suffix(8) == [
        "requestDidCancel", "didCancelTask", "didFinishCollecting", "didGatherMetrics",
        "didCompleteWithError URLError", "didCompleteTask error", "requestDidFinish",
        "didParseResponse Data?",
      ])
    #expect(spy.reported.filter { $0 == "requestDidCancel" }.count == 1)
  }

  @Test("Suspended and resumed many times over") func suspension() async {
    let request = session(FakeTransport()).request("http://a.test/")
    for _ in 0..<100 { request.suspend() }
    for _ in 0..<100 { request.resume() }
    _ = await request.end()
    let reported = spy.reported.filter { $0.hasPrefix("requestDid") }
    #expect(reported == ["requestDidSuspend", "requestDidResume", "requestDidFinish"])
  }

  @Test("An upload") func upload() async {
    _ = await session(FakeTransport()).upload(Data(count: 10), to: "http://a.test/").end()
    #expect(
      spy.reported == [
        "requestDidResume", "didCreateInitialURLRequest", "didCreateUploadable", "didCreateURLRequest",
        "didCreateTask", "didResumeTask", "didSendBodyData 10", "didReceive response 200",
        "didReceive data 2",
        "didFinishCollecting", "didGatherMetrics", "didCompleteWithError nil", "didCompleteTask nil",
        "requestDidFinish", "didParseResponse Data?",
      ])
  }

  @Test("A stream that is uploaded") func streamUpload() async throws {
    let server = try HTTPTestServer()
    let session = Session(eventMonitors: [spy])
    let stream = InputStream(data: Data(count: 10))
    let response = await session.upload(stream, to: server.url("/post")).end()
    #expect(response.error == nil)
    #expect(spy.reported.contains("didProvideInputStream"))
    #expect(spy.reported.contains("didSendBodyData 10"))
  }

  @Test("A download") func download() async throws {
    let server = try HTTPTestServer()
    let session = Session(eventMonitors: [spy])
    let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    let task = session.download(server.url("/bytes/1000"), to: { _, _ in (file, []) }).validate()
      .serializingDownloadedFileURL()
    #expect(try await task.value == file)
    #expect(
      spy.reported == [
        "requestDidResume", "didCreateInitialURLRequest", "didCreateURLRequest", "didCreateTask",
        "didResumeTask", "didWriteData 1000 1000 1000", "didFinishDownloadingTo", "didCreateDestinationURL",
        "didFinishDownloadingUsing success", "didFinishCollecting", "didGatherMetrics",
        "didCompleteWithError nil", "didValidateDownload success", "didValidateDownload success",
        "didCompleteTask nil", "requestDidFinish", "didParseResponse URL",
      ])
  }

  static let endOfMovedTask = ["didFinishCollecting", "didGatherMetrics", "didCompleteWithError nil"]

  @Test("A download that cannot be moved fails, but not its task") func failedMove() async throws {
    let folder = try TemporaryFolder()
    let target = folder["missing"].appendingPathComponent("file")
    let request = session(FakeTransport()).download("http://a.test/", to: { _, _ in (target, []) }).validate()
    #expect(await request.ended().error?.isDownloadedFileMoveError == true)
    #expect(
      spy.reported.suffix(9) == [
        "didFinishDownloadingTo", "didCreateDestinationURL", "didFinishDownloadingUsing failure",
      ] + Self.endOfMovedTask + ["didCompleteTask error", "requestDidFinish", "didParseResponse URL?"])
  }

  @Test("A download that is cancelled while it is moved") func cancelledMove() async throws {
    let session = session(FakeTransport())
    let files = Recorder<URL>()
    let destination: DownloadRequest.Destination = { file, _ in
      files.add(file)
      session.cancelAllRequests()
      return (file, [])
    }
    let request = session.download("http://a.test/", to: destination)
    #expect(await request.ended().error?.isExplicitlyCancelledError == true)
    let file = try #require(files.values.first)
    #expect(files.count == 1 && !FileManager.default.fileExists(atPath: file.path))
    #expect(
      spy.reported.suffix(9) == [
        "requestDidCancel", "didCancelTask", "didFinishDownloadingUsing failure",
      ] + Self.endOfMovedTask + ["didCompleteTask error", "requestDidFinish", "didParseResponse URL?"])
  }

  @Test("A retry after a move that has failed announces the next file") func retriedMove() async throws {
    let folder = try TemporaryFolder()
    let target = folder["new"].appendingPathComponent("file")
    let once = SpyInterceptor(retry: { _, _, count in
      try? FileManager.default.createDirectory(
        at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
      return count == 1 ? .retry : .doNotRetry
    })
    let fake = FakeTransport(.text("first"), .text("second"))
    let request = session(fake, interceptor: once).download("http://a.test/", to: { _, _ in (target, []) })
    #expect(await request.ended().error == nil)
    #expect(try Data(contentsOf: target) == Data("second".utf8))
    let files = spy.reported.filter { $0.hasPrefix("didFinishDownloading") || $0.hasPrefix("didComplete") }
    #expect(
      files == [
        "didFinishDownloadingTo", "didFinishDownloadingUsing failure", "didCompleteWithError nil",
        "didCompleteTask error", "didFinishDownloadingTo", "didFinishDownloadingUsing success",
        "didCompleteWithError nil", "didCompleteTask nil",
      ])
  }

  @Test("A download that fails announces no file") func brokenDownload() async {
    let fake = FakeTransport(.failure(.connectionLost))
    #expect(await session(fake).download("http://a.test/").ended().error != nil)
    #expect(
      spy.reported.suffix(6) == [
        "didFinishCollecting", "didGatherMetrics", "didCompleteWithError URLError", "didCompleteTask error",
        "requestDidFinish", "didParseResponse URL?",
      ])
  }

  /// A monitor that records the responses of handlers, and whether they failed.
  private final class ParseSpy: EventMonitor {
    let queue = DispatchQueue(label: "parse spy")
    private let events = Recorder<String>()

    /// The recorded events, after all dispatched events are delivered.
    var reported: [String] {
      queue.sync {}
      return events.values
    }

    func requestIsRetrying(_ request: Request) { events.add("retrying") }
    func requestDidFinish(_ request: Request) { events.add("finish") }
    func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
      add(response)
    }
    func request<Value: Sendable>(
      _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
    ) { add(response) }

    private func add<Value>(_ response: DataResponse<Value, AFError>) {
      let result =
        response.error.map { $0.isResponseSerializationError ? "unreadable" : "failed" } ?? "parsed"
      events.add("\(Value.self) \(result)")
    }
  }

  @Test("Each attempt reports the responses of all handlers that it has served") func retriedSerializer()
    async
  {
    let parses = ParseSpy()
    let fake = FakeTransport(.text("not JSON"), .json("[1]"))
    let request = Session.retained(
      fake: fake, interceptor: SpyInterceptor(retries: 1),
      observers: SessionObservers(eventMonitors: [parses])
    ).request("http://a.test/", shouldAutomaticallyResume: false)
    request.response(queue: .global()) { _ in }
    let text = request.serializingString(automaticallyCancelling: false)
    request.responseDecodable(of: [Int].self, queue: .global()) { _ in }
    let last = request.serializingData()
    request.resume()
    #expect(await text.response.value == "[1]")
    #expect(await last.response.value == Data("[1]".utf8))
    #expect(
      parses.reported == [
        "Optional<Data> parsed", "String parsed", "Array<Int> unreadable", "retrying", "finish",
        "Optional<Data> parsed", "String parsed", "Array<Int> parsed", "Data parsed",
      ])
  }

  @Test("The failure of a serializer is reported although a retrier replaces it", arguments: [false, true])
  func replacedFailure(isAwaited: Bool) async {
    let parses = ParseSpy()
    let spy = SpyInterceptor(retry: { _, _, _ in .doNotRetryWithError(TestError()) })
    let request = Session.retained(
      fake: FakeTransport(.text("not JSON")), interceptor: spy,
      observers: SessionObservers(eventMonitors: [parses])
    ).request("http://a.test/")
    let error =
      isAwaited
      ? await request.serializingDecodable([Int].self).response.error
      : await withCheckedContinuation { continuation in
        request.responseDecodable(of: [Int].self, queue: .global()) {
          continuation.resume(returning: $0.error)
        }
      }
    #expect(error?.isRequestRetryError == true)
    #expect(parses.reported == ["finish", "Array<Int> unreadable"])
  }

  @Test("The body of a redirect is not reported as written", arguments: [false, true])
  func redirectedDownload(wantsProgress: Bool) async {
    let fake = FakeTransport(
      .status(302, "elsewhere", headers: [("Location", "/file")]), .text("content"))
    let request = session(fake).download("http://a.test/")
    if wantsProgress { request.downloadProgress(queue: .global()) { _ in } }
    let file = await request.serializingDownloadedFileURL().response.fileURL
    defer { if let file { try? FileManager.default.removeItem(at: file) } }
    #expect(spy.reported.filter { $0.hasPrefix("didWriteData") } == ["didWriteData 7 7 7"])
  }

  @Test("A handler that is added after the end") func lateHandler() async {
    let request = session(FakeTransport()).request("http://a.test/")
    _ = await request.end()
    let before = spy.reported
    _ = await request.end()
    #expect(spy.reported == before + ["requestDidFinish", "didParseResponse Data?"])
  }

  @Test("A monitor of one request receives its events only") func ownMonitor() async {
    let session = Session.retained(fake: FakeTransport())
    let (first, second) = (session.request("http://a.test/1"), session.request("http://a.test/2"))
    first.eventMonitor(spy)
    _ = await second.end()
    #expect(spy.reported.isEmpty)
    _ = await first.end()
    #expect(
      spy.reported == [
        "requestDidResume", "didCreateInitialURLRequest", "didCreateURLRequest", "didCreateTask",
        "didResumeTask", "didGatherMetrics", "didCompleteTask nil", "requestDidFinish",
        "didParseResponse Data?",
      ])
  }

  @Test("Closures are called for events") func closures() async {
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "closures"))
    let events = Recorder<String>()
    monitor.requestDidResume = { _ in events.add("resume") }
    monitor.requestDidCreateTask = { _, task in events.add("task \(task.originalRequest?.url?.path ?? "")") }
    monitor.requestDidParseResponse = { _, response in events.add("parse \(response.data?.count ?? -1)") }
    let session = Session.retained(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [monitor]))
    _ = await session.request("http://a.test/x").end()
    monitor.queue.sync {}
    #expect(events.values == ["resume", "task /x", "parse 2"])
  }
}
