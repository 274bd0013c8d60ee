import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// Servers that allow fewer streams than before, or none (RFC 9113 §5.1.2, §6.8).
@Suite("Limits of streams over HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2StreamLimitTests {
  private static let pings: [UInt8] = Array("1.2.3.4.".utf8)

  @Test("No more streams are opened than a limit that the server has lowered", arguments: [1, 3])
  func loweredLimit(limit: UInt8) async throws {
    let most = Counter()
    let server = try HTTP2Server.start { http2, connection in
      let first = try http2.request()
      try http2.write(.settings, payload: [0, 3, 0, 0, 0, limit])
      try http2.respond(200, on: first)
      while true {
        // Whatever the client sends before it answers PING, it sends without a response to this request.
        var streams = [try http2.request()]
        most.enter()
        try http2.write(.ping, payload: Self.pings)
        for stream in try connection.streamsUntilPingIsAnswered() {
          streams.append(stream)
          most.enter()
        }
        for stream in streams {
          most.leave()
          try http2.respond(200, on: stream)
        }
      }
    }
    let client = Client(connectionsPerHost: 1)
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await client.get(url).status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(most.most <= Int(limit), "\(most.most) streams were open")
    #expect(server.connectionCount == 1)
  }

  @Test("A request does not wait for an idle connection without streams") func noStreams() async throws {
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.write(.settings, payload: [0, 3, 0, 0, 0, 0])
      try http2.respond(200, on: stream)
      connection.waitForEnd()
    }
    let client = Client(connectionsPerHost: 1)
    let url = "https://localhost:\(server.port)/"
    for _ in 0..<3 {
      #expect(try await client.send(client.request(url, deadline: .seconds(30))).status == 200)
    }
    #expect(server.connectionCount == 3)
  }

  @Test(
    "A request does not wait for the last streams of a connection that drains", .steps, arguments: [1, 3])
  func draining(limit: UInt8) async throws {
    let (announced, ends) = (Moment(), Gate())
    defer { ends.open() }
    let connections = Counter()
    let server = try HTTP2Server.start { http2, connection in
      connections.enter()
      let first = try http2.request()
      try http2.write(.settings, payload: [0, 3, 0, 0, 0, limit])
      try http2.respond(200, on: first)
      guard connections.now == 1 else { return connection.waitForEnd() }
      let streams = try (0..<limit).map { _ in try http2.request() }
      try http2.goAway(last: streams.max() ?? first)
      try http2.write(.ping, payload: Self.pings)
      _ = try connection.streamsUntilPingIsAnswered()
      announced.come()
      try connection.pass(ends)
      for stream in streams { try http2.respond(200, on: stream) }
      connection.waitForEnd()
    }
    step("first request")
    let client = Client(connectionsPerHost: 1)
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    step("last streams of the connection")
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<limit { group.addTask { try await client.get(url).status } }
      await announced.wait()
      #expect(try await client.send(client.request(url, deadline: .seconds(30))).status == 200)
      step("end of the last streams")
      ends.open()
      for try await status in group { #expect(status == 200) }
    }
    #expect(server.connectionCount == 2)
  }

  /// Announces a shutdown first, so that requests that are on their way are still accepted.
  @Test("Streams above the last one of a second GOAWAY are sent again", .steps, arguments: ["GET", "POST"])
  func gracefulShutdown(method: String) async throws {
    let (announced, ends) = (Moment(), Gate())
    let later = Counter()
    let connections = Counter()
    let server = try HTTP2Server.start { http2, connection in
      connections.enter()
      guard connections.now == 1 else {
        while true {
          let stream = try http2.request()
          later.enter()
          try http2.respond(200, on: stream)
        }
      }
      try http2.respond(200, on: http2.request())
      let accepted = try http2.request()
      _ = try http2.request()
      try http2.goAway(last: 0x7FFF_FFFF)
      try http2.write(.ping, payload: Self.pings)
      _ = try connection.streamsUntilPingIsAnswered()
      announced.come()
      try connection.pass(ends)
      try http2.goAway(last: accepted)
      try http2.respond(200, on: accepted)
      try connection.stall()
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    step("first request")
    #expect(try await client.get(url).status == 200)
    let body = method == "POST" ? RequestBody.bytes(Data("body".utf8)) : .none
    step("requests before the shutdown")
    async let first = client.send(client.request(url, method, body: body)).status
    async let second = client.send(client.request(url, method, body: body)).status
    await announced.wait()
    step("request after the announcement")
    // This request is not for the connection that is being shut down.
    #expect(try await client.get(url).status == 200)
    #expect(later.now == 1)
    step("requests that were refused")
    ends.open()
    #expect(try await [first, second] == [200, 200])
    #expect(later.now == 2, "the refused request was not sent once more")
  }
}

extension StreamTestConnection {
  /// Reads frames of HTTP/2 until the answer to a PING. Returns the streams that were opened before.
  func streamsUntilPingIsAnswered() throws -> [UInt32] {
    var streams: [UInt32] = []
    while true {
      let head = try readExactly(9)
      _ = try readExactly(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
      switch HTTP2TestConnection.Kind(rawValue: head[3]) {
      case .ping where head[4] & 0x1 != 0: return streams
      case .headers: streams.append(head[5...8].reduce(0) { $0 << 8 | UInt32($1) })
      default: break
      }
    }
  }
}
