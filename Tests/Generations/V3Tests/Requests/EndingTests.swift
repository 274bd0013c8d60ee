import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct EndingTests {
  @Test("Releasing a manager cancels its requests") func release() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    var manager: Manager? = Manager(configuration: .isolated)
    let request = try #require(manager?.request(.GET, server.url("/")))
    await gate.waitUntilReached()
    manager = nil
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test("Releasing a manager ends requests that were not started") func releaseUnstarted() async throws {
    let server = try HTTPTestServer()
    var manager: Manager? = Manager(configuration: .isolated)
    manager?.startRequestsImmediately = false
    let request = try #require(manager?.request(.GET, server.url("/")))
    manager = nil
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    #expect(server.requestCount == 0)
  }

  @Test("A request is released after its end") func releasedRequest() async throws {
    let server = try HTTPTestServer()
    weak var gone: Request?
    do {
      let request = Manager.isolated().request(.GET, server.url("/get"))
      gone = request
      #expect(await request.end().status == 200)
    }
    let deadline = ContinuousClock.now + .seconds(120)
    while gone != nil, ContinuousClock.now < deadline { await Task.yield() }
    #expect(gone == nil)
  }

  @Test("Handlers of many requests are called") func handlers() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated()
    let notes = Notes()
    for number in 1...200 {
      manager.request(.GET, server.url("/get"), parameters: ["n": number])
        .validate().responseJSON { notes.add(value("args.n", of: $0.result.value) ?? "none") }
    }
    #expect(Set(await notes.wait(for: 200)) == Set((1...200).map(String.init)))
  }

  @Test("A cancelled request fails as cancelled") func cancel() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Manager.isolated().request(.GET, server.url("/"))
    await gate.waitUntilReached()
    request.cancel()
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test("A failed transfer is an error of Foundation") func failedTransfer() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.closeBeforeReply)
    let end = await Manager.isolated().request(.POST, server.url("/post")).end()
    #expect(end.fault == "NSURLErrorDomain \(NSURLErrorNetworkConnectionLost)")
    #expect(end.data == Data())
    let port = try HTTPTestServer.refusedPort()
    let refused = await Manager.isolated().request(.GET, "http://127.0.0.1:\(port)/").end()
    #expect(refused.fault == "NSURLErrorDomain \(NSURLErrorCannotConnectToHost)")
  }

  @Test("A suspended request calls its handlers after resume") func suspendedHandlers() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let request = Manager.isolated().request(.GET, server.url("/get"))
    #expect(await request.end().status == 200)
    request.suspend()
    request.response(queue: .global()) { _, _, _, _ in notes.add("late") }
    let other = Manager.isolated().request(.GET, server.url("/get"))
    #expect(await other.end().status == 200)
    #expect(notes.lines == [])
    request.resume()
    #expect(await notes.wait(for: 1) == ["late"])
  }

  @Test("A suspended request is not sent before resume") func suspendedRequest() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    let request = manager.request(.GET, server.url("/get"))
    request.suspend()
    #expect(await Manager.isolated().request(.GET, server.url("/get?other")).end().status == 200)
    #expect(server.requestCount == 1)
    request.resume()
    #expect(await request.end().status == 200)
  }

  /// Returns a request that was suspended while the server held its response.
  private func suspendedRequest(to server: HTTPTestServer, _ gate: Gate) async -> Request {
    server.enqueue(.ok.held(by: gate))
    let request = Manager.isolated().request(.GET, server.url("/get"))
    await gate.waitUntilReached()
    request.suspend()
    return request
  }

  @Test("A suspended request that is cancelled calls its handlers") func cancelSuspended() async throws {
    let (server, gate) = (try HTTPTestServer(), Gate())
    let request = await suspendedRequest(to: server, gate)
    request.cancel()
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test("A suspended request whose task is resumed calls its handlers") func resumedTask() async throws {
    let (server, gate) = (try HTTPTestServer(), Gate())
    let request = await suspendedRequest(to: server, gate)
    request.task?.resume()
    gate.open()
    #expect(await request.end().status == 200)
  }

  @Test("A suspended request whose task is cancelled calls its handlers") func cancelledTask() async throws {
    let (server, gate) = (try HTTPTestServer(), Gate())
    let request = await suspendedRequest(to: server, gate)
    request.task?.cancel()
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test("Releasing a manager ends suspended requests") func releaseSuspended() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    var manager: Manager? = Manager(configuration: .isolated)
    let request = try #require(manager?.request(.GET, server.url("/")))
    await gate.waitUntilReached()
    request.suspend()
    manager = nil
    #expect(await request.end().fault == "NSURLErrorDomain \(NSURLErrorCancelled)")
    gate.open()
  }

  @Test("A failed serializer sends no request") func failedSerializer() async throws {
    let server = try HTTPTestServer()
    let serializer = ResponseSerializer<Int, NSError> { _, _, _, _ in
      .Failure(NSError(domain: "own", code: 1))
    }
    let response = await Manager.isolated().request(.GET, server.url("/get")).outcome {
      $0.response(responseSerializer: serializer, completionHandler: $1)
    }
    #expect(response.result.error?.domain == "own")
    #expect(server.requestCount == 1)
  }

  @Test("Notifications have the task") func notifications() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.ok.held(by: gate))
    let request = Manager.isolated(starting: false).request(.GET, server.url("/get"))
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

  @Test("The dates of the timeline are in order") func timeline() async throws {
    let server = try HTTPTestServer()
    let response = await Manager.isolated().request(.GET, server.url("/get")).outcome {
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
