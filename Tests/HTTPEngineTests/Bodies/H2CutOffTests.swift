import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// Bodies of HTTP/2 on a stream that does not end (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(5))) struct H2CutOffTests {
  private func url(_ server: StreamTestServer) -> String { "https://localhost:\(server.port)/" }

  @Test("A stream that ends is a response") func endOfStream() async throws {
    let bytes = Content.bytes(100_000)
    let server = try HTTP2Server.start { http2, connection in
      for _ in 0..<2 {
        let stream = try http2.request()
        try http2.respond(200, on: stream, endsStream: false)
        try http2.send(bytes, on: stream, endsStream: true)
      }
      connection.waitForEnd()
    }
    let client = Client()
    for _ in 0..<2 {
      let response = try await client.get(url(server))
      #expect(response.head.version == .http2)
      #expect(response.bytes == bytes)
    }
    #expect(server.connectionCount == 1)
  }

  /// Sends GOAWAY as soon as the response is complete, as a server may.
  @Test("A connection that closes after the stream is not a failure", arguments: [false, true])
  func endOfConnection(isCut: Bool) async throws {
    let bytes = Content.bytes(50_000)
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(bytes, on: stream, endsStream: true)
      try http2.goAway(last: stream)
      if isCut { try connection.cut() }
      connection.closeWriting()
      connection.waitForEnd()
    }
    let client = Client()
    for _ in 0..<20 { #expect(try await client.get(url(server)).bytes == bytes) }
  }

  enum End: CaseIterable {
    case reset
    case alert
    case cut
    case goAwayAndAlert
    case internalError
  }

  @Test("A truncated stream is a failure", arguments: End.allCases, [0, 100, 40_000])
  func truncation(end: End, count: Int) async throws {
    let bytes = Content.bytes(count)
    let hasHead = Gate()
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      if count > 0 { try http2.send(bytes, on: stream, endsStream: false) }
      try connection.pass(hasHead)
      switch end {
      case .reset: connection.reset()
      case .cut: try connection.cut()
      case .internalError: try http2.reset(stream, .internalError)
      case .alert: connection.closeWriting()
      case .goAwayAndAlert:
        try http2.goAway(last: stream)
        connection.closeWriting()
      }
      if end != .reset { connection.waitForEnd() }
    }
    let client = Client()
    let watcher = Watcher(onHead: { _ in hasHead.open() })
    let failure = try await client.failure(of: client.request(url(server)), watcher: watcher)
    #expect(failure.kind == .connectionLost)
    #expect(failure.helps(host: "localhost"), "\(failure.message)")
  }

  /// Checks that all streams of a lost connection fail, and none is mistaken for complete.
  @Test("A lost connection ends all of its streams", .steps, arguments: Loss.allCases, [2, 5])
  func lostConnection(loss: Loss, count: Int) async throws {
    let areShown = (0..<count).map { _ in Gate() }
    let server = try HTTP2Server.start { http2, connection in
      // The first request alone shows that the connection can be shared.
      let first = try http2.request()
      try http2.respond(200, on: first)
      let streams = try (0..<count).map { _ in try http2.request() }
      for stream in streams {
        try http2.respond(200, on: stream, endsStream: false)
        try http2.send(Content.bytes(20_000), on: stream, endsStream: false)
      }
      for gate in areShown { try connection.pass(gate) }
      switch loss {
      case .cut: try connection.cut()
      case .alert: connection.closeWriting()
      case .goAwayAndCut:
        try http2.goAway(last: streams.last ?? 0)
        try connection.cut()
      case .goAwayBelow: try http2.goAway(last: first)
      }
      connection.waitForEnd()
    }
    step("first request")
    let client = Client()
    #expect(try await client.get(url(server)).status == 200)
    step("streams of the lost connection")
    try await withThrowingTaskGroup(of: TransportFailure.self) { group in
      for gate in areShown {
        let watcher = Watcher(onHead: { _ in gate.open() })
        let request = try client.request(url(server))
        group.addTask { try await client.failure(of: request, watcher: watcher) }
      }
      for try await failure in group {
        #expect(failure.kind == .connectionLost, "\(failure.message)")
        #expect(failure.helps(host: "localhost"), "\(failure.message)")
      }
    }
    #expect(server.connectionCount == 1)
  }

  enum Loss: CaseIterable {
    case cut
    case alert
    case goAwayAndCut
    case goAwayBelow
  }

  @Test("An encoded body needs the end of its coding and of its stream", arguments: [0, 1, 9])
  func encodedBody(missing: Int) async throws {
    let bytes = Content.bytes(50_000)
    let coded = Array(try #require(Deflater.compress(Data(bytes), .gzip))).dropLast(missing)
    let server = try HTTP2Server.start { http2, connection in
      for isReset in [false, true] {
        let stream = try http2.request()
        try http2.respond(200, [("content-encoding", "gzip")], on: stream, endsStream: false)
        try http2.send(Array(coded), on: stream, endsStream: !isReset)
        if isReset { try http2.reset(stream, .noError) }
      }
      connection.waitForEnd()
    }
    let client = Client()
    if missing == 0 {
      #expect(try await client.get(url(server)).bytes == bytes)
    } else {
      #expect(try await client.failure(of: url(server)).kind == .cannotDecodeContent)
    }
    let failure = try await client.failure(of: url(server))
    #expect([.cannotDecodeContent, .connectionLost].contains(failure.kind))
  }

  @Test("The length is compared with the received bytes", arguments: [false, true], [500, 1_500])
  func length(endsStream: Bool, count: Int) async throws {
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, [("content-length", "1000")], on: stream, endsStream: false)
      try http2.send(Content.bytes(count), on: stream, endsStream: endsStream)
      if !endsStream { try http2.reset(stream, .noError) }
      connection.waitForEnd()
    }
    let failure = try await Client().failure(of: url(server))
    let isMalformed = endsStream || count > 1_000
    #expect(failure.kind == (isMalformed ? .badServerResponse : .connectionLost), "\(failure.message)")
  }

  /// Checks that a paused stream does not end before all of its data was delivered.
  @Test("A paused stream that ends loses no byte", arguments: [1, 50_000, 250_000], [false, true])
  func pausedStream(count: Int, closes: Bool) async throws {
    let bytes = Content.bytes(count)
    let isSent = Gate()
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(bytes, on: stream, endsStream: true)
      isSent.open()
      if closes { connection.closeWriting() }
      connection.waitForEnd()
    }
    let client = Client()
    let sink = ScriptedSink(room: 0)
    let url = url(server)
    let request = try client.request(url, sink: sink)
    async let response = client.send(request)
    await sink.isFull.wait()
    try await client.passTime(.milliseconds(200))
    sink.makeRoom(.max)
    #expect(try await response.status == 200)
    #expect(sink.bytes == bytes)
  }

  /// Checks that the data before the fault is the beginning of the body, and that the request fails.
  @Test("A paused stream that breaks off is a failure", arguments: [1, 50_000, 250_000])
  func pausedTruncation(count: Int) async throws {
    let bytes = Content.bytes(count)
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(bytes, on: stream, endsStream: false)
      try connection.cut()
    }
    let client = Client()
    let sink = ScriptedSink(room: 0)
    let url = url(server)
    let request = try client.request(url, sink: sink)
    async let failure = client.failure(of: request)
    await sink.isFull.wait()
    try await client.passTime(.milliseconds(200))
    sink.makeRoom(.max)
    #expect(try await failure.kind == .connectionLost)
    #expect(bytes.starts(with: sink.bytes))
  }
}
