import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// Encoded bodies with a slow sink, and with limits.
@Suite(.timeLimit(.minutes(5))) struct DecodingFlowTests {
  private let server: HTTPTestServer

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func coded(_ bytes: Data, _ coding: String = "gzip") throws -> Reply {
    let coded = try #require(Deflater.compress(bytes, coding == "gzip" ? .gzip : .zlib))
    return .data(Array(coded)).with(header: "Content-Encoding", value: coding)
  }

  private func request(
    _ client: Client, _ sink: (any BodySink)? = nil, idleTimeout: Duration? = nil
  ) throws -> WireRequest {
    let url = server.url("/")
    return try client.request(url, sink: sink, idleTimeout: idleTimeout)
  }

  /// Sends 128 MiB to a full sink, of which nothing may be decoded in advance.
  @Test("A full sink stops decoding") func fullSink() async throws {
    let size = 128 << 20
    server.enqueue(try coded(Data(count: size)))
    let client = Client()
    let sink = CountingSink(room: 100_000)
    async let response = client.send(request(client, sink))
    for _ in 0..<20 {
      await sink.isFull.wait()
      try await client.roundTrip()
      #expect(sink.count <= sink.granted + 32_768)
      sink.grant(100_000)
    }
    sink.grant(.max / 2)
    #expect(try await response.status == 200)
    #expect(sink.count == size)
    #expect(sink.largestPiece <= 32_768)
  }

  @Test("No byte is lost or repeated when the sink is repeatedly full", arguments: ["gzip", "deflate"])
  func repeatedlyFullSink(coding: String) async throws {
    let bytes = Content.bytes(3_000_000)
    server.enqueue(try coded(Data(bytes), coding))
    let client = Client()
    let sink = ScriptedSink(room: 1)
    async let response = client.send(request(client, sink))
    let opener = Task {
      while !Task.isCancelled {
        sink.makeRoom(1)
        await Task.yield()
      }
    }
    #expect(try await response.status == 200)
    opener.cancel()
    #expect(sink.bytes == bytes)
  }

  @Test("The ratio of decoding is limited for every sink") func ratio() async throws {
    let reply = try coded(Data(count: 64 << 20))
    server.enqueue(reply, reply)
    let client = Client { $0.decodingRatioLimit = 200 }
    let sink = CountingSink(room: 10_000)
    async let failure = client.failure(of: request(client, sink))
    await sink.isFull.wait()
    sink.grant(.max / 2)
    #expect(try await failure.kind == .dataLengthExceedsMaximum)
    #expect(sink.count < 1 << 20)
    let collected = try await client.failure(of: request(client))
    #expect(collected.kind == .dataLengthExceedsMaximum)
    #expect(collected.metrics.map { $0.values.decodedBodyBytes < 1 << 20 } == true)
  }

  @Test("The size is limited to the chunk for every sink") func size() async throws {
    let reply = try coded(Data(count: 64 << 20))
    server.enqueue(reply, reply)
    let client = Client { $0.bodySizeLimit = 300_000 }
    let sink = CountingSink(room: .max / 2)
    #expect(try await client.failure(of: request(client, sink)).kind == .dataLengthExceedsMaximum)
    #expect(sink.count <= 300_000 + 32_768)
    #expect(try await client.failure(of: request(client)).kind == .dataLengthExceedsMaximum)
  }

  @Test("A suspended transfer stops decoding") func suspended() async throws {
    let size = 64 << 20
    server.enqueue(try coded(Data(count: size)))
    let client = Client()
    let hasClosed = Moment()
    let watcher = Watcher(onBytes: { watcher, _ in
      guard !hasClosed.hasCome else { return }
      watcher.suspend()
      hasClosed.come()
    })
    async let response = client.send(request(client), watcher: watcher)
    await hasClosed.wait()
    try await client.roundTrip()
    let before = try #require(watcher.last?.received)
    #expect(before <= 8 << 20)
    try await client.roundTrip()
    #expect(watcher.last?.received == before)
    watcher.resume()
    #expect(try await response.body?.count == size)
  }

  /// Checks that a few bytes that decode to many do not delay the commands of the loop.
  @Test("A body that is decoded can be cancelled") func cancel() async throws {
    // 64 MiB of zeros.
    let brotli =
      "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v0f////4J8AiMMCAN37P/7//8E/ARCHBQC693/8//+DfwIgDgsAdO//+P//B/8E"
      + "QBwWAOje//H//w/+CYA4LADQvf/L//8//BMAcVgAoHv/Bw=="
    let bytes = Array(try #require(Data(base64Encoded: brotli)))
    let reply = Reply.data(bytes).with(header: "Content-Encoding", value: "br")
    server.enqueue(reply, reply)
    let client = Client()
    let watcher = Watcher(onBytes: { watcher, _ in watcher.cancel() })
    let failure = try await client.failure(of: request(client), watcher: watcher)
    #expect(failure.kind == .cancelled)
    #expect(watcher.last.map { $0.received <= 8 << 20 } == true)
    #expect(try await client.get(server.url("/")).body?.count == 64 << 20)
  }

  /// Chunks in brotli, of which each decodes to four million zeros, and the end.
  private static func chunks(_ count: Int) -> [[UInt8]] {
    let first: [UInt8] = [
      0xCB, 0x7F, 0x84, 0x1E, 0x00, 0x24, 0x00, 0xE2, 0xB1, 0x40, 0x72, 0x01, 0x7A, 0x0C,
    ]
    let next: [UInt8] = [
      0xFC, 0x47, 0xE8, 0x01, 0x40, 0x02, 0x20, 0x0E, 0x0B, 0x40, 0x17, 0xA0, 0xC7, 0x00,
    ]
    return [first] + Array(repeating: next, count: count - 1) + [[0x03]]
  }

  /// Serves the chunks in one write, as chunks of HTTP/1.1 or as DATA frames.
  private static func chunkServer(_ chunks: [[UInt8]], isHTTP2: Bool) throws -> StreamTestServer {
    guard isHTTP2 else {
      let body = chunks.flatMap { Array("\(String($0.count, radix: 16))\r\n".utf8) + $0 + Array("\r\n".utf8) }
      return try StreamTestServer { connection in
        while true {
          _ = try connection.readHead()
          try connection.write(
            "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n")
          try connection.write(body + Array("0\r\n\r\n".utf8))
        }
      }
    }
    return try HTTP2Server.startWithoutTLS { http2, connection in
      while true {
        let stream = try http2.request()
        try http2.respond(200, [("content-encoding", "br")], on: stream, endsStream: false)
        let last = chunks.count - 1
        try connection.write(
          chunks.enumerated().flatMap { index, chunk in
            HTTP2TestConnection.bytes(
              of: .data, flags: index == last ? 0x1 : 0, stream: stream, payload: chunk)
          })
      }
    }
  }

  /// Checks that one turn of the loop does not decode more because its bytes are many chunks or frames.
  @Test("A body in many chunks can be cancelled while they are decoded", arguments: [false, true])
  func cancelChunks(isHTTP2: Bool) async throws {
    let count = 40
    let server = try Self.chunkServer(Self.chunks(count), isHTTP2: isHTTP2)
    let client = Client { if isHTTP2 { $0.httpVersions = .http2PriorKnowledge } }
    let url = "http://127.0.0.1:\(server.port)/"
    let watcher = Watcher(onBytes: { watcher, _ in watcher.cancel() })
    let failure = try await client.failure(
      of: client.request(url, sink: CountingSink(room: .max)), watcher: watcher)
    #expect(failure.kind == .cancelled)
    let received = watcher.last?.received ?? 0
    #expect(received > 0 && received <= 8 << 20, "\(received) bytes were decoded")
    let sink = CountingSink(room: .max)
    #expect(try await client.send(client.request(url, sink: sink)).status == 200)
    #expect(sink.count == count * 4_000_000)
  }

  /// Checks that a transfer that waits for its reader has no idle timeout.
  @Test("A full sink does not time out", arguments: [false, true])
  func noTimeout(isCoded: Bool) async throws {
    let bytes = Data(Content.bytes(2_000_000))
    server.enqueue(isCoded ? try coded(bytes) : .data(Array(bytes)))
    let client = Client()
    let sink = ScriptedSink(room: 1)
    async let response = client.send(request(client, sink, idleTimeout: .milliseconds(400)))
    await sink.isFull.wait()
    try await client.passTime(.milliseconds(900))
    #expect(sink.finishes == 0)
    sink.makeRoom(.max)
    #expect(try await response.status == 200)
    #expect(sink.bytes == Array(bytes))
  }

  /// Checks that the server's silence counts again after a pause for the sink.
  @Test("An idle server times out once a full sink has room again") func idleServer() async throws {
    let gate = Gate()
    server.enqueue(Reply(body: .parts([.bytes(Content.bytes(500_000)), .gate(gate), "rest"])))
    let client = Client()
    let sink = ScriptedSink(room: 1)
    async let failure = client.failure(of: request(client, sink, idleTimeout: .milliseconds(400)))
    await sink.isFull.wait()
    sink.makeRoom(.max)
    #expect(try await failure.kind == .timedOut)
    gate.open()
  }

  @Test("A transfer with a full sink can be cancelled") func cancelWithFullSink() async throws {
    server.enqueue(try coded(Data(count: 8 << 20)), .text("next"))
    let client = Client()
    let sink = CountingSink(room: 1)
    let watcher = Watcher()
    async let failure = client.failure(of: request(client, sink), watcher: watcher)
    await sink.isFull.wait()
    watcher.cancel()
    #expect(try await failure.kind == .cancelled)
    sink.grant(.max / 2)
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(sink.count <= 32_768)
  }
}
