import Glibc
@testable import HTTPTestServer
import Synchronization
import Testing

/// Scripts of ``StreamTestServer``, and the protocols on its connections.
@Suite(.timeLimit(.minutes(5)))
struct StreamTests {
  /// Returns the frames that a script sends after SETTINGS.
  private func frames(
    _ script: @escaping @Sendable (HTTP2TestConnection) throws -> Void
  ) throws -> [(head: [UInt8], payload: [UInt8])] {
    let server = try StreamTestServer { try script(HTTP2TestConnection($0)) }
    let client = try RawClient(port: server.port)
    try client.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    var rest = try client.readToEnd()[...]
    var frames: [(head: [UInt8], payload: [UInt8])] = []
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      frames.append((head, Array(rest.dropFirst(9).prefix(length))))
      rest = rest.dropFirst(9 + length)
    }
    return Array(frames.dropFirst())
  }

  @Test(
    "Long names and values of HTTP/2 fields have their length in several bytes (RFC 7541 §5.1)",
    arguments: [
      (126, [UInt8](arrayLiteral: 126)), (127, [127, 0]), (254, [127, 127]), (255, [127, 0x80, 1]),
      (1337, [127, 0xBA, 0x09]),
    ])
  func longFields(count: Int, length: [UInt8]) throws {
    let text = String(repeating: "a", count: count)
    let frames = try frames { connection in
      try connection.respond(200, [(text, "b")], on: 1, endsStream: false)
      try connection.sendTrailers([("c", text)], on: 1)
    }
    let status: [UInt8] = [0, 7] + Array(":status".utf8) + [3] + Array("200".utf8)
    let name: [UInt8] = [0] + length + Array(text.utf8) + [1, 0x62]
    #expect(frames.first?.payload == status + name)
    #expect(frames.last?.payload == [0, 1, 0x63] + length + Array(text.utf8))
  }

  @Test("A head of HTTP/2 that is longer than a frame is continued in further ones") func longHead() throws {
    let text = String(repeating: "a", count: 40_000)
    let frames = try frames { try $0.respond(200, [("b", text)], on: 1) }
    #expect(frames.map { $0.head[3] } == [1, 9, 9])
    // END_STREAM is of the first frame, END_HEADERS of the last one.
    #expect(frames.map { $0.head[4] } == [1, 0, 4])
    #expect(frames.allSatisfy { $0.payload.count <= 16_384 })
    #expect(frames.flatMap(\.payload).suffix(40_000) == Array(text.utf8)[...])
  }

  @Test("A relay to a port that does not answer ends when the server is stopped") func stoppedRelay() throws {
    let silent = try UnresponsivePort()
    let failure = Mutex<(any Error)?>(nil)
    let server = try StreamTestServer { connection in
      do { try connection.relay(toPort: silent.port) } catch { failure.withLock { $0 = error } }
    }
    let client = try RawClient(port: server.port)
    while server.openConnectionCount == 0 { sched_yield() }
    server.stop()
    let error = failure.withLock { $0 }
    if case .stopped? = error as? Channel.Failure {} else { Issue.record("\(String(describing: error))") }
    client.closeNow()
  }

  @Test("A relay to a port that refuses connections says so") func refusedRelay() throws {
    let port = try HTTPTestServer.refusedPort()
    let failure = Mutex<(any Error)?>(nil)
    let server = try StreamTestServer { connection in
      do { try connection.relay(toPort: port) } catch { failure.withLock { $0 = error } }
    }
    #expect(try RawClient(port: server.port).readToEnd().isEmpty)
    let error = failure.withLock { $0 }
    if case .system("connect", ECONNREFUSED)? = error as? ServerError {
    } else {
      Issue.record("\(String(describing: error))")
    }
  }

  @Test("A relay to a port outside of the range of ports says so") func impossibleRelay() throws {
    let failure = Mutex<(any Error)?>(nil)
    let server = try StreamTestServer { connection in
      do { try connection.relay(toPort: 70_000) } catch { failure.withLock { $0 = error } }
    }
    #expect(try RawClient(port: server.port).readToEnd().isEmpty)
    let error = failure.withLock { $0 }
    #expect(error as? ServerError == .system(call: "connect", code: EINVAL))
  }

  @Test("A script resets its connection also if it throws", arguments: [true, false])
  func reset(throwing: Bool) throws {
    struct Failure: Error {}
    let server = try StreamTestServer { connection in
      connection.reset()
      if throwing { throw Failure() }
    }
    #expect(try RawClient(port: server.port).endingError() == ECONNRESET)
  }

  /// Returns a client after the opening handshake with an endpoint.
  private func webSocketClient(
    of server: HTTPTestServer, _ script: @escaping WebSocketEndpoint.Script
  ) throws -> RawClient {
    server.enqueue(.webSocket(WebSocketEndpoint(script: script)))
    let client = try RawClient(server)
    try client.ask(
      "GET", "/",
      [
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
      ])
    #expect(try client.readResponse().status == 101)
    return client
  }

  @Test("A script that does not answer control frames can answer the client's Close frame itself, once")
  func ownClose() throws {
    let server = try HTTPTestServer()
    let client = try webSocketClient(of: server) { connection in
      connection.answersControlFrames = false
      _ = try connection.next()
      try connection.close(4000, reason: "no")
      try connection.close()
    }
    // A masked Close frame without a payload.
    try client.write([0x88, 0x80, 0, 0, 0, 0])
    #expect(try client.readToEnd() == [0x88, 4, 0x0F, 0xA0] + Array("no".utf8))
  }

  @Test("A script that answers control frames does not send a second Close frame") func answeredClose() throws
  {
    let server = try HTTPTestServer()
    let client = try webSocketClient(of: server) { connection in
      _ = try connection.next()
      try connection.close(4000)
    }
    try client.write([0x88, 0x80, 0, 0, 0, 0])
    #expect(try client.readToEnd() == [0x88, 0])
  }

  @Test(
    "A request that is not a valid handshake is refused, and the response announces the end",
    arguments: [true, false])
  func refusedHandshake(isUpgrade: Bool) throws {
    let server = try HTTPTestServer()
    server.enqueue(.webSocket())
    let client = try RawClient(server)
    let fields = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 12"]
    let response = try client.get("/", isUpgrade ? fields : [])
    #expect(response.status == (isUpgrade ? 426 : 400))
    #expect(response.all("Connection") == [isUpgrade ? "Upgrade, close" : "close"])
    #expect(client.endingError() == nil)
  }

  @Test("A WebSocket connection that does not answer control frames sends no Pong later")
  func unansweredPing() throws {
    let server = try HTTPTestServer()
    let client = try webSocketClient(of: server) { connection in
      connection.answersControlFrames = false
      _ = try connection.next()
      try connection.send("x")
    }
    // A masked Ping without a payload.
    try client.write([0x89, 0x80, 0, 0, 0, 0])
    #expect(try client.read(3) == [0x81, 1, 0x78])
  }

  @Test("A compressed message may end with a final block, and the next one refers to it (RFC 7692 §7.2.3.4)")
  func finalBlock() throws {
    let received = Mutex<[WebSocketTestConnection.Event]>([])
    let server = try HTTPTestServer()
    server.enqueue(
      .webSocket(
        WebSocketEndpoint(compresses: true) { connection in
          for _ in 0..<2 {
            guard let event = try connection.next() else { return }
            received.withLock { $0.append(event) }
          }
        }))
    let client = try RawClient(server)
    try client.ask(
      "GET", "/",
      [
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Extensions: permessage-deflate",
      ])
    #expect(try client.readResponse().status == 101)
    // The examples of RFC 7692 §7.2.3.4 and §7.2.3.2, with masks of zeros.
    try client.write([0xC1, 0x88, 0, 0, 0, 0, 0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00])
    try client.write([0xC1, 0x85, 0, 0, 0, 0, 0xF2, 0x00, 0x11, 0x00, 0x00])
    _ = client.endingError()
    #expect(received.withLock { $0 } == [.text("Hello"), .text("Hello")])
  }
}
