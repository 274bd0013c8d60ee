import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// Connections of HTTP/2 over our own sockets.
@Suite("Connections of HTTP/2", .timeLimit(.minutes(3)))
struct HTTP2ConnectionTests {
  private static func client(_ change: (inout TransportOptions) -> Void = { _ in }) -> Client {
    Client {
      $0.httpVersions = .http2PriorKnowledge
      change(&$0)
    }
  }

  /// Starts a server without TLS.
  private static func server(
    settings: [(UInt16, UInt32)] = [], grantsWindow: Bool = true,
    _ script: @escaping @Sendable (HTTP2TestConnection, StreamTestConnection) throws -> Void
  ) throws -> StreamTestServer {
    try StreamTestServer { connection in
      try script(
        HTTP2TestConnection(connection, settings: settings, grantsWindow: grantsWindow), connection)
    }
  }

  private static func url(_ server: StreamTestServer) -> String { "http://localhost:\(server.port)/" }

  /// Returns a field line of HPACK with a value of 120 bytes.
  private static func line(_ name: String) -> [UInt8] {
    var line: [UInt8] = [0x00, UInt8(name.utf8.count)]
    line += name.utf8
    return line + [120] + [UInt8](repeating: 0x61, count: 120)
  }

  private static func answerAll(_ http2: HTTP2TestConnection) throws {
    while true {
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(Array("ok".utf8), on: stream, endsStream: true)
    }
  }

