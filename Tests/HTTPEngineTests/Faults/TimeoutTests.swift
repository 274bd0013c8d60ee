import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct TimeoutTests {
  static let short = Duration.milliseconds(150)

  /// Expects the timeout of a silent reply, and a response afterwards. The path selects the silent reply. On a busy
  /// machine, the timeout can end before the server has read the request, which it may then read after the next one.
  /// The connection exists before, so that connecting does not take the time.
  static func expectTimeout(
    _ reply: Reply, isTLS: Bool = false, _ location: SourceLocation = #_sourceLocation
  ) async throws {
    let routes = Routes.none.adding("/silent") { _, _ in reply }.adding("/next") { _, _ in .text("next") }
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: routes)
    let client = Client()
    #expect(try await client.get(server.url("/next")).text == "next", sourceLocation: location)
    let start = ContinuousClock.now
    let failure = try await client.failure(of: server.url("/silent"), idleTimeout: short, location)
    #expect(failure.kind == .timedOut, sourceLocation: location)
    #expect(failure.helps(host: isTLS ? "localhost" : "127.0.0.1"), sourceLocation: location)
    #expect(failure.message.contains("0.15 seconds"), sourceLocation: location)
    #expect(failure.metrics != nil, sourceLocation: location)
    #expect(ContinuousClock.now - start >= short, sourceLocation: location)
    #expect(try await client.get(server.url("/next")).text == "next", sourceLocation: location)
  }

  @Test("An idle server before the head times out", arguments: [false, true]) func idleBeforeHead(isTLS: Bool)
    async throws
  {
    try await Self.expectTimeout(.stall, isTLS: isTLS)
  }

  @Test("An idle server after the head times out", arguments: [false, true]) func idleAfterHead(isTLS: Bool)
    async throws
  {
    try await Self.expectTimeout(.stallAfterHead, isTLS: isTLS)
  }

  @Test("An idle server in the body times out", arguments: [false, true]) func idleInBody(isTLS: Bool)
    async throws
  {
    try await Self.expectTimeout(.stallAfterBody(bytes: 5000), isTLS: isTLS)
  }

  @Test("An idle server during an upload times out") func idleDuringUpload() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok.requestBody(.held(Gate())))
    let client = Client()
    let body = RequestBody.bytes(Data(count: 30_000_000))
    let request = try client.request(server.url("/"), "POST", body: body, idleTimeout: Self.short)
    let watcher = Watcher()
    let failure = try await client.failure(of: request, watcher: watcher)
    #expect(failure.kind == .timedOut)
    #expect((watcher.last?.sent ?? 0) < 30_000_000)
  }

  /// Starts a server that answers a request, refuses the content of the next one once the gate is open, and then stops
  /// within the body of the refusal. The first request is for the connection, so that making it does not take the time.
  private func refusingServer(_ gate: Gate, isHTTP2: Bool) throws -> StreamTestServer {
    guard isHTTP2 else {
      return try StreamTestServer { connection in
        _ = try connection.readHead()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        _ = try connection.readHead()
        try connection.pass(gate)
        try connection.write("HTTP/1.1 413 Too Large\r\nContent-Length: 100\r\n\r\n0123456789")
        connection.waitForEnd()
      }
    }
    return try HTTP2Server.start { http2, connection in
      try http2.respond(200, on: http2.request())
      var frame = try http2.next()
      while frame.kind != .headers { frame = try http2.next() }
      try connection.pass(gate)
      try http2.respond(413, on: frame.stream, endsStream: false)
      try http2.send(Array("0123456789".utf8), on: frame.stream, endsStream: false)
      connection.waitForEnd()
    }
  }

  @Test(
    "A server that refuses an upload and is then idle times out, although the upload waits for its source",
    arguments: [false, true], [false, true])
  func idleAfterRefusal(isHTTP2: Bool, hasTrailers: Bool) async throws {
    let gate = Gate()
    let server = try refusingServer(gate, isHTTP2: isHTTP2)
    let url = isHTTP2 ? "https://localhost:\(server.port)/" : "http://127.0.0.1:\(server.port)/"
    let client = Client()
    #expect(try await client.get(url).status == 200)
    let source = ScriptedSource(.bytes([1]), .wait)
    let isAskedForTrailers = Moment()
    let body = hasTrailers ? RequestBody.bytes(Data([1])) : .source(source)
    let request = try client.request(url, "POST", body: body, idleTimeout: Self.short).changing {
      // The completion is never called.
      if hasTrailers { $0.trailers = RequestTrailers(names: []) { _ in isAskedForTrailers.come() } }
    }
    async let outcome = client.failure(of: request)
    await (hasTrailers ? isAskedForTrailers : source.hasWaited).wait()
    gate.open()
    let failure = try await outcome
    #expect(failure.kind == .timedOut && failure.phase == .idle, "\(failure.message)")
    #expect(failure.partial?.head.status == 413)
  }

  @Test("A connection of HTTP/2 on which nothing arrived before a timeout is not used again") func silence()
    async throws
  {
    let count = Mutex(0)
    let server = try StreamTestServer { connection in
      let number = count.withLock { count in
        count += 1
        return count
      }
      let http2 = try HTTP2TestConnection(connection)
      try http2.respond(200, on: http2.request())
      // As if a router had forgotten the first connection.
      if number > 1 { while true { try http2.respond(200, on: http2.request()) } }
      _ = try connection.readToEnd()
    }
    let client = Client { $0.httpVersions = .http2PriorKnowledge }
    let url = "http://127.0.0.1:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    #expect(try await client.failure(of: url, idleTimeout: Self.short).kind == .timedOut)
    for _ in 0..<2 { #expect(try await client.get(url).status == 200) }
    #expect(count.withLock { $0 } == 2)
  }

  @Test("A handshake without a response times out") func handshake() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(connections: .stall, .stall)
    let client = Client()
    let failure = try await client.failure(of: server.url("/get"), idleTimeout: Self.short)
    #expect(failure.kind == .timedOut && failure.phase == .idle)
    #expect(failure.helps(host: "localhost"))
    // Bytes of the handshake may have moved.
    #expect(failure.message.contains("not established within 0.15 seconds"), "\(failure.message)")
    let impatient = Client.profile { $0.connectTimeout = Self.short }
    let request = try client.request(server.url("/get"), profile: impatient)
    let second = try await client.failure(of: request)
    #expect(second.kind == .timedOut)
    #expect(second.helps(host: "localhost"))
    #expect(second.message.contains("connect"))
    #expect(try await client.get(server.url("/get")).status == 200)
  }

  @Test("Every byte restarts the idle timer") func restart() async throws {
    let server = try HTTPTestServer(routes: .none)
    // Ten steps take more than a second, with short silences only.
    server.enqueue(.slowDrip(bytesPerStep: 3, interval: .milliseconds(120)))
    let client = Client()
    let request = try client.request(server.url("/"), idleTimeout: .seconds(1))
    let response = try await client.send(request)
    #expect(response.bytes == Reply.patternBytes(30))
    #expect(response.metrics.values.end > 1_000_000)
  }

  @Test("The deadline ends a slow body") func slowBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    // The reply would last half a minute.
    let drops = (0..<300).flatMap { _ in [Reply.Part.bytes([1]), .pause(.milliseconds(100))] }
    server.enqueue(Reply(body: .parts(drops)))
    let client = Client()
    let start = ContinuousClock.now
    let request = try client.request(server.url("/"), idleTimeout: .seconds(20), deadline: .milliseconds(300))
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .timedOut)
    #expect(failure.message.contains("timeoutIntervalForResource"))
    #expect(failure.helps(host: "127.0.0.1"))
    #expect(ContinuousClock.now - start >= .milliseconds(300))
    #expect(try #require(failure.metrics).values.decodedBodyBytes < 300)
  }

  @Test("A deadline in the past ends the request at once") func pastDeadline() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.stall)
    let client = Client()
    let request = try client.request(server.url("/"), deadline: .seconds(-1))
    #expect(try await client.failure(of: request).kind == .timedOut)
  }

  @Test("Without a limit a slow response is complete") func noLimit() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("late").delayed(by: .milliseconds(200)))
    let client = Client()
    let request = try client.request(server.url("/"), idleTimeout: nil)
    #expect(try await client.send(request).text == "late")
  }

  @Test("The time in the queue is not idle time") func timeInQueue() async throws {
    let server = try HTTPTestServer(routes: .none)
    for _ in 0..<5 { server.enqueue(.text("x").delayed(by: .milliseconds(300))) }
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    // The last one waits for 1200 ms, but its own exchange is quick.
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<5 {
        group.addTask { try await client.send(client.request(url, idleTimeout: .seconds(1))).status }
      }
      for try await status in group { #expect(status == 200) }
    }
  }

  @Test("The deadline includes the time in the queue") func deadlineInQueue() async throws {
    let server = try HTTPTestServer(routes: .none)
    let gate = Gate()
    server.enqueue(.text("first").held(by: gate))
    let client = Client(connectionsPerHost: 1)
    let url = server.url("/")
    let first = Task { try await client.get(url).text }
    await gate.waitForArrival()
    let request = try client.request(url, deadline: Self.short)
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .timedOut)
    #expect(failure.metrics == nil, "a transfer that never started has no metrics")
    gate.open()
    #expect(try await first.value == "first")
    #expect(server.requestCount == 1)
  }
}
