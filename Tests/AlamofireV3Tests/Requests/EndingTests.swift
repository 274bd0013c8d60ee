import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct EndingTests {
  @Test func releasedManagerCancelsItsRequests() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    var manager: Manager? = Manager(configuration: .solitary)
    let request = try #require(manager?.request(.GET, server.url("/")))
    await gate.waitUntilReached()
    manager = nil
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test func releasedManagerEndsRequestsThatWereNeverStarted() async throws {
    let server = try HTTPTestServer()
    var manager: Manager? = Manager(configuration: .solitary)
    manager?.startRequestsImmediately = false
    let request = try #require(manager?.request(.GET, server.url("/")))
    manager = nil
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    #expect(server.requestCount == 0)
  }

  @Test func requestIsReleasedAfterItsEnd() async throws {
    let server = try HTTPTestServer()
    weak var gone: Request?
    do {
      let request = Manager.lone().request(.GET, server.url("/get"))
      gone = request
      #expect(await request.end().status == 200)
    }
    let deadline = ContinuousClock.now + .seconds(120)
    while gone != nil, ContinuousClock.now < deadline { await Task.yield() }
    #expect(gone == nil)
  }

  @Test func handlersOfManyRequestsAreAllCalled() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.lone()
    let notes = Notes()
    for number in 1...200 {
      manager.request(.GET, server.url("/get"), parameters: ["n": number])
        .validate().responseJSON { notes.add(value("args.n", of: $0.result.value) ?? "none") }
    }
    #expect(Set(await notes.wait(for: 200)) == Set((1...200).map(String.init)))
  }

  @Test func cancelledRequestFailsAsCancelled() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Manager.lone().request(.GET, server.url("/"))
    await gate.waitUntilReached()
    request.cancel()
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test func failedTransferIsAnErrorOfFoundation() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.closeBeforeReply)
    let end = await Manager.lone().request(.POST, server.url("/post")).end()
    #expect(end.fault == "NSURLErrorDomain \(NSURLErrorNetworkConnectionLost)")
    #expect(end.data == Data())
    let port = try HTTPTestServer.refusedPort()
    let refused = await Manager.lone().request(.GET, "http://127.0.0.1:\(port)/").end()
    #expect(refused.fault == "NSURLErrorDomain \(NSURLErrorCannotConnectToHost)")
  }

  @Test func suspendedRequestHoldsItsHandlersUntilItIsResumed() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let request = Manager.lone().request(.GET, server.url("/get"))
    #expect(await request.end().status == 200)
    request.suspend()
    request.response(queue: .global()) { _, _, _, _ in notes.add("late") }
    let other = Manager.lone().request(.GET, server.url("/get"))
    #expect(await other.end().status == 200)
    #expect(notes.lines == [])
    request.resume()
    #expect(await notes.wait(for: 1) == ["late"])
  }

  @Test func suspendedRequestIsNotSentBeforeItIsResumed() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.lone(starting: false)
    let request = manager.request(.GET, server.url("/get"))
    request.suspend()
    #expect(await Manager.lone().request(.GET, server.url("/get?other")).end().status == 200)
    #expect(server.requestCount == 1)
    request.resume()
    #expect(await request.end().status == 200)
  }

  @Test func suspendedRequestThatIsCancelledCallsItsHandlers() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Manager.lone().request(.GET, server.url("/get"))
    await gate.waitUntilReached()
    request.suspend()
    request.cancel()
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test func serializerThatFailsSendsNothingAgain() async throws {
    let server = try HTTPTestServer()
    let serializer = ResponseSerializer<Int, NSError> { _, _, _, _ in
      .Failure(NSError(domain: "own", code: 1))
    }
    let response = await Manager.lone().request(.GET, server.url("/get")).outcome {
      $0.response(responseSerializer: serializer, completionHandler: $1)
    }
    #expect(response.result.error?.domain == "own")
    #expect(server.requestCount == 1)
  }

  @Test func notificationsCarryTheTask() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Manager.lone(starting: false).request(.GET, server.url("/get"))
    let task = try #require(request.task)
    let notes = Notes()
    let names = [
      Notifications.Task.DidResume, Notifications.Task.DidSuspend, Notifications.Task.DidCancel,
      Notifications.Task.DidComplete,
    ]
    let observers = names.map { name in
      NotificationCenter.default.addObserver(forName: name, object: task, queue: nil) { _ in
        notes.add(name.rawValue.replacingOccurrences(of: "com.alamofire.notifications.task.", with: ""))
      }
    }
    request.resume()
    await gate.waitUntilReached()
    request.suspend()
    request.resume()
    request.cancel()
    _ = await request.end()
    #expect(
      notes.lines == ["didResume", "didSuspend", "didResume", "didCancel", "didComplete"])
    for observer in observers { NotificationCenter.default.removeObserver(observer) }
    gate.open()
  }

  @Test func timelineIsInOrder() async throws {
    let server = try HTTPTestServer()
    let response = await Manager.lone().request(.GET, server.url("/get")).outcome {
      $0.responseData(completionHandler: $1)
    }
    let timeline = response.timeline
    #expect(timeline.requestStartTime > 0)
    #expect(timeline.latency > 0)
    #expect(timeline.initialResponseTime <= timeline.requestCompletedTime)
    #expect(timeline.requestCompletedTime <= timeline.serializationCompletedTime)
    #expect(timeline.totalDuration >= timeline.requestDuration)
    let fixed = Timeline(
      requestStartTime: 1, initialResponseTime: 1.5, requestCompletedTime: 2, serializationCompletedTime: 4)
    #expect(
      fixed.description == "Timeline: { \"Latency\": 0.500 secs, \"Request Duration\": 1.000 secs, "
        + "\"Serialization Duration\": 2.000 secs, \"Total Duration\": 3.000 secs }")
  }
}
