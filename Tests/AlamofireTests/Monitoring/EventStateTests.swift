import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

/// A monitor that records the state of a request when an event is dispatched, rather than when it is delivered.
private final class StateSpy: EventMonitor {
  private struct State {
    weak var request: Request?
    var snapshot = ""
  }

  private let state = Mutex(State())
  private let own = DispatchQueue(label: "state spy")
  private let seen = Recorder<String>()

  /// Read once for each event when it is dispatched.
  var queue: DispatchQueue {
    let request = state.withLock { $0.request }
    let snapshot = request.map { "\($0.state) \($0.error == nil ? "fine" : "failed")" } ?? "none"
    own.async { [self] in state.withLock { $0.snapshot = snapshot } }
    return own
  }

  /// The recorded states, after all dispatched events are delivered.
  var reported: [String] {
    own.sync {}
    return seen.values
  }

  func watch(_ request: Request) { state.withLock { $0.request = request } }

  private func note(_ event: String) { seen.add("\(event): \(state.withLock { $0.snapshot })") }

  func requestDidFinish(_ request: Request) { note("finish") }
  func request(_ request: Request, didFailToCreateURLRequestWithError error: AFError) { note("creation") }
  func request(
    _ request: Request, didFailToAdaptURLRequest initialRequest: URLRequest, withError error: AFError
  ) { note("adaptation") }
  func request(_ request: UploadRequest, didFailToCreateUploadableWithError error: AFError) {
    note("uploadable")
  }
  func request(
    _ request: DataRequest, didValidateRequest urlRequest: URLRequest?, response: HTTPURLResponse,
    data: Data?, withResult result: Request.ValidationResult
  ) { note("validation") }
  func request(_ request: Request, didCompleteTask task: URLSessionTask, with error: AFError?) {
    note("completion")
  }
  func request<Value: Sendable>(
    _ request: DataRequest, didParseResponse response: DataResponse<Value, AFError>
  ) { note("parse") }
  func request(_ request: DataRequest, didParseResponse response: DataResponse<Data?, AFError>) {
    note("parse")
  }
}

