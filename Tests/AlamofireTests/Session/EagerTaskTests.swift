import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Tasks of requests that are set up when they are created.
@Suite("Tasks of eager requests", .timeLimit(.minutes(5)))
struct EagerTaskTests {
  private let spy = EventSpy()

  private func session(monitors: Bool = true, atOnce: Bool = false) -> Session {
    var options = TransportOptions()
    options.makesRequestsAtOnce = atOnce
    return Session.retained(
      fake: FakeTransport(), startRequestsImmediately: false, requestSetup: .eager, options: options,
      observers: SessionObservers(eventMonitors: monitors ? [spy] : []))
  }

  private func waitForTask(_ request: Request) async {
    #expect(await eventually { spy.reported.contains("didCreateTask") })
    #expect(request.task != nil)
  }

  /// Adds a handler, performs an action, and waits for the handler.
  private func end(_ request: DataRequest, after action: (DataRequest) -> Void) async -> AFError? {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0.error) }
      action(request)
    }
  }

  @Test("The task exists before the request is resumed", arguments: [false, true])
  func task(isMonitored: Bool) async throws {
    let request = session(monitors: isMonitored).request("http://a.test/")
    let tasks = Recorder<URLSessionTask>()
    request.onURLSessionTaskCreation(on: .global()) { tasks.add($0) }
    await tasks.wait(for: 1)
    let task = try #require(request.task)
    #expect(request.isInitialized)
    #expect(task.state == .suspended)
    #expect(task.originalRequest?.url?.absoluteString == "http://a.test/")
    request.resume()
    #expect(await request.end().error == nil)
    #expect(request.tasks == [task])
    #expect(tasks.values == [task])
  }

  /// A body that is made once `make` has returned.
  private struct MadeBody: UploadableConvertible {
    let make: @Sendable () -> Void

    func createUploadable() -> UploadRequest.Uploadable {
      make()
      return .data(Data("body".utf8))
    }
  }

  /// Checks both orders: with `makesRequestsAtOnce`, the task exists before the body of the upload.
  @Test("A handler that is added while the body is made receives the task once", arguments: [false, true])
  func handlerBeforeBody(isAtOnce: Bool) async throws {
    let answers = Recorder<@Sendable () -> Void>()
    let adapter = Adapter { request, _, completion in answers.add { completion(.success(request)) } }
    let uploads = Recorder<UploadRequest>()
    let (early, late) = (Recorder<URLSessionTask>(), Recorder<URLSessionTask>())
    let queue = DispatchQueue(label: "test.tasks")
    let body = MadeBody {
      guard let upload = uploads.values.first else { return }
      upload.onURLSessionTaskCreation(on: queue) { late.add($0) }
    }
    let upload = session(monitors: false, atOnce: isAtOnce).upload(
      body, with: try URLRequest(url: "http://a.test/", method: .post), adapter, nil, .default)
    uploads.add(upload)
    let sequence = upload.urlSessionTasks()
    let answer = try await answers.value(0)
    answer()
    upload.resume()
    #expect(await upload.end().error == nil)
    let task = try #require(upload.task)
    await late.wait(for: 1)
    queue.sync {}
    #expect(late.values == [task])
    for await task in sequence { early.add(task) }
    #expect(early.values == [task])
  }

  @Test("The sequence of tasks contains each task once")
  func sequence() async {
    let request = session(monitors: false).request("http://a.test/")
    #expect(await eventually { request.task != nil })
    let tasks = request.urlSessionTasks()
    request.resume()
    _ = await request.end()
    var seen: [URLSessionTask] = []
    for await task in tasks { seen.append(task) }
    #expect(seen == request.tasks)
  }

  @Test("The events of the set-up precede the resume", arguments: [false, true])
  func events(isAtOnce: Bool) async {
    let request = session(atOnce: isAtOnce).request("http://a.test/")
    await waitForTask(request)
    let beginning = ["didCreateInitialURLRequest", "didCreateURLRequest", "didCreateTask"]
    #expect(spy.reported == beginning)
    request.suspend()
    // The set-up itself reports the change if it happens between the announcement of the task and its end.
    #expect(await eventually { spy.reported.contains("didSuspendTask") })
    #expect(spy.reported.dropFirst(3) == ["requestDidSuspend", "didSuspendTask"])
    #expect(await end(request) { $0.resume() } == nil)
    let rest = EventOrderTests.eventsOfRequest.drop { $0 != "didReceive response 200" }
    #expect(
      spy.reported.dropFirst(5) == [
        "requestDidResume", "didResumeTask",
      ] + rest + ["didCompleteTask nil", "requestDidFinish", "didParseResponse Data?"])
  }

  @Test("A task that is cancelled before its resume ends")
  func cancellation() async throws {
    let request = session().request("http://a.test/")
    await waitForTask(request)
    #expect(await end(request) { $0.cancel() }?.isExplicitlyCancelledError == true)
    #expect(
      spy.reported.dropFirst(3) == [
        "requestDidCancel", "didCancelTask", "didFinishCollecting", "didGatherMetrics",
        "didCompleteWithError URLError", "didCompleteTask error", "requestDidFinish",
        "didParseResponse Data?",
      ])
    let task = try #require(request.task)
    #expect(task.state == .completed)
    #expect((task.error as? URLError)?.code == .cancelled)
  }

  @Test("A request that is resumed during the set-up reports each event once and in order")
  func race() async {
    let session = session()
    for _ in 0..<200 {
      let request = session.request("http://a.test/")
      let spy = EventSpy()
      request.eventMonitor(spy)
      request.resume()
      _ = await request.end()
      let reported = spy.reported.filter { $0.hasSuffix("Task") || $0 == "requestDidResume" }
      let places = ["requestDidResume", "didCreateTask", "didResumeTask"].map { reported.firstIndex(of: $0) }
      #expect(Set(reported).count == reported.count, "\(reported)")
      guard let resumed = places[2] else { continue }
      #expect(resumed == reported.count - 1 && places[1] ?? -1 < resumed, "\(reported)")
    }
  }

  @Test("Uploads and downloads have tasks")
  func kinds() async {
    let session = session()
    let requests: [Request] = [
      session.upload(Data("x".utf8), to: "http://a.test/"), session.download("http://a.test/"),
      session.streamRequest("http://a.test/"),
    ]
    for request in requests {
      #expect(await eventually { request.task != nil })
      request.cancel()
    }
  }

  @Test("A monitor that is added while the request waits receives its task, and the end of the task")
  func lateMonitor() async {
    let request = session(monitors: false).request("http://a.test/")
    #expect(await eventually { request.task != nil })
    request.eventMonitor(spy)
    #expect(await end(request) { $0.resume() } == nil)
    let reported = spy.reported
    #expect(reported.contains("didCreateTask") && reported.contains("didCompleteTask nil"), "\(reported)")
  }
}
