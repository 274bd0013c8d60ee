import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Log of requests", .timeLimit(.minutes(5))) struct RequestLogTests {
  private let server: HTTPTestServer
  private let entries = Recorder<RequestLog.Entry>()

  init() throws { server = try HTTPTestServer() }

  private func log(_ level: RequestLog.Level = .info, bodyLimit: Int = 0) -> RequestLog {
    RequestLog(level: level, bodyLimit: bodyLimit) { [entries] in entries.add($0) }
  }

  private func session(_ log: RequestLog) -> Session {
    Session.real(configuration: .isolated, eventMonitors: [log])
  }

  /// Returns the messages with `…` instead of durations.
  private func messages(_ log: RequestLog) -> [String] {
    log.queue.sync {}
    return entries.values.map { $0.message.replacing(/\d+\.\d ms/, with: "…") }
  }

  @Test("A request has one line at the level of information") func oneLine() async throws {
    let log = log()
    server.enqueue(.text("hello"))
    let request = session(log).request(server.url("/a?access_token=planted&b=1"))
    _ = await request.serializingString().response
    #expect(
      messages(log) == [
        "GET \(server.url("/a?access_token=redacted&b=1")): 200, text/plain; charset=utf-8, 5 bytes, …"
      ])
    let entry = try #require(entries.values.first)
    #expect(entry.level == .info && entry.statusCode == 200 && entry.method == "GET" && entry.error == nil)
    #expect(entry.url == server.url("/a?access_token=redacted&b=1"))
    #expect(entry.requestID == request.id)
    #expect((entry.duration ?? -1) > 0)
    #expect(entry.description.contains("Z info GET http://"))
  }

  @Test(
    "A handler that is added after the end writes no other line", arguments: [RequestLog.Level.info, .debug])
  func lateHandler(level: RequestLog.Level) async {
    let log = log(level)
    server.enqueue(.text("hello"))
    let request = session(log).request(server.url("/a"))
    _ = await request.serializingData().response
    let before = messages(log)
    #expect(before.count { $0.contains(": 200, ") } == 1)
    #expect(await request.serializingString().response.value == "hello")
    #expect(messages(log) == before)
    _ = await request.serializingDecodable([Int].self).response
    #expect(messages(log).count == before.count + 1, "the failure of a serializer has its line")
  }

  @Test("A status of 400 or more is a warning, a failure an error, a cancellation information") func levels()
    async
  {
    let log = log()
    let session = session(log)
    server.enqueue(.status(404))
    _ = await session.request(server.url("/a")).serializingData(emptyResponseCodes: [404]).response
    server.enqueue(.status(503))
    _ = await session.request(server.url("/b")).validate().serializingData().response
    _ = await session.request("http://127.0.0.1:1/?key=planted").serializingData().response
    let cancelled = session.request(server.url("/delay/10"))
    let task = cancelled.serializingData()
    cancelled.cancel()
    _ = await task.response
    let messages = messages(log)
    #expect(entries.values.map(\.level) == [.warning, .error, .error, .info])
    #expect(messages[1].hasSuffix("503, 0 bytes, …: The status code of the response is not accepted: 503."))
    #expect(
      messages[2].hasPrefix("GET http://127.0.0.1:1/?key=redacted: no response, …: The transfer failed: "))
    #expect(messages[3].hasSuffix(": The request was cancelled."))
    #expect(!messages.joined().contains("planted"))
  }

  @Test("The level of a response changes at the status 400", arguments: [399, 400])
  func boundary(status: Int) async {
    let log = log()
    server.enqueue(.status(status))
    _ = await session(log).request(server.url("/a")).serializingData(emptyResponseCodes: [status]).response
    _ = messages(log)
    #expect(entries.values.map(\.level) == [status == 400 ? .warning : .info])
  }

  @Test("A response that cannot be serialized is an error") func serialization() async {
    let log = log(.error)
    server.enqueue(.text("{}"), .text("{}"))
    let session = session(log)
    _ = await session.request(server.url("/a")).serializingDecodable([Int].self).response
    await session.download(server.url("/b")).serializingDecodable([Int].self).response.removeFile()
    #expect(
      messages(log)
        == ["a", "b"].map {
          "GET \(server.url("/\($0)")): The body of the response could not be decoded: Expected an array at the top, found an object."
        })
    #expect(entries.values.allSatisfy { $0.error?.isResponseSerializationError == true })
  }

  @Test("Without a limit for bodies, no message of an error shows the beginning of one") func unshownBodies()
    async
  {
    let log = log(.error)
    let session = session(log)
    server.enqueue(.text("private text"), .text("private text").with(status: 403))
    _ = await session.request(server.url("/a")).serializingDecodable([Int].self).response
    do { for try await _ in session.eventSourceRequest(server.url("/c")).events() {} } catch {
      #expect(error.localizedDescription.contains("private"))
    }
    let messages = messages(log)
    #expect(messages.count >= 2 && messages.allSatisfy { !$0.contains("private") }, "\(messages)")
    #expect(messages.contains { $0.contains("could not be decoded") }, "\(messages)")
  }

  @Test("Bodies are shown on request, on one line, up to the limit and without secrets") func bodies() async {
    let log = log(bodyLimit: 40)
    var reply = Reply.text("{\n \"token\": \"planted\", \"name\": \"aaaaaaaaaaaaaaaaaaaaaaaa\" }")
    reply.headers = [HTTPHeader(name: "Content-Type", value: "application/json")]
    server.enqueue(reply)
    _ = await session(log).request(
      server.url("/a"), method: .post, parameters: ["password": "planted", "user": "ann"]
    ).serializingData().response
    #expect(
      messages(log).first?.hasSuffix(
        #", sent "password=redacted&user=ann", received "{ "token": "redacted", "name": "aaaaaaa…""#)
        == true,
      "\(messages(log))")
  }

  @Test("Details have header fields without secrets, protected ones included") func details() async throws {
    let log = log(.debug)
    var reply = Reply.text("ok")
    reply.headers.append(HTTPHeader(name: "Set-Cookie", value: "id=planted"))
    server.enqueue(reply)
    _ = await session(log).request(
      server.url("/a"),
      headers: [
        "Authorization": "Bearer planted", "X-API-Key": "planted", "X-Customer": "planted", "X-A": "shown",
      ]
    ).transportOptions { $0.protectedHeaders = ["X-Customer"] }.serializingData().response
    let messages = messages(log)
    try #require(messages.count == 3)
    #expect(messages[0].contains(": begins, "))
    #expect(messages[0].contains("Authorization: Bearer <redacted>, "))
    #expect(messages[0].contains("X-A: shown") && messages[0].contains("X-API-Key: <redacted>"))
    #expect(messages[2].contains(": response, ") && messages[2].contains("Set-Cookie: id=<redacted>"))
    #expect(messages[0].contains("X-Customer: <redacted>"))
    #expect(!messages.joined().contains("planted"))
  }

  @Test("Retries and redirects are counted") func retries() async throws {
    let log = log()
    server.enqueue(.status(503))
    _ = await session(log).request(
      server.url("/redirect/2"), interceptor: RetryPolicy(exponentialBackoffScale: 0.001)
    )
    .validate().serializingData().response
    let messages = messages(log)
    try #require(messages.count == 2)
    #expect(entries.values.map(\.level) == [.warning, .info])
    #expect(messages[0].hasSuffix(": is sent again, retry 1"))
    #expect(messages[1].hasSuffix(", 2 redirects, 1 retry"))
  }

  @Test("A log of one request sees that one alone") func oneRequest() async {
    let log = log()
    let session = Session.real(configuration: .isolated)
    _ = await session.request(server.url("/get")).serializingData().response
    _ = await session.request(server.url("/headers")).eventMonitor(log).serializingData().response
    #expect(messages(log).count == 1)
    #expect(messages(log).first?.hasPrefix("GET \(server.url("/headers")): 200") == true)
  }

  @Test("A request that cannot be created has a line") func notMade() async {
    let log = log()
    _ = await session(log).request("").serializingData().response
    #expect(
      messages(log) == [
        "Request without URL: no response, …: This is not a valid URL: the text is empty. Begin it with https:// and a host."
      ])
  }

  @Test("Without options a log has one line for each request, and no bodies") func defaults() {
    #expect(RequestLog().level == .info && RequestLog().bodyLimit == 0)
    #expect(RequestLog(bodyLimit: -1).bodyLimit == 0)
  }

  @Test("An entry for which the standard error has no room is dropped") func fullDisk() async {
    await #expect(processExitsWith: .success) {
      let device = open("/dev/full", O_WRONLY)
      #expect(device >= 0 && dup2(device, STDERR_FILENO) == STDERR_FILENO)
      let server = try HTTPTestServer()
      let (log, wireLog) = (RequestLog(level: .debug), WireLog())
      let session = Session(eventMonitors: [log, wireLog])
      let response = await session.request(server.url("/get")).serializingData().response
      log.queue.sync {}
      wireLog.queue.sync {}
      #expect(response.error == nil)
    }
  }

  @Test("Header fields are sorted whatever their case, and trailers are details", arguments: [true, false])
  func trailers(isDetailed: Bool) async throws {
    let log = log(isDetailed ? .debug : .info)
    server.enqueue(
      .raw(
        "HTTP/1.1 200 OK\r\nb: 1\r\nA: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
          + "2\r\nok\r\n0\r\nX-T: 1\r\npassword: planted\r\n\r\n"))
    _ = await session(log).request(server.url("/a")).serializingData().response
    let messages = messages(log)
    guard isDetailed else {
      #expect(messages.count == 1)
      return
    }
    try #require(messages.count == 4)
    #expect(entries.values.map(\.level) == [.debug, .info, .debug, .debug])
    let title = "GET \(server.url("/a"))"
    #expect(messages[2] == "\(title): response, A: 2, b: 1, Transfer-Encoding: chunked")
    #expect(messages[3] == "\(title): trailers, password: <redacted>, X-T: 1")
  }

  @Test("A request without a response has no line for the fields of one") func noFields() async {
    let log = log(.debug)
    _ = await session(log).request("http://127.0.0.1:1/").serializingData().response
    _ = messages(log)
    #expect(entries.values.map(\.level) == [.debug, .error])
    #expect(entries.values.last?.error?.isSessionTaskError == true)
    #expect(entries.values.last?.statusCode == nil && entries.values.first?.error == nil)
  }

  @Test("A line has the size of the decoded body, and says that it came from a cache") func sizes() async {
    let log = log()
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let session = Session.real(configuration: .cached(by: cache), eventMonitors: [log])
    server.enqueue(Reply.text("hello").with(header: "Cache-Control", value: "max-age=600"))
    for _ in 0..<2 { _ = await session.request(server.url("/a")).serializingData().response }
    let text = await session.request(server.url("/gzip")).serializingData().response.data ?? Data()
    let messages = messages(log)
    #expect(messages[0].hasSuffix("5 bytes, …"))
    #expect(messages[1].hasSuffix(" bytes, from a cache, …"))
    #expect(messages[2].contains(", \(text.count) bytes, "))
  }

  @Test("Redirects are those of the last attempt, retries and the duration are those of all") func attempts()
    async throws
  {
    let log = log()
    server.enqueue(.redirect(to: "/b"), .status(503), .status(503), .redirect(to: "/b"), .text("ok"))
    let request = session(log).request(
      server.url("/a"), interceptor: RetryPolicy(exponentialBackoffScale: 0.001))
    let response = await request.validate().serializingData().response
    #expect(response.error == nil)
    #expect(messages(log).last?.hasSuffix(", 1 redirect, 2 retries") == true)
    let (first, last) = (try #require(request.allMetrics.first), try #require(request.allMetrics.last))
    #expect(
      entries.values.last?.duration
        == last.taskInterval.end.timeIntervalSince(first.taskInterval.start))
  }

  @Test("A part of a stream that cannot be decoded is an error") func stream() async {
    let log = log(.error)
    server.enqueue(.text("{}"))
    let ends = Recorder<Int>()
    session(log).streamRequest(server.url("/a")).responseStreamDecodable(of: [Int].self, on: .global()) {
      stream in
      if case .complete = stream.event { ends.add(1) }
    }
    await ends.wait(for: 1)
    #expect(messages(log).count == 1)
    #expect(entries.values.first?.error?.isResponseSerializationError == true)
    #expect(entries.values.first?.method == "GET" && entries.values.first?.statusCode == 200)
  }

  @Test("Failures of others than serializers have one line") func validation() async {
    let log = log()
    server.enqueue(.status(404))
    _ = await session(log).request(server.url("/a")).validate().serializingString().response
    #expect(messages(log).count == 1)
  }
}

/// Values of the task that makes a request, as tracing uses them.
@Suite("Task-local values", .timeLimit(.minutes(5))) struct TaskLocalTests {
  enum Trace {
    @TaskLocal static var id: String?
  }

  @Test("Interceptors see the task-local values of the task that awaits the response") func interceptors()
    async throws
  {
    let seen = Recorder<String?>()
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(503), .text("ok"))
    let interceptor = Interceptor(
      adaptHandler: { request, _, completion in
        seen.add(Trace.id)
        completion(.success(request))
      },
      retryHandler: { _, _, _, completion in
        seen.add(Trace.id)
        completion(.retry)
      })
    let session = Session.real(configuration: .isolated)
    let value = try await Trace.$id.withValue("4bf92f35") {
      try await session.request(server.url("/"), interceptor: interceptor).validate().serializingString()
        .value
    }
    #expect(value == "ok")
    #expect(seen.values == ["4bf92f35", "4bf92f35", "4bf92f35"])
  }
}