/// The state of a request when one of its events is dispatched.
@Suite("State of a request in its events", .timeLimit(.minutes(5)))
struct EventStateTests {
  private let spy = StateSpy()
  private let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "state"))
  private let seen = Recorder<String>()

  private func session(_ fake: FakeTransport, interceptor: (any RequestInterceptor)? = nil) -> Session {
    Session.retained(
      fake: fake, startRequestsImmediately: false, interceptor: interceptor,
      observers: SessionObservers(eventMonitors: [spy, monitor]))
  }

  private var reported: [String] {
    monitor.queue.sync {}
    return seen.values
  }

  private func end(_ request: DataRequest) async {
    spy.watch(request)
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { _ in continuation.resume() }
      request.resume()
    }
  }

  @Test("A request is finished when its end is reported")
  func finished() async {
    let request = session(FakeTransport(.json("[1]"))).request("http://a.test/")
    await end(request)
    #expect(spy.reported == ["completion: resumed fine", "finish: finished fine", "parse: finished fine"])
    _ = await request.serializingDecodable([Int].self).response
    #expect(spy.reported.suffix(2) == ["finish: finished fine", "parse: finished fine"])
  }

  @Test("A serializer that is retried reports no end")
  func failedSerializer() async {
    monitor.requestIsRetrying = { [seen] _ in seen.add("retrying") }
    let session = session(FakeTransport(.json("["), .json("[")), interceptor: SpyInterceptor(retries: 1))
    let request = session.request("http://a.test/")
    spy.watch(request)
    let task = request.serializingDecodable([Int].self)
    request.resume()
    _ = await task.response
    #expect(reported == ["retrying"])
    #expect(spy.reported.filter { $0.hasPrefix("finish") } == ["finish: finished fine"])
    #expect(spy.reported.filter { $0.hasPrefix("parse") }.count == 2)
  }

  @Test("A cancelled request stays cancelled, and has its error")
  func cancelled() async {
    let request = session(FakeTransport()).request("http://a.test/")
    spy.watch(request)
    request.cancel()
    _ = await request.end()
    #expect(Set(spy.reported) == ["finish: cancelled failed", "parse: cancelled failed"])
  }

  @Test("The error is set when a request could not be created")
  func creationFailure() async {
    await end(session(FakeTransport()).request(""))
    #expect(
      spy.reported == ["creation: resumed failed", "finish: finished failed", "parse: finished failed"])
  }

  @Test("The error is set in the call of the factory")
  func immediateCreationFailure() async {
    monitor.requestDidFailToCreateURLRequestWithError = { [seen] request, error in
      seen.add("\(request.error?.isInvalidURLError == true) \(error.isInvalidURLError)")
    }
    var options = TransportOptions()
    options.makesRequestsAtOnce = true
    let session = Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false, options: options,
      observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.request("")
    #expect(request.error?.isInvalidURLError == true)
    #expect(request.isInitialized)
    await end(request)
    #expect(reported == ["true true"])
  }

  @Test("The error is set when a request could not be adapted")
  func adaptationFailure() async {
    let bad = Adapter { _, _, completion in completion(.failure(URLError(.badURL))) }
    await end(
      session(FakeTransport(), interceptor: Interceptor(adapters: [bad])).request("http://a.test/"))
    #expect(spy.reported.first == "adaptation: resumed failed")
  }

  @Test("The error is set when a body could not be created")
  func uploadables() async throws {
    struct NoBody: UploadableConvertible {
      func createUploadable() throws -> UploadRequest.Uploadable { throw CocoaError(.fileNoSuchFile) }
    }
    let request = session(FakeTransport()).upload(
      NoBody(), with: try URLRequest(url: "http://a.test/", method: .post), nil, nil, .default)
    await end(request)
    #expect(spy.reported.first == "uploadable: resumed failed")
  }

  @Test("The error is set when a response is invalid")
  func validation() async {
    await end(session(FakeTransport(.status(404))).request("http://a.test/").validate())
    #expect(
      spy.reported == [
        "validation: resumed failed", "completion: resumed failed", "finish: finished failed",
        "parse: finished failed",
      ])
  }

  @Test("The request is set when it is created")
  func created() async {
    monitor.requestDidCreateInitialURLRequest = { [seen] request, urlRequest in
      seen.add("\(request.request == urlRequest)")
    }
    await end(session(FakeTransport()).request("http://a.test/"))
    #expect(reported == ["true"])
  }

  @Test("Each attempt of a download reports its file with its own task")
  func tasksOfFiles() async {
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "files"))
    let tasks = Recorder<Int>()
    monitor.requestDidFinishDownloadingUsingTaskWithResult = { _, task, _ in tasks.add(task.taskIdentifier) }
    let session = Session.retained(
      fake: FakeTransport(.status(503, "later")), interceptor: SpyInterceptor(retries: 1),
      observers: SessionObservers(eventMonitors: [monitor]))
    let request = session.download("http://a.test/").validate()
    _ = await request.endedWithoutFile()
    monitor.queue.sync {}
    #expect(tasks.values == request.tasks.map(\.taskIdentifier))
    #expect(tasks.count == 2)
  }

  @Test("The file of a download is reported with its validation")
  func validatedFile() async throws {
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "validation"))
    let files = Recorder<URL?>()
    monitor.requestDidValidateRequestResponseFileURLWithResult = { _, _, _, file, _ in files.add(file) }
    let session = Session.retained(
      fake: FakeTransport(), observers: SessionObservers(eventMonitors: [monitor]))
    let response = await session.download("http://a.test/").validate().endedWithoutFile()
    monitor.queue.sync {}
    #expect(response.fileURL != nil && Set(files.values) == [response.fileURL])
  }

  @Test("The file exists when its destination is reported", arguments: [false, true])
  func destinations(hasDestination: Bool) async throws {
    let server = try HTTPTestServer()
    let folder = try TemporaryFolder()
    let target = folder["file"]
    let urls = Recorder<URL>()
    monitor.requestDidCreateDestinationURL = { _, url in urls.add(url) }
    monitor.requestDidFinishDownloadingUsingTaskWithResult = { [seen] request, _, result in
      seen.add("\(request.fileURL != nil && request.fileURL == result.success)")
    }
    let session = Session.real(eventMonitors: [monitor])
    let destination: DownloadRequest.Destination = { _, _ in (target, []) }
    let response = await session.download(server.url("/bytes/10"), to: hasDestination ? destination : nil)
      .serializingDownloadedFileURL().response
    defer { response.removeFile() }
    #expect(reported == ["true"])
    #expect(urls.values == [try response.result.get()])
  }
}