  @Test("Requests share a connection, also without TLS") func reuse() async throws {
    let server = try Self.server { http2, _ in try Self.answerAll(http2) }
    let client = Self.client()
    for _ in 0..<3 {
      let response = try await client.get(Self.url(server))
      #expect(response.text == "ok" && response.head.version == .http2)
    }
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await client.get(Self.url(server)).status } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == Array(repeating: 200, count: 20))
    #expect(server.connectionCount == 1)
  }

  @Test("A burst waits for the first connection") func burst() async throws {
    let server = try HTTP2Server.start { http2, _ in try Self.answerAll(http2) }
    let client = Client()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await client.get("https://localhost:\(server.port)/").status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(server.connectionCount == 1)
  }

  @Test("A burst to a new host is not held back until the first response") func wholeBurst() async throws {
    let server = try Self.server { http2, _ in
      let streams = try (0..<20).map { _ in try http2.request() }
      for stream in streams { try http2.respond(200, on: stream) }
      try Self.answerAll(http2)
    }
    let client = Self.client()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await client.get(Self.url(server)).status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(server.connectionCount == 1)
  }

  @Test("A request that waits for a stream is in the queue of its host, and comes by its priority", .steps)
  func priorities() async throws {
    let (isFirst, mayEnd) = (Moment(), Gate())
    let lengths = Mutex<[Int]>([])
    let server = try Self.server(settings: [(3, 1)]) { http2, connection in
      try http2.respond(200, on: http2.request())
      let stream = try http2.request()
      isFirst.come()
      try connection.pass(mayEnd)
      try http2.respond(200, on: stream)
      while true {
        var length = 0
        var frame = try http2.next()
        while !frame.endsStream {
          frame = try http2.next()
          length += frame.payload.count
        }
        lengths.withLock { $0.append(length) }
        try http2.respond(200, on: frame.stream)
      }
    }
    step("first request")
    let client = Client(connectionsPerHost: 1) { $0.httpVersions = .http2PriorKnowledge }
    #expect(try await client.get(Self.url(server)).status == 200)
    step("request that takes the stream")
    async let first = client.get(Self.url(server)).status
    await isFirst.wait()
    step("requests that wait")
    try await withThrowingTaskGroup(of: Int.self) { group in
      for (length, priority) in [(1, Float(0.1)), (2, 0.9), (3, 0.5)] {
        let body = RequestBody.bytes(Data(repeating: 0, count: length))
        let request = try client.request(Self.url(server), "POST", body: body, priority: priority)
        let watcher = Watcher()
        group.addTask { try await client.send(request, watcher: watcher).status }
        await watcher.began.wait()
      }
      mayEnd.open()
      for try await status in group { #expect(status == 200) }
    }
    step("order of the requests")
    #expect(try await first == 200)
    #expect(lengths.withLock { $0 } == [2, 3, 1])
  }

  @Test("A window that opens late harms neither its upload nor other requests") func lateWindow() async throws
  {
    let begun = Moment()
    let server = try Self.server(settings: [(4, 0)], grantsWindow: false) { http2, _ in
      // With the first response the client knows that it has no window.
      try http2.respond(200, on: http2.request())
      let upload = try http2.next()
      begun.come()
      for _ in 0..<3 { try http2.respond(200, on: http2.request()) }
      try http2.write(.settings, payload: [0, 4, 0, 0, 0xFF, 0xFF])
      #expect(try http2.request() == upload.stream)
      try http2.respond(201, on: upload.stream)
      _ = try http2.next()
    }
    let client = Self.client()
    let request = try client.request(
      Self.url(server), "POST", body: .bytes(Data(repeating: 1, count: 20_000)))
    #expect(try await client.get(Self.url(server)).status == 200)
    async let upload = client.send(request).status
    await begun.wait()
    for _ in 0..<3 { #expect(try await client.get(Self.url(server)).status == 200) }
    #expect(try await upload == 201)
    #expect(server.connectionCount == 1)
  }

  @Test("Two uploads share the window of their connection") func sharedWindow() async throws {
    let server = try Self.server { http2, _ in
      while true { try http2.respond(200, on: http2.request()) }
    }
    let client = Self.client()
    #expect(try await client.get(Self.url(server)).status == 200)
    let request = try client.request(
      Self.url(server), "POST", body: .bytes(Data(repeating: 1, count: 300_000)))
    async let first = client.send(request).status
    async let second = client.send(request).status
    #expect(try await [first, second] == [200, 200])
    #expect(server.connectionCount == 1)
  }

  @Test(
    "A response before RST_STREAM counts, and ends the upload", arguments: [200, 413], [0, 8] as [UInt8])
  func responseBeforeReset(status: Int, code: UInt8) async throws {
    let server = try Self.server(grantsWindow: false) { http2, _ in
      let stream = try http2.next().stream
      try http2.respond(status, on: stream, endsStream: false)
      try http2.send(Array("early".utf8), on: stream, endsStream: true)
      try http2.write(.reset, stream: stream, payload: [0, 0, 0, code])
      try Self.answerAll(http2)
    }
    let client = Self.client()
    let request = try client.request(
      Self.url(server), "POST", body: .bytes(Data(repeating: 1, count: 300_000)))
    let response = try await client.send(request)
    #expect(response.status == status && response.text == "early")
    #expect(server.connectionCount == 1)
  }

  @Test("A refusal ends the upload although the server never resets it") func refusedUpload() async throws {
    let server = try Self.server(grantsWindow: false) { http2, _ in
      let stream = try http2.next().stream
      try http2.respond(413, on: stream)
      var frame = try http2.next()
      while frame.kind == .data { frame = try http2.next() }
      #expect(frame.kind == .reset && frame.payload == [0, 0, 0, 8], "\(frame)")
      try Self.answerAll(http2)
    }
    let client = Self.client()
    let request = try client.request(
      Self.url(server), "POST", body: .bytes(Data(repeating: 1, count: 300_000)))
    let response = try await client.send(request)
    #expect(response.status == 413 && response.metrics.values.requestEnd == -1)
    #expect(try await client.get(Self.url(server)).text == "ok")
    #expect(server.connectionCount == 1)
  }

  @Test("A request that is cancelled resets its stream alone") func cancelled() async throws {
    let isReset = Moment()
    let server = try Self.server { http2, _ in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      let frame = try http2.next()
      #expect(frame.kind == .reset && frame.stream == stream && frame.payload == [0, 0, 0, 8])
      isReset.come()
      try Self.answerAll(http2)
    }
    let client = Self.client()
    let watcher = Watcher(onHead: { $0.cancel() })
    let request = try client.request(Self.url(server))
    #expect(try await client.failure(of: request, watcher: watcher).kind == .cancelled)
    await isReset.wait()
    #expect(try await client.get(Self.url(server)).text == "ok")
    #expect(server.connectionCount == 1)
  }

  @Test("A server that is busy gets the request again after a pause") func busy() async throws {
    let connections = Counter()
    let server = try Self.server { http2, connection in
      connections.enter()
      _ = try http2.request()
      guard connections.now > 2 else {
        // ENHANCE_YOUR_CALM, and no stream was processed.
        return try http2.write(.goAway, payload: [0, 0, 0, 0, 0, 0, 0, 11])
      }
      try http2.respond(200, on: 1)
      connection.waitForEnd()
    }
    let start = ContinuousClock.now
    #expect(try await Self.client().get(Self.url(server)).status == 200)
    #expect(server.connectionCount == 3)
    #expect(ContinuousClock.now - start >= .milliseconds(100), "the second repeat did not wait")
  }

  @Test("The code of a reset is named") func namedCode() async throws {
    let server = try Self.server { http2, connection in
      let stream = try http2.request()
      try http2.write(.reset, stream: stream, payload: [0, 0, 0, 11])
      connection.waitForEnd()
    }
    let failure = try await Self.client().failure(of: Self.url(server))
    #expect(
      failure.kind == .connectionLost && failure.message.contains("ENHANCE_YOUR_CALM"), "\(failure.message)")
    #expect(server.connectionCount == 1)
  }

  @Test("The time for which a request waits for a stream is not the silence of the host")
  func waitingForStream() async throws {
    let (isFirst, mayEnd) = (Moment(), Gate())
    let server = try Self.server(settings: [(3, 1)]) { http2, connection in
      try http2.respond(200, on: http2.request())
      let stream = try http2.request()
      isFirst.come()
      try connection.pass(mayEnd)
      try http2.respond(200, on: stream)
      try Self.answerAll(http2)
    }
    let client = Client(connectionsPerHost: 1) { $0.httpVersions = .http2PriorKnowledge }
    #expect(try await client.get(Self.url(server)).status == 200)
    async let first = client.get(Self.url(server)).status
    await isFirst.wait()
    async let second = client.send(client.request(Self.url(server), idleTimeout: .milliseconds(100))).status
    try await Client().passTime(.milliseconds(300))
    mayEnd.open()
    #expect(try await [first, second] == [200, 200])
    #expect(server.connectionCount == 1)
  }

  @Test("A head of 200 KB arrives") func largeHead() async throws {
    let server = try Self.server { http2, connection in
      let stream = try http2.request()
      try http2.write(.headers, flags: 0x1, stream: stream, payload: [0x88])
      let block = (0..<1_700).flatMap { Self.line("x-\($0 + 1_000)") }
      var rest = block[...]
      while !rest.isEmpty {
        let part = Array(rest.prefix(16_384))
        rest = rest.dropFirst(part.count)
        try http2.write(.continuation, flags: rest.isEmpty ? 0x4 : 0, stream: stream, payload: part)
      }
      connection.waitForEnd()
    }
    let client = Self.client { $0.headerSizeLimit = 300_000 }
    let response = try await client.get(Self.url(server))
    #expect(response.head.block.bytes.count == 1_700 * 130)
    let failure = try await Self.client { $0.headerSizeLimit = 100_000 }.failure(of: Self.url(server))
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure.message)")
  }

  @Test("A flood ends the connection, and is not asked for again") func flood() async throws {
    let server = try Self.server { http2, connection in
      _ = try http2.request()
      let ping = HTTP2TestConnection.bytes(of: .ping, payload: [UInt8](repeating: 1, count: 8))
      try connection.write([UInt8]((0..<5_000).flatMap { _ in ping }))
      connection.waitForEnd()
    }
    let failure = try await Self.client().failure(of: Self.url(server))
    #expect(
      failure.kind == .badServerResponse && failure.message.contains("ENHANCE_YOUR_CALM"),
      "\(failure.message)")
    #expect(server.connectionCount == 1)
  }

  @Test("An idle connection that the server closes is not used again") func idleEnd() async throws {
    let ended = Moment()
    let server = try Self.server { http2, _ in
      try http2.respond(200, on: http2.request())
      ended.come()
    }
    let client = Self.client()
    for _ in 0..<3 {
      #expect(try await client.get(Self.url(server)).status == 200)
      await ended.wait()
    }
    #expect(server.connectionCount == 3)
  }

  @Test("Content waits for the response 100", arguments: [true, false]) func expectation(agrees: Bool)
    async throws
  {
    let server = try Self.server { http2, _ in
      let head = try http2.next()
      #expect(!head.endsStream)
      guard agrees else {
        try http2.respond(401, on: head.stream)
        let frame = try http2.next()
        #expect(frame.kind == .reset, "no content follows a final response: \(frame)")
        return try Self.answerAll(http2)
      }
      try http2.respond(100, on: head.stream, endsStream: false)
      let content = try http2.next()
      #expect(content.kind == .data && content.payload == [7] && content.endsStream)
      try http2.respond(200, on: head.stream)
      try Self.answerAll(http2)
    }
    let client = Self.client()
    let request = try client.request(
      Self.url(server), "POST", fields: [HTTPHeader(name: "Expect", value: "100-continue")],
      body: .bytes(Data([7])))
    #expect(try await client.send(request).status == (agrees ? 200 : 401))
    #expect(server.connectionCount == 1)
  }

  @Test("A refused expectation is sent again without it") func refusedExpectation() async throws {
    let server = try Self.server { http2, _ in
      let head = try http2.next()
      try http2.respond(417, on: head.stream)
      let stream = try http2.request(except: [head.stream])
      try http2.respond(200, on: stream)
      try Self.answerAll(http2)
    }
    let client = Self.client()
    let request = try client.request(
      Self.url(server), "POST", fields: [HTTPHeader(name: "Expect", value: "100-continue")],
      body: .bytes(Data([7])))
    #expect(try await client.send(request).status == 200)
    #expect(server.connectionCount == 1)
  }
}
