import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Event sources against the server of the tests.
@Suite("Event sources", .timeLimit(.minutes(5)))
struct EventSourceTests {
  private let queue = DispatchQueue(label: "test.handlers")

  private static func events(_ text: String) -> Reply {
    .text(text).with(header: "Content-Type", value: "text/event-stream")
  }

  /// Sends the events after `Last-Event-ID`, some on each connection, and 204 after the last one. A connection ends in
  /// the middle of an event.
  private static func numbered(_ count: Int, perConnection: Int) -> Routes {
    Routes.none.adding("/events") { request, _ in
      let first = (request.header("Last-Event-ID").flatMap { Int($0) } ?? 0) + 1
      guard first <= count else { return .status(204) }
      var text = "retry: 1\n\n"
      for number in first..<min(first + perConnection, count + 1) {
        text += "id: \(number)\nevent: number\ndata: \(number)\n\n"
      }
      return events(text + "data: incomplete")
    }
  }

  @Test("Events are delivered with type, data and ID, and 204 ends the request") func delivery() async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Self.events(": comment\nretry: 1\n\nevent: a\ndata: 1\ndata: 2\nid: x\n\ndata: last\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events"))
    var events: [ServerSentEvent] = []
    for try await event in request.events() { events.append(event) }
    #expect(
      events == [
        ServerSentEvent(type: "a", data: "1\n2", id: "x"), ServerSentEvent(data: "last", id: "x"),
      ])
    #expect(request.error == nil && request.isFinished)
    #expect(request.lastEventID == "x")
    let (first, second) = (try await server.takeRequest(), try await server.takeRequest())
    #expect(first.header("Accept") == "text/event-stream" && first.header("Cache-Control") == "no-cache")
    #expect(first.header("Last-Event-ID") == nil && second.header("Last-Event-ID") == "x")
  }

  @Test("Each event with an ID is delivered once over fifty connections", arguments: [false, true])
  func reconnection(hasMonitor: Bool) async throws {
    let server = try HTTPTestServer(routes: Self.numbered(150, perConnection: 3))
    let session = hasMonitor ? Session.real(eventMonitors: [ClosureEventMonitor()]) : Session.real()
    let request = session.eventSourceRequest(server.url("/events"))
    var ids: [String] = []
    for try await event in request.events() {
      #expect(event.type == "number" && event.data == event.id)
      ids.append(event.id)
    }
    #expect(ids == (1...150).map(String.init))
    #expect(request.retryCount == 50)
    #expect(request.requests.count == 1 && request.allMetrics.count == 1)
    #expect(request.tasks.count == 1, "the tasks of earlier connections are not retained")
  }

  @Test(
    "Events survive every kind of broken connection",
    arguments: [
      Reply.Effect.closeAfterBody(bytes: 40), .resetAfterBody(bytes: 40), .truncatedChunked,
    ]) func brokenConnections(effect: Reply.Effect) async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Self.events("retry: 1\nid: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\ndata: three\n\n").with(
        effect: effect),
      Self.events("id: 9\ndata: nine\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events"))
    var ids: [String] = []
    for try await event in request.events() { ids.append(event.id) }
    _ = try await server.takeRequest()
    let second = try await server.takeRequest()
    // The position of the break does not matter: the server learns of the last event that was received.
    #expect(second.header("Last-Event-ID") == ids.dropLast().last)
    #expect(ids.first == "1" && ids.last == "9")
  }

  @Test("A response that is not an event stream ends the request with an error") func otherResponses()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(404), .text("data: no\n\n"), Reply.bytes(200_000))
    let status = await failure(of: server)
    #expect(status?.responseCode == 404)
    let type = await failure(of: server)
    #expect(type?.acceptableContentTypes == ["text/event-stream"])
    let large = await failure(of: server)
    #expect(large?.responseContentType == "application/octet-stream")
    #expect(server.pendingReplyCount == 0)
  }

  private func failure(of server: HTTPTestServer) async -> AFError? {
    do {
      for try await event in Session.real().eventSourceRequest(server.url("/events")).events() {
        Issue.record("\(event)")
      }
      return nil
    } catch {
      return error
    }
  }

  @Test("The cache never answers an event source, whatever the policy of the session") func cache()
    async throws
  {
    let fixture = CacheFixture(
      FakeTransport { _, index in
        .status(
          200, "data: \(index)\n\n",
          headers: [
            ("Content-Type", "text/event-stream"), ("Cache-Control", "max-age=60"), ("ETag", "\"1\""),
          ])
      }, policy: .returnCacheDataElseLoad)
    #expect(await [fixture.get().hops, fixture.get().hops] == ["n", "c"])
    var configuration = EventSourceRequest.Configuration()
    configuration.reconnects = false
    let request = fixture.session.eventSourceRequest("http://a.test/x", configuration: configuration)
    var events: [String] = []
    for try await event in request.events() { events.append(event.data) }
    #expect(events == ["1"] && fixture.fake.requests.count == 2)
    #expect(fixture.fake.requests.last?.value("If-None-Match") == nil)
  }

  @Test("A refused connection is tried again, as often as configured") func failures() async throws {
    let port = try HTTPTestServer.refusedPort()
    var configuration = EventSourceRequest.Configuration()
    configuration.initialDelay = 0.001
    configuration.maximumFailureCount = 2
    let request = Session.real().eventSourceRequest(
      "http://127.0.0.1:\(port)/", configuration: configuration)
    do {
      for try await event in request.events() { Issue.record("\(event)") }
      Issue.record("no error")
    } catch {
      #expect(error.transferCode == .cannotConnectToHost)
    }
    #expect(request.retryCount == 2)
  }

  @Test("Connections that a retrier has asked for count as failures") func askedFailures() async throws {
    let port = try HTTPTestServer.refusedPort()
    var configuration = EventSourceRequest.Configuration()
    configuration.initialDelay = 0.001
    configuration.maximumFailureCount = 2
    let request = Session.real().eventSourceRequest(
      "http://127.0.0.1:\(port)/", configuration: configuration, interceptor: SpyInterceptor(retries: 2))
    await #expect(throws: AFError.self) { for try await _ in request.events() {} }
    #expect(request.retryCount == 2)
  }

  @Test("An event forgives the connections that failed before it") func forgivenFailures() async throws {
    let server = try HTTPTestServer(routes: Self.numbered(6, perConnection: 1))
    var configuration = EventSourceRequest.Configuration()
    configuration.initialDelay = 0.001
    configuration.maximumFailureCount = 1
    let request = Session.real().eventSourceRequest(server.url("/events"), configuration: configuration)
    var ids: [String] = []
    for try await event in request.events() { ids.append(event.id) }
    #expect(ids == ["1", "2", "3", "4", "5", "6"])
    #expect(request.error == nil)
  }

  @Test("A failure that another connection does not mend ends the request") func lastingFailure()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let reply = Self.events("retry: 1\n\ndata: \(String(repeating: "x", count: 100))\n\n")
    server.enqueue(reply, reply)
    var configuration = EventSourceRequest.Configuration()
    configuration.maximumEventSize = 50
    let request = Session.real().eventSourceRequest(server.url("/events"), configuration: configuration)
    do {
      for try await event in request.events() { Issue.record("\(event)") }
      Issue.record("no error")
    } catch {
      #expect(error.transferCode == .dataLengthExceedsMaximum)
    }
    #expect(request.retryCount == 0)
    #expect(server.recordedRequests.count == 1)
  }

  @Test(
    "The end of the stream ends a request that is not safe, or that does not reconnect",
    arguments: [(HTTPMethod.post, nil), (.patch, nil), (.post, false), (.get, false)] as [(HTTPMethod, Bool?)]
  )
  func singleConnection(method: HTTPMethod, reconnects: Bool?) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 1\n\ndata: 1\n\ndata: 2\n\ndata: incomplete"), .status(204))
    var configuration = EventSourceRequest.Configuration()
    configuration.reconnects = reconnects
    var question = try URLRequest(url: server.url("/events"), method: method)
    if method != .get { question.httpBody = Data("question".utf8) }
    let request = Session.real().eventSourceRequest(question, configuration: configuration)
    var data: [String] = []
    for try await event in request.events() { data.append(event.data) }
    #expect(data == ["1", "2"])
    #expect(request.error == nil && request.isFinished && request.retryCount == 0)
    let sent = try await server.takeRequest()
    #expect(sent.method == method.rawValue && sent.bodyText == (method == .get ? "" : "question"))
    #expect(server.requestCount == 1)
  }

  @Test(
    "A failed connection ends a request that is not safe",
    arguments: [Reply.Effect.closeAfterBody(bytes: 40), .resetAfterBody(bytes: 40), .truncatedChunked])
  func singleFailure(effect: Reply.Effect) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Self.events("retry: 1\nid: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\ndata: three\n\n").with(
        effect: effect), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events"), method: .post)
    do {
      for try await _ in request.events() {}
      Issue.record("no error")
    } catch {
      #expect(error.transferCode == .networkConnectionLost)
    }
    #expect(request.retryCount == 0 && server.requestCount == 1)
  }

  @Test("A request that is not safe connects again if it is asked for") func askedReconnection() async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 1\nid: 1\ndata: 1\n\n"), Self.events("data: 2\n\n"), .status(204))
    var configuration = EventSourceRequest.Configuration()
    configuration.reconnects = true
    let request = Session.real().eventSourceRequest(
      server.url("/events"), method: .post, configuration: configuration)
    var data: [String] = []
    for try await event in request.events() { data.append(event.data) }
    #expect(data == ["1", "2"] && request.retryCount == 2)
    #expect(server.recordedRequests.map(\.method) == ["POST", "POST", "POST"])
  }

  @Test("Cancelling during the delay ends the request as cancelled") func cancelledDelay() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 600000\ndata: 1\n\n"))
    let request = Session.real().eventSourceRequest(server.url("/events"))
    let completions = Recorder<AFError?>()
    let values = Recorder<String>()
    request.responseEvents(on: queue) { stream in
      switch stream.event {
      case .stream(let result): values.add((try? result.get())?.data ?? "")
      case .complete(let completion): completions.add(completion.error)
      }
    }
    #expect(await values.wait(for: 1) == ["1"])
    // The attempt has ended, so that the delay is under way or about to be.
    while request.metrics == nil { await Task.yield() }
    request.cancel()
    #expect(await completions.wait(for: 1).first??.isExplicitlyCancelledError == true)
    #expect(request.isCancelled)
  }

  @Test("Adapters and retriers take part in each connection") func interceptors() async throws {
    let server = try HTTPTestServer(routes: Self.numbered(4, perConnection: 2))
    let errors = Recorder<any Error>()
    let adapted = Recorder<String>()
    let interceptor = Interceptor(
      adaptHandler: { request, _, completion in
        var request = request
        adapted.add("\(adapted.count)")
        request.headers.update(name: "X-Connection", value: "\(adapted.count)")
        completion(.success(request))
      },
      retryHandler: { _, _, error, completion in
        errors.add(error)
        completion(.doNotRetry)
      })
    let request = Session.real().eventSourceRequest(server.url("/events"), interceptor: interceptor)
    var count = 0
    for try await _ in request.events() { count += 1 }
    #expect(count == 4)
    #expect(adapted.count == 3 && errors.count == 2)
    for number in 1...3 { #expect(try await server.takeRequest().header("X-Connection") == "\(number)") }
  }

  @Test("Added retriers are asked, and added adapters come before the fields of the source")
  func addedInterceptors() async throws {
    let server = try HTTPTestServer(routes: Self.numbered(4, perConnection: 2))
    let errors = Recorder<any Error>()
    let request = Session.real().eventSourceRequest(server.url("/events"))
      .adapt(
        using: Adapter { request, _, completion in
          var request = request
          request.headers.update(.accept("text/plain"))
          completion(.success(request))
        }
      )
      .retry(
        using: Retrier { _, _, error, completion in
          errors.add(error)
          completion(.doNotRetry)
        })
    for try await _ in request.events() {}
    #expect(errors.count == 2)
    #expect(
      server.recordedRequests.map { $0.header("Accept") } == Array(repeating: "text/event-stream", count: 3))
  }

  @Test("A method that an adapter makes unsafe connects once") func adaptedMethod() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 1\ndata: 1\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events")).adapt(
      using: Adapter { request, _, completion in
        var request = request
        request.method = .post
        completion(.success(request))
      })
    for try await _ in request.events() {}
    #expect(server.recordedRequests.map(\.method) == ["POST"])
  }

  @Test("A validator can refuse a response that is an event stream") func validator() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 1\ndata: 1\n\n"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events")).validate { _, _ in
      .failure(URLError(.badServerResponse))
    }
    await #expect(throws: AFError.self) { for try await _ in request.events() {} }
    #expect(request.error?.isResponseValidationError == true && server.requestCount == 1)
  }

  @Test("An expired certificate ends an event source") func expiredCertificate() async throws {
    let authority = try TestIdentity(.init(commonName: "Expired CA", isCA: true))
    let identity = try TestIdentity(
      .init(
        commonName: "localhost", dnsNames: ["localhost"], notBefore: .seconds(-7200),
        notAfter: .seconds(-3600), issuer: authority))
    let server = try HTTPTestServer(.tls(identity))
    var options = TransportOptions()
    options.trustStore = .pem(Data(authority.certificatePEM.utf8))
    var configuration = EventSourceRequest.Configuration()
    configuration.initialDelay = 0.01
    configuration.maximumFailureCount = 3
    let request = Session.real(options: options).eventSourceRequest(
      server.url("/events"), configuration: configuration)
    await #expect(throws: AFError.self) { for try await _ in request.events() {} }
    #expect(request.error?.transferCode == .serverCertificateHasBadDate && request.retryCount == 0)
  }

  @Test("The next connection continues after the last event, also if a retrier asks for it at once")
  func immediateRetry() async throws {
    let server = try HTTPTestServer(routes: Self.numbered(4, perConnection: 2))
    let spy = SpyInterceptor(retries: 2)
    let request = Session.real().eventSourceRequest(server.url("/events"), interceptor: spy)
    var ids: [String] = []
    for try await event in request.events() { ids.append(event.id) }
    #expect(ids == ["1", "2", "3", "4"])
    #expect(server.recordedRequests.map { $0.header("Last-Event-ID") } == [nil, "2", "4"])
  }

  @Test("The ID of the caller is sent until the server has set or reset the ID", arguments: ["id\n\n", ""])
  func resetID(reset: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 1\ndata: 1\n\n\(reset)"), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events"), headers: ["Last-Event-ID": "7"])
    for try await _ in request.events() {}
    let last = reset.isEmpty ? "7" : nil
    #expect(server.recordedRequests.map { $0.header("Last-Event-ID") } == ["7", last])
  }

  @Test("Decoded events come with type and ID, and bad data is a failure of one event") func decoded()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Self.events(
        "retry: 1\n\nid: 1\nevent: point\ndata: {\"x\":\ndata: 1}\n\ndata: no\n\nid: 3\ndata: {\"x\":3}\n\n"),
      .status(204))
    let results = Recorder<Result<EventSourceRequest.DecodedEvent<Point>, AFError>>()
    let ends = Recorder<AFError?>()
    let request = Session.real().eventSourceRequest(server.url("/events"))
    request.responseDecodableEvents(of: Point.self, on: queue) { stream in
      switch stream.event {
      case .stream(let result): results.add(result)
      case .complete(let completion): ends.add(completion.error)
      }
    }
    await ends.wait(for: 1)
    #expect(ends.values.first.flatMap { $0 } == nil)
    let values = results.values
    #expect(values.count == 3)
    #expect(values.compactMap { try? $0.get() }.map(\.value.x) == [1, 3])
    #expect(values.compactMap { try? $0.get() }.map(\.id) == ["1", "3"])
    #expect((try? values.first?.get())?.type == "point")
  }

  private struct Point: Decodable, Sendable { let x: Int }

  /// Checks that a few bytes of the server do not become an event with a long ID.
  @Test("The bytes of an event source have an ID once, however many events follow it") func longID()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let id = String(repeating: "x", count: 100_000)
    server.enqueue(Self.events("id: \(id)\n" + String(repeating: "data\n\n", count: 1000)))
    var configuration = EventSourceRequest.Configuration()
    configuration.reconnects = false
    let request = Session.real(startRequestsImmediately: false).eventSourceRequest(
      server.url("/events"), configuration: configuration)
    let (sizes, ends) = (Recorder<Int>(), Recorder<AFError?>())
    request.responseStream(on: queue) { stream in
      if let data = stream.value { sizes.add(data.count) }
      if let completion = stream.completion { ends.add(completion.error) }
    }
    let stream = try #require(request.asInputStream())
    stream.open()
    let count = await onAThread(stream) { stream in
      var count = 0
      while let data = stream.bytes(65_536) { count += data.count }
      return count
    }
    await ends.wait(for: 1)
    let expected = "id: \n".utf8.count + 100_000 + 1000 * "data: \n\n".utf8.count
    #expect(count == expected)
    #expect(sizes.count == 1000 && sizes.values.reduce(0, +) == expected)
  }

  @Test("A slow reader holds the server back and loses nothing") func backPressure() async throws {
    let data = String(repeating: "x", count: 1000)
    let text = (1...20_000).map { "id: \($0)\ndata: \(data)\n\n" }.joined()
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Self.events("retry: 1\n" + text), .status(204))
    let request = Session.real().eventSourceRequest(server.url("/events"))
    var next = 1
    for try await event in request.events() {
      #expect(event.id == "\(next)" && event.data.utf8.count == 1000)
      next += 1
      // The whole body is twenty times what is buffered.
      if next % 1000 == 0 { #expect(request.flow.heldBytes < 4_000_000) }
    }
    #expect(next == 20_001)
  }
}
