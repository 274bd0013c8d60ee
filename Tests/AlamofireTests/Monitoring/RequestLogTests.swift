import Alamofire
import Foundation
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
