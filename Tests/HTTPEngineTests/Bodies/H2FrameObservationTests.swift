import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Complete responses of HTTP/2, with every way in which TLS records can split their frames.
@Suite("Observed frames of HTTP/2", .timeLimit(.minutes(5))) struct H2FrameObservationTests {
  private func url(_ server: StreamTestServer) -> String { "https://localhost:\(server.port)/" }

  enum Form: CaseIterable {
    case frames
    case padded
    case keyUpdates

    var options: TLSOptions {
      var options = TLSOptions()
      if self == .padded { options.recordPadding = 512 }
      return options
    }
  }

  @Test(
    "Complete responses succeed and a reset is a failure with every suite",
    arguments: [
      "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    ], Form.allCases)
  func suites(name: String, form: Form) async throws {
    let server = try HTTP2Server.start(form.options) { http2, connection in
      try Self.respond(http2, connection, updatesKeys: form == .keyUpdates)
    }
    try await expectResponses(of: server, Client { $0.tls13CipherSuites = name })
  }

  @Test(
    "Complete responses succeed and a reset is a failure with every cipher of TLS 1.2",
    arguments: [
      "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305",
    ])
  func ciphers(name: String) async throws {
    let server = try HTTP2Server.start { http2, connection in
      try Self.respond(http2, connection, updatesKeys: false)
    }
    let client = Client {
      $0.maximumTLSVersion = .tls12
      $0.tls12Ciphers = name
    }
    try await expectResponses(of: server, client)
  }

  @Test(
    "With a cipher that prevents the observation of records, complete responses succeed",
    arguments: ["ECDHE-ECDSA-AES128-SHA256"])
  func otherCiphers(name: String) async throws {
    let server = try HTTP2Server.start { http2, connection in
      try Self.respond(http2, connection, updatesKeys: false)
    }
    let client = Client {
      $0.maximumTLSVersion = .tls12
      $0.tls12Ciphers = name
    }
    for count in Self.counts {
      #expect(try await client.get(url(server)).bytes == Content.bytes(count))
    }
  }

  private static let counts = [0, 1, 5000, 100_000, 300_000]

  /// Answers one request for each of ``counts``, and resets the next one.
  private static func respond(
    _ http2: HTTP2TestConnection, _ connection: StreamTestConnection, updatesKeys: Bool
  ) throws {
    for count in counts {
      let stream = try http2.request()
      if updatesKeys { try connection.updateKeys() }
      try http2.respond(200, on: stream, endsStream: false)
      if updatesKeys { try connection.updateKeys() }
      try http2.send(Content.bytes(count), on: stream, endsStream: true)
    }
    let stream = try http2.request()
    try http2.respond(200, on: stream, endsStream: false)
    try http2.send(Content.bytes(5000), on: stream, endsStream: false)
    try http2.reset(stream, .noError)
    connection.waitForEnd()
  }

  private func expectResponses(of server: StreamTestServer, _ client: Client) async throws {
    for count in Self.counts {
      let response = try await client.get(url(server))
      #expect(response.head.version == .http2)
      #expect(response.bytes == Content.bytes(count))
    }
    #expect(try await client.failure(of: url(server)).kind == .connectionLost)
    #expect(server.connectionCount == 1)
  }

  @Test("Resumed sessions are observed", arguments: TLSOptions.Version.allCases)
  func resumption(version: TLSOptions.Version) async throws {
    let server = try HTTP2Server.start(TLSOptions(maximumVersion: version)) { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.send(Content.bytes(5000), on: stream, endsStream: true)
      let next = try http2.request()
      try http2.respond(200, on: next, endsStream: false)
      try http2.send(Content.bytes(5000), on: next, endsStream: false)
      try http2.reset(next, .noError)
      try http2.goAway(last: next)
      connection.closeWriting()
      connection.waitForEnd()
    }
    let client = Client()
    for _ in 0..<4 {
      #expect(try await client.get(url(server)).bytes.count == 5000)
      #expect(try await client.failure(of: url(server)).kind == .connectionLost)
    }
  }

  @Test("Boundaries of records are arbitrary", arguments: [1, 3, 7, 11, 1000])
  func pieces(size: Int) async throws {
    let server = try HTTP2Server.start { http2, connection in
      for isReset in [false, true] {
        let stream = try http2.request()
        let number = withUnsafeBytes(of: stream.bigEndian) { Array($0) }
        var bytes = [0, 0, 1, 1, 4] + number + [0x88]
        for _ in 0..<20 { bytes += [0, 0, 5, 0, 0] + number + Array("12345".utf8) }
        bytes += isReset ? [0, 0, 4, 3, 0] + number + [0, 0, 0, 0] : [0, 0, 0, 0, 1] + number
        while !bytes.isEmpty {
          try connection.write(Array(bytes.prefix(size)))
          bytes.removeFirst(min(size, bytes.count))
        }
      }
      connection.waitForEnd()
    }
    let client = Client()
    #expect(try await client.get(url(server)).bytes.count == 100)
    #expect(try await client.failure(of: url(server)).kind == .connectionLost)
  }

  /// The end of a complete response.
  enum End: CaseIterable {
    case emptyData
    case paddedData
    case trailers
    case continuedTrailers
    case goAway
    case goAwayAndClose
    case unknownFrames
    case resetBehindTheEnd
    case ping
  }

  @Test("Every end with END_STREAM is a success", arguments: End.allCases)
  func ends(end: End) async throws {
    let server = try HTTP2Server.start { http2, connection in
      while true { try Self.respond(end, http2, connection) }
    }
    let client = Client()
    for _ in 0..<3 { #expect(try await client.get(url(server)).bytes.starts(with: Content.bytes(5000))) }
  }

  private static func respond(
    _ end: End, _ http2: HTTP2TestConnection, _ connection: StreamTestConnection
  ) throws {
    let stream = try http2.request()
    try http2.respond(200, on: stream, endsStream: false)
    if end == .goAway { try http2.goAway(last: stream) }
    try http2.send(Content.bytes(5000), on: stream, endsStream: false)
    switch end {
    case .emptyData, .goAway: try http2.send([], on: stream, endsStream: true)
    case .paddedData:
      try http2.write(.data, flags: 0x9, stream: stream, payload: [200] + Content.bytes(200))
    case .trailers: try http2.sendTrailers([("checksum", "1")], on: stream)
    case .continuedTrailers:
      let field = [0, 1, UInt8(ascii: "a"), 1, UInt8(ascii: "b")] as [UInt8]
      try http2.write(.headers, flags: 0x1, stream: stream, payload: field)
      try http2.write(.continuation, stream: stream, payload: field)
      try http2.write(.continuation, flags: 0x4, stream: stream, payload: field)
    case .goAwayAndClose:
      try http2.send([], on: stream, endsStream: true)
      try http2.goAway(last: stream)
      connection.closeWriting()
    case .unknownFrames:
      try connection.write([0, 0, 3, 0xFA, 0xFF, 0, 0, 0, 0, 1, 2, 3])
      try http2.send([], on: stream, endsStream: true)
    case .resetBehindTheEnd:
      try http2.send([], on: stream, endsStream: true)
      try http2.reset(stream, .noError)
    case .ping:
      try http2.write(.ping, payload: [1, 2, 3, 4, 5, 6, 7, 8])
      try http2.send([], on: stream, endsStream: true)
    }
  }

  /// Resets the stream with NO_ERROR after a complete response. A server may do so to stop the upload (RFC 9113 §8.1).
  @Test("An early answer to an upload is a success")
  func earlyAnswer() async throws {
    let server = try HTTP2Server.start { http2, connection in
      var frame = try http2.next()
      while frame.kind != .headers { frame = try http2.next() }
      try http2.respond(413, on: frame.stream, endsStream: false)
      try http2.send(Content.bytes(500), on: frame.stream, endsStream: true)
      try http2.reset(frame.stream, .noError)
      connection.waitForEnd()
    }
    let client = Client()
    let body = RequestBody.source(PatternSource(length: 60_000))
    let response = try await client.send(client.request(url(server), "POST", body: body))
    #expect(response.status == 413)
    #expect(response.bytes == Content.bytes(500))
  }

  @Test("After the head of a redirect no more of the request's body is sent") func earlyRedirect()
    async throws
  {
    let (ends, report) = AsyncStream<(count: Int, kind: HTTP2TestConnection.Kind)>.makeStream()
    let server = try HTTP2Server.start { http2, connection in
      defer { report.finish() }
      var frame = try http2.next()
      while frame.kind != .headers { frame = try http2.next() }
      try http2.respond(307, on: frame.stream)
      // The server goes on to grant window, and would get all of the body.
      var count = 0
      repeat {
        frame = try http2.next()
        if frame.kind == .data { count += frame.payload.count }
      } while frame.kind == .data && !frame.endsStream
      report.yield((count, frame.kind))
      connection.waitForEnd()
    }
    let client = Client()
    let body = RequestBody.source(PatternSource(length: 100_000_000))
    let request = try client.request(url(server), "POST", body: body)
    let response = try await client.send(request, watcher: Watcher(disposition: .discard))
    #expect(response.status == 307)
    let end = try #require(await ends.first { _ in true })
    #expect(end.kind == .reset && end.count <= 65_535, "only what the first window allows may be on its way")
  }

  @Test(
    "Responses without a body do not need a separate END_STREAM",
    arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
  func withoutBody(method: String, status: Int) async throws {
    let server = try HTTP2Server.start { http2, connection in
      try http2.respond(status, on: http2.request())
      connection.waitForEnd()
    }
    let client = Client()
    #expect(try await client.send(client.request(url(server), method)).status == status)
  }

  @Test("Cancelled requests do not disturb the others on their connection")
  func cancellations() async throws {
    let server = try HTTP2Server.start { http2, connection in
      while true {
        let stream = try http2.request()
        try http2.respond(200, on: stream, endsStream: false)
        try http2.send(Content.bytes(20_000), on: stream, endsStream: true)
      }
    }
    let client = Client()
    #expect(try await client.get(url(server)).status == 200)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<200 {
        let request = try client.request(url(server))
        group.addTask {
          if index.isMultiple(of: 3) {
            let watcher = Watcher(onHead: { $0.cancel() })
            _ = try? await client.transport.send(request, observer: watcher)
          } else if index.isMultiple(of: 5) {
            let watcher = Watcher()
            async let response = client.transport.send(request, observer: watcher)
            await watcher.began.wait()
            watcher.cancel()
            _ = try? await response
          } else {
            let response = try await client.transport.send(request, observer: Watcher())
            #expect(response.bytes.count == 20_000)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
