import Glibc
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ServerTests {
  private let server: HTTPTestServer
  private let client: RawClient

  init() throws {
    server = try HTTPTestServer()
    client = try RawClient(server)
  }

  @Test("An enqueued reply precedes the routes") func enqueuedReply() throws {
    server.enqueue(.text("first"), .status(503).with(header: "Retry-After", value: "1"))
    #expect(server.pendingReplyCount == 2)
    #expect(try client.get("/get").text == "first")
    let second = try client.get("/get")
    #expect(second.statusLine == "HTTP/1.1 503 Service Unavailable")
    #expect(second.field("retry-after") == "1")
    #expect(try client.get("/get").text.contains("\"url\""))
    #expect(server.pendingReplyCount == 0)
    #expect(server.connectionCount == 1)
  }

  @Test("A request is recorded unchanged") func record() async throws {
    try client.write(
      "POST /a%20b?x=1&y=%C3%A4+b&x HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nx-twice: 2\r\n"
        + "Content-Length: 5\r\n\r\nhello")
    #expect(try client.readResponse().status == 404)
    let request = try await server.takeRequest()
    #expect(request.method == "POST")
    #expect(request.target == "/a%20b?x=1&y=%C3%A4+b&x")
    #expect(request.path == "/a%20b")
    #expect(request.query.map(\.name) == ["x", "y", "x"])
    #expect(request.query.map(\.value) == ["1", "ä b", ""])
    #expect(request.queryValue("x") == "1")
    #expect(request.headers.map(\.name) == ["Host", "X-Twice", "x-twice", "Content-Length"])
    #expect(request.header("X-TWICE") == "1")
    #expect(request.headers(named: "x-twice") == ["1", "2"])
    #expect(request.version == "HTTP/1.1")
    #expect(request.bodyLength == 5)
    #expect(request.bodyText == "hello")
    #expect(request.isBodyComplete)
    #expect(!request.isChunked)
    #expect(request.tlsVersion == nil)
  }

  @Test("A chunked body is recorded with its trailers") func chunkedBody() async throws {
    server.enqueue(.ok)
    try client.write(
      "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        + "3\r\nabc\r\n2\r\nde\r\n0\r\nSum: 5\r\n\r\n")
    #expect(try client.readResponse().status == 200)
    let request = try await server.takeRequest()
    #expect(request.bodyText == "abcde")
    #expect(request.isChunked)
    #expect(request.trailers.map(\.description) == ["Sum: 5"])
  }

  @Test("Requests are taken in order and remain in the record") func order() async throws {
    for path in ["/1", "/2", "/3"] { _ = try client.get(path) }
    let second = try RawClient(server)
    _ = try second.get("/4")
    #expect(try await server.takeRequest().path == "/1")
    #expect(try await server.takeRequest().indexOnConnection == 1)
    #expect(try await server.takeRequest().connection == 0)
    let last = try await server.takeRequest()
    #expect(last.connection == 1)
    #expect(last.indexOnConnection == 0)
    #expect(server.recordedRequests.map(\.path) == ["/1", "/2", "/3", "/4"])
    #expect(server.requestCount == 4)
    server.forgetRequests()
    #expect(server.requestCount == 0)
    _ = try client.get("/5")
    #expect(try await server.takeRequest().path == "/5")
  }

  @Test("takeRequest waits for a request") func wait() async throws {
    let first = Task { [server] in try await server.takeRequest() }
    try client.ask("GET", "/late")
    #expect(try await first.value.path == "/late")
  }

  @Test("takeRequest times out") func timeout() async {
    await #expect(throws: ServerError.timedOut(after: .milliseconds(20))) {
      try await server.takeRequest(timeout: .milliseconds(20))
    }
  }

  @Test("takeRequest without a time ends at once") func noTime() async {
    for _ in 0..<2_000 {
      await #expect(throws: ServerError.timedOut(after: .zero)) {
        try await server.takeRequest(timeout: .zero)
      }
    }
    let long = Task { [server] in try await server.takeRequest(timeout: .seconds(Int64.max)) }
    long.cancel()
    await #expect(throws: ServerError.cancelled) { try await long.value }
  }

  @Test("takeRequest ends when the task is cancelled") func cancel() async {
    let task = Task { [server] in try await server.takeRequest() }
    task.cancel()
    await #expect(throws: ServerError.cancelled) { try await task.value }
  }

  @Test("takeRequest ends when the server stops") func stop() async throws {
    _ = try client.get("/last")
    let server = server
    server.stop()
    #expect(try await server.takeRequest().path == "/last")
    await #expect(throws: ServerError.stopped) { try await server.takeRequest() }
    let other = try HTTPTestServer()
    let waiting = Task { try await other.takeRequest() }
    other.stop()
    await #expect(throws: ServerError.stopped) { try await waiting.value }
  }

  @Test("Pipelined requests are answered in order") func pipelining() throws {
    server.enqueue(.text("1"), .text("2"), .text("3"))
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
    try client.write(post + "GET /b HTTP/1.1\r\nHost: h\r\n\r\n" + post)
    #expect(try (1...3).map { _ in try client.readResponse().text } == ["1", "2", "3"])
    #expect(server.recordedRequests.map(\.bodyText) == ["abc", "", "abc"])
  }

  @Test("A connection ends on request of the client") func connectionClose() throws {
    let response = try client.get("/ip", ["Connection: close"])
    #expect(response.field("Connection") == "close")
    #expect(client.endingError() == nil)
  }

  @Test("A client of HTTP/1.0 is served") func oldClient() throws {
    try client.write("GET /stream/2 HTTP/1.0\r\n\r\n")
    let text = try client.readText()
    #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(!text.contains("chunked"))
    #expect(text.split(separator: #""id": "#).count == 3)
  }

  @Test("The client receives 100 Continue") func expectContinue() async throws {
    server.enqueue(.ok)
    try client.ask("POST", "/", ["Content-Length: 3", "Expect: 100-continue"])
    #expect(try client.readResponse().status == 100)
    try client.write("abc")
    #expect(try client.readResponse().status == 200)
    #expect(try await server.takeRequest().bodyText == "abc")
  }

  @Test("Malformed requests are refused and not recorded") func malformedRequests() throws {
    try client.write("nonsense\r\n\r\n")
    let response = try client.readResponse()
    #expect(response.status == 400)
    #expect(response.text == "not a request line: nonsense")
    #expect(client.endingError() == nil)
    let other = try RawClient(server)
    try other.write("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    #expect(try other.readResponse().status == 400)
    #expect(server.requestCount == 0)
  }

  @Test(
    "A request without Host, with two of them, or with two framings is refused",
    arguments: [
      "", "Host: a\r\nHost: a\r\n", "Host: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ])
  func ambiguousRequests(_ fields: String) throws {
    try client.write("POST /post HTTP/1.1\r\n\(fields)\r\n0\r\n\r\n")
    let response = try client.readResponse()
    #expect(response.status == 400)
    #expect(response.field("Connection") == "close")
    #expect(client.endingError() == nil)
    #expect(server.requestCount == 0)
  }

  @Test("Added routes precede the standard ones") func addedRoutes() throws {
    let routes = Routes.standard.adding("/get/{a}", methods: ["GET"]) { request, parameters in
      .text("\(request.method) \(parameters)")
    }.adding("/ip", methods: ["GET"]) { _, _ in .text("mine") }
    let server = try HTTPTestServer(routes: routes)
    let client = try RawClient(server)
    #expect(try client.get("/get/x%20y").text == #"GET ["x y"]"#)
    #expect(try client.get("/ip").text == "mine")
    #expect(try client.get("/get").status == 200)
    let empty = try HTTPTestServer(routes: .none)
    #expect(try RawClient(empty).get("/get").status == 404)
  }

  @Test("Idle connections are closed and busy ones are not") func idleConnections() async throws {
    let gate = Gate()
    server.enqueue(.ok, Reply.text("busy").held(by: gate))
    _ = try client.get("/")
    let busy = try RawClient(server)
    try busy.ask("GET", "/")
    await gate.waitUntilReached()
    #expect(server.openConnectionCount == 2)
    server.closeIdleConnections()
    #expect(client.endingError() == nil)
    gate.open()
    #expect(try busy.readResponse().text == "busy")
    #expect(try busy.get("/ip").status == 200)
    #expect(server.connectionCount == 2)
  }

  @Test("A connection is idle as soon as its client has the response")
  func idleAfterResponse() throws {
    for round in 0..<1000 {
      // The last bytes are a part of the text, or generated, or an empty chunk.
      let replies = [Reply.text("x"), .bytes(100_000), .parts("x")]
      server.enqueue(replies[round % 3])
      let client = try RawClient(server)
      _ = try client.get("/")
      server.closeIdleConnections()
      let error = client.endingError()
      #expect(error == nil, "round \(round)")
      if error != nil { return }
    }
  }

  @Test("A client that does not read its response does not hold up the end of other connections")
  func idleBesideUnread() async throws {
    let bytes = 16 << 20
    server.enqueue(.bytes(bytes))
    let reader = try RawClient(server)
    try reader.ask("GET", "/")
    _ = try await server.takeRequest()
    _ = try client.get("/ip")
    server.closeIdleConnections()
    #expect(client.endingError() == nil)
    #expect(try reader.readResponse().body.count == bytes)
  }

  @Test("A port outside of the range of ports is refused", arguments: [-1, 65_536, 70_000, .max])
  func impossiblePort(_ port: Int) {
    #expect(throws: ServerError.system(call: "bind", code: EINVAL)) { try HTTPTestServer(port: port) }
  }

  @Test("No other address than 127.0.0.1 accepts connections") func otherAddress() {
    let port = server.port
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    let code = RawClient.connect(descriptor, to: port, of: 0x7F00_0002)
    #expect(code == ECONNREFUSED, "127.0.0.2 is an address of this machine as well")
  }

  @Test("URLs are formed from paths") func urls() {
    #expect(server.baseURL == "http://127.0.0.1:\(server.port)")
    #expect(server.url("/a?b") == "\(server.baseURL)/a?b")
    #expect(server.url("a") == "\(server.baseURL)/a")
  }
}
