import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Bodies of HTTP/2 whose stream does not come to its end (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(5))) struct H2CutOffTests {
  static func server(_ script: @escaping @Sendable (H2Script) throws -> Void) throws -> StreamTestServer {
    var options = TLSOptions()
    options.applicationProtocols = ["h2"]
    return try StreamTestServer(.tls(.localhost, options)) { try script(H2Script($0)) }
  }

  private func url(_ server: StreamTestServer) -> String { "https://localhost:\(server.port)/" }

  @Test func aStreamThatEndsIsAResponse() async throws {
    let bytes = Content.bytes(100_000)
    let server = try Self.server { script in
      for _ in 0..<2 {
        let stream = try script.nextRequest()
        try script.sendHead(on: stream)
        try script.sendBody(bytes, on: stream, ends: true)
      }
      script.waitForEnd()
    }
    let client = Client()
    for _ in 0..<2 {
      let response = try await client.get(url(server))
      #expect(response.head.version == .http2)
      #expect(response.bytes == bytes)
    }
    #expect(server.connectionCount == 1)
  }

  /// A server may go away as soon as it has answered.
  @Test(arguments: [false, true])
  func aConnectionThatIsClosedBehindTheStreamIsNoFailure(isCut: Bool) async throws {
    let bytes = Content.bytes(50_000)
    let server = try Self.server { script in
      let stream = try script.nextRequest()
      try script.sendHead(on: stream)
      try script.sendBody(bytes, on: stream, ends: true)
      try script.goAway(last: stream)
      if isCut { try script.cut() }
      script.connection.closeWriting()
      script.waitForEnd()
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

  @Test(arguments: End.allCases, [0, 100, 40_000])
  func aStreamThatBreaksOffIsAFailure(end: End, count: Int) async throws {
    let bytes = Content.bytes(count)
    let hasHead = Gate()
    let server = try Self.server { script in
      let stream = try script.nextRequest()
      try script.sendHead(on: stream)
      if count > 0 { try script.sendBody(bytes, on: stream) }
      try script.connection.pass(hasHead)
      switch end {
      case .reset: script.connection.reset()
      case .cut: try script.cut()
      case .internalError: try script.reset(stream, code: 2)
      case .alert: script.connection.closeWriting()
      case .goAwayAndAlert:
        try script.goAway(last: stream)
        script.connection.closeWriting()
      }
      if end != .reset { script.waitForEnd() }
    }
    let client = Client()
    let watcher = Watcher(onHead: { _ in hasHead.open() })
    let failure = try await client.failure(of: client.request(url(server)), watcher: watcher)
    #expect(failure.kind == .connectionLost)
    #expect(failure.helps(host: "localhost"), "\(failure.message)")
  }

  /// libcurl before 8.0.0 took some of the streams of a lost connection for complete.
  @Test(arguments: Loss.allCases, [2, 5])
  func aConnectionThatIsLostEndsAllOfItsStreams(loss: Loss, count: Int) async throws {
    let areShown = (0..<count).map { _ in Gate() }
    let server = try Self.server { script in
      // The first request alone shows that the connection can be shared.
      let first = try script.nextRequest()
      try script.sendHead(on: first, ends: true)
      let streams = try (0..<count).map { _ in try script.nextRequest() }
      for stream in streams {
        try script.sendHead(on: stream)
        try script.sendBody(Content.bytes(20_000), on: stream)
      }
      for gate in areShown { try script.connection.pass(gate) }
      switch loss {
      case .cut: try script.cut()
      case .alert: script.connection.closeWriting()
      case .goAwayAndCut:
        try script.goAway(last: streams.last ?? 0)
        try script.cut()
      case .goAwayBelow: try script.goAway(last: first)
      }
      script.waitForEnd()
    }
    let client = Client()
    #expect(try await client.get(url(server)).status == 200)
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

  @Test func aCodedBodyIsKnownToBeCompleteOrNot() async throws {
    let bytes = Content.bytes(50_000)
    let coded = Array(try #require(Deflater.compress(Data(bytes), .gzip)))
    let server = try Self.server { script in
      for missing in [0, 1, 9] {
        let stream = try script.nextRequest()
        try script.sendHead(on: stream, [HTTPHeader(name: "content-encoding", value: "gzip")])
        try script.sendBody(coded.dropLast(missing), on: stream)
        try script.reset(stream, code: 0)
      }
      script.waitForEnd()
    }
    let client = Client()
    #expect(try await client.get(url(server)).bytes == bytes)
    for _ in 0..<2 {
      let failure = try await client.failure(of: url(server))
      #expect([.cannotDecodeContent, .connectionLost].contains(failure.kind))
    }
  }

  @Test func aLengthIsHeldAgainstWhatCame() async throws {
    let server = try Self.server { script in
      let stream = try script.nextRequest()
      try script.sendHead(on: stream, [HTTPHeader(name: "content-length", value: "1000")])
      try script.sendBody(Content.bytes(500), on: stream)
      try script.reset(stream, code: 0)
      script.waitForEnd()
    }
    #expect(try await Client().failure(of: url(server)).kind == .connectionLost)
  }

  /// libcurl before 8.4.0 could end a paused stream before all of its data was delivered.
  @Test(arguments: [1, 50_000, 400_000], [false, true])
  func aPausedStreamThatEndsLosesNothing(count: Int, closes: Bool) async throws {
    let bytes = Content.bytes(count)
    let isSent = Gate()
    let server = try Self.server { script in
      let stream = try script.nextRequest()
      try script.sendHead(on: stream)
      try script.sendBody(bytes, on: stream, ends: true)
      isSent.open()
      if closes { script.connection.closeWriting() }
      script.waitForEnd()
    }
    let client = Client()
    let sink = ScriptedSink(room: 0)
    let url = url(server)
    let request = WireRequest(
      url: url, origin: try #require(Origin(url: url)), sink: sink, profile: client.profile)
    async let response = client.send(request)
    await sink.isFull.wait()
    try await client.passTime(.milliseconds(200))
    sink.makeRoom(.max)
    #expect(try await response.status == 200)
    #expect(sink.bytes == bytes)
  }

  /// The data that came before is delivered, and the end is no success.
  @Test(arguments: [1, 50_000, 400_000])
  func aPausedStreamThatBreaksOffIsAFailure(count: Int) async throws {
    let bytes = Content.bytes(count)
    let server = try Self.server { script in
      let stream = try script.nextRequest()
      try script.sendHead(on: stream)
      try script.sendBody(bytes, on: stream)
      try script.cut()
    }
    let client = Client()
    let sink = ScriptedSink(room: 0)
    let url = url(server)
    let request = WireRequest(
      url: url, origin: try #require(Origin(url: url)), sink: sink, profile: client.profile)
    async let failure = client.failure(of: request)
    await sink.isFull.wait()
    try await client.passTime(.milliseconds(200))
    sink.makeRoom(.max)
    #expect(try await failure.kind == .connectionLost)
    #expect(bytes.starts(with: sink.bytes))
  }
}
