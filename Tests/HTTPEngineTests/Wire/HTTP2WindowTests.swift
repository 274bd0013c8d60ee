import HTTPEngine
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// The windows of streams, from the sink of a response to the server (RFC 9113 §5.2).
@Suite("Windows of HTTP/2 streams", .timeLimit(.minutes(3)))
struct HTTP2WindowTests {
  private static let window = 262_144

  private static func client() -> Client { Client { $0.httpVersions = .http2PriorKnowledge } }

  /// Sends content as far as the client has opened the window, and returns when all of it was sent.
  private static func send(
    _ content: [UInt8], on stream: UInt32, _ window: Int, _ http2: HTTP2TestConnection,
    _ connection: StreamTestConnection
  ) throws {
    var (sent, window) = (0, window)
    while sent < content.count {
      let part = content[sent..<min(sent + window, content.count)]
      try #require(!part.isEmpty, "the window is closed after \(sent) bytes, although all were read")
      sent = part.endIndex
      window -= part.count
      try http2.send(Array(part), on: stream, endsStream: sent == content.count)
      window += try connection.windowGranted(to: stream, http2)
    }
  }

  @Test("The window of a stream is opened again for each byte that was read") func download() async throws {
    let content = Content.bytes(3 << 20)
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      do {
        try Self.send(content, on: stream, Self.window, http2, connection)
        connection.waitForEnd()
      } catch is ExpectationFailedError {
        // The end of the connection ends the request.
      }
    }
    let response = try await Self.client().get("http://localhost:\(server.port)/")
    #expect(response.bytes == content)
  }

  @Test("A full sink keeps the window closed, and opens it when it has room", .steps) func slowSink()
    async throws
  {
    let content = Content.bytes(3 << 20)
    let (isHeld, hasRoom) = (Moment(), Gate())
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(Array(content.prefix(Self.window)), on: stream, endsStream: false)
      let granted = try connection.windowGranted(to: stream, http2)
      #expect(granted == 0, "the sink is full")
      isHeld.come()
      try connection.pass(hasRoom)
      let window = try connection.windowGranted(to: stream, http2)
      do {
        try Self.send(Array(content.dropFirst(Self.window)), on: stream, window, http2, connection)
        connection.waitForEnd()
      } catch is ExpectationFailedError {}
    }
    let client = Self.client()
    let sink = CountingSink(room: 65_536)
    let request = try client.request("http://localhost:\(server.port)/", sink: sink)
    async let response = client.send(request).status
    step("full sink")
    await isHeld.wait()
    await sink.isFull.wait()
    #expect(sink.count <= 2 * 65_536)
    step("sink with room")
    sink.grant(.max / 2)
    // The loop performs its commands in order, so it has read more before it answers.
    _ = await client.transport.snapshot()
    hasRoom.open()
    #expect(try await response == 200)
    #expect(sink.count == content.count)
  }

  @Test("A response that has ended waits for its sink") func endBeforeSink() async throws {
    let content = Content.bytes(200_000)
    let hasEnded = Moment()
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(content, on: stream, endsStream: true)
      _ = try connection.windowGranted(to: stream, http2)
      hasEnded.come()
      connection.waitForEnd()
    }
    let client = Self.client()
    let sink = CountingSink(room: 65_536)
    let watcher = Watcher()
    let request = try client.request("http://localhost:\(server.port)/", sink: sink)
    async let response = client.send(request, watcher: watcher).status
    await hasEnded.wait()
    await sink.isFull.wait()
    #expect(watcher.endedCount == 0 && sink.count < content.count)
    sink.grant(.max / 2)
    #expect(try await response == 200)
    #expect(sink.count == content.count)
  }
}

extension StreamTestConnection {
  /// Returns what the client adds to the window of a stream for the content that was sent before.
  fileprivate func windowGranted(to stream: UInt32, _ http2: HTTP2TestConnection) throws -> Int {
    var granted = 0
    // The first answer may leave before the updates of the same turn.
    for _ in 0..<2 {
      try http2.write(.ping, payload: [UInt8](repeating: 0, count: 8))
      var isAnswered = false
      while !isAnswered {
        let head = try readExactly(9)
        let payload = try readExactly(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
        switch HTTP2TestConnection.Kind(rawValue: head[3]) {
        case .ping: isAnswered = head[4] & 0x1 != 0
        case .windowUpdate where head[5...8].reduce(0, { $0 << 8 | UInt32($1) }) == stream:
          granted += payload.reduce(0) { $0 << 8 | Int($1) }
        default: break
        }
      }
    }
    return granted
  }
}
