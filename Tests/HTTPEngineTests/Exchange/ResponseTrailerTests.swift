import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// The trailer fields of responses (RFC 9110 §6.5), from the connection to the outcome.
@Suite("Trailers of responses", .timeLimit(.minutes(5))) struct ResponseTrailerTests {
  private static let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
  private static let status = [(":status", "200")]

  private static func field(_ name: String, _ value: String) -> HTTPHeader {
    HTTPHeader(name: name, value: value)
  }

  private static func frame(
    _ kind: HTTP2TestConnection.Kind, _ flags: UInt8, _ payload: [UInt8], stream: UInt32 = 1
  ) -> [UInt8] {
    HTTP2TestConnection.bytes(of: kind, flags: flags, stream: stream, payload: payload)
  }

  /// Sends a request on a new connection in memory, and feeds it with a response in pieces.
  private static func outcome(
    _ response: [UInt8], _ method: String = "GET", pieceSize: Int, isHTTP2: Bool, _ fixture: ConnectionFixture
  ) throws -> ConnectionFixture.Ending {
    let pipe = MemoryPipe()
    let (exchange, ending) = try fixture.exchange(method)
    if isHTTP2 {
      let connection = try fixture.http2(pipe)
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      try feed(response, to: pipe, pieceSize) { connection.pipeIsReady() }
    } else {
      let connection = fixture.http1(pipe)
      connection.start(exchange)
      try feed(response, to: pipe, pieceSize) { connection.pipeIsReady() }
    }
    return ending
  }

  private static func feed(_ bytes: [UInt8], to pipe: MemoryPipe, _ size: Int, _ notify: () -> Void) throws {
    var rest = bytes[...]
    while !rest.isEmpty, !pipe.isClosed {
      pipe.incoming += rest.prefix(size)
      rest = rest.dropFirst(size)
      notify()
    }
  }

  @Test("Trailers of HTTP/1.1 are in the response, whatever the pieces", arguments: [1, 2, 7, 1 << 20])
  func http1(pieceSize: Int) async throws {
    try await ConnectionFixture.run { fixture in
      for (trailers, expected) in [
        ("", nil), ("A: 1\r\n", [Self.field("A", "1")]), ("A:\n", [Self.field("A", "")]),
        ("A: 1\r\nb:  2 \r\na: 3\r\n", [Self.field("A", "1"), Self.field("b", "2"), Self.field("a", "3")]),
        ("A: 1\r\n 2\r\n", [Self.field("A", "1 2")]),
        // Fields that must not be trailers are passed on, and mean nothing.
        (
          "Content-Length: 9\r\nTransfer-Encoding: x\r\nContent-Encoding: gzip\r\n",
          [
            Self.field("Content-Length", "9"), Self.field("Transfer-Encoding", "x"),
            Self.field("Content-Encoding", "gzip"),
          ]
        ),
      ] as [(String, [HTTPHeader]?)] {
        let response = Self.head + "2\r\nok\r\n0\r\n" + trailers + "\r\n"
        let ending = try Self.outcome(
          Array(response.utf8), pieceSize: pieceSize, isHTTP2: false, fixture)
        let outcome = try #require(ending.outcome, "\(trailers)").get()
        #expect(outcome.trailers?.fields == expected, "\(trailers)")
        #expect(outcome.text == "ok" && outcome.head.block.fields.count == 1, "\(trailers)")
      }
    }
  }

  @Test("Trailers of HTTP/2 are in the response, with and without content", arguments: [1, 9, 1 << 20])
  func http2(pieceSize: Int) async throws {
    try await ConnectionFixture.run { fixture in
      let fields = [("a", "1"), ("b", ""), ("a", "2"), ("content-length", "9")]
      for content in [[], Array("ok".utf8)] {
        for (trailers, expected) in [(fields, fields.map(Self.field)), ([], nil)] as [(_, [HTTPHeader]?)] {
          let response =
            Self.frame(.headers, 0x4, SessionPeer.block(Self.status))
            + (content.isEmpty ? [] : Self.frame(.data, 0, content))
            + Self.frame(.headers, 0x5, SessionPeer.block(trailers))
          let ending = try Self.outcome(response, pieceSize: pieceSize, isHTTP2: true, fixture)
          let outcome = try #require(ending.outcome, "\(trailers)").get()
          #expect(outcome.trailers?.fields == expected && outcome.bytes == content, "\(trailers)")
        }
      }
    }
  }

  @Test("Malformed trailers of HTTP/2, and frames after them, are violations") func http2Violations()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let start = Self.frame(.headers, 0x4, SessionPeer.block(Self.status)) + Self.frame(.data, 0, [1])
      for (name, rest) in [
        ("a pseudo-field", Self.frame(.headers, 0x5, SessionPeer.block([(":status", "200")]))),
        ("a name in capitals", Self.frame(.headers, 0x5, SessionPeer.block([("A", "1")]))),
        ("a line break", Self.frame(.headers, 0x5, SessionPeer.block([("a", "1\r\nb: 2")]))),
        ("a field of the connection", Self.frame(.headers, 0x5, SessionPeer.block([("connection", "a")]))),
        ("no end", Self.frame(.headers, 0x4, SessionPeer.block([("a", "1")]))),
        (
          "DATA after a section without the end",
          Self.frame(.headers, 0x4, SessionPeer.block([("a", "1")])) + Self.frame(.data, 1, [2])
        ),
      ] {
        let ending = try Self.outcome(start + rest, pieceSize: .max, isHTTP2: true, fixture)
        #expect(ending.failure?.kind == .badServerResponse, "\(name): \(ending.failure?.message ?? "none")")
      }
    }
  }

  @Test("DATA after trailers does not change a response that is complete") func excessData() async throws {
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try connection.write(
        HTTP2TestConnection.bytes(of: .headers, flags: 0x4, stream: stream, payload: [0x88])
          + HTTP2TestConnection.bytes(of: .data, stream: stream, payload: [1])
          + HTTP2TestConnection.bytes(
            of: .headers, flags: 0x5, stream: stream, payload: SessionPeer.block([("a", "1")]))
          + HTTP2TestConnection.bytes(of: .data, flags: 0x1, stream: stream, payload: [2]))
      connection.waitForEnd()
    }
    let response = try await Client().get("https://localhost:\(server.port)/")
    #expect(response.bytes == [1] && response.trailers?.fields == [Self.field("a", "1")])
  }

  @Test("Responses without a body have no trailers over HTTP/1.1", arguments: [("HEAD", 200), ("GET", 204)])
  func bodiless(method: String, status: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    let head = "HTTP/1.1 \(status) OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n"
    server.enqueue(.raw(head, closes: false), .text("next"))
    let client = Client()
    let response = try await client.send(client.request(server.url("/"), method))
    #expect(response.status == status && response.trailers == nil)
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 1, "what follows belongs to the next response")
  }

  @Test("Each response on a connection has its own trailers") func reuse() async throws {
    let server = try HTTPTestServer(routes: .none)
    let first = Reply(body: .parts(["a"])).with(trailers: [Self.field("X-First", "1")])
    let third = Reply(body: .parts(["c"])).with(trailers: [Self.field("X-Third", "3")])
    server.enqueue(first, .parts("b"), third, .text("d"))
    let client = Client()
    var names: [[String]?] = []
    for text in ["a", "b", "c", "d"] {
      let response = try await client.get(server.url("/"))
      #expect(response.text == text)
      names.append(response.trailers?.fields.map(\.name))
    }
    #expect(names == [["X-First"], nil, ["X-Third"], nil])
    #expect(server.connectionCount == 1)
  }

  @Test("Trailers that end early fail the response", arguments: ["A: 1", "A: 1\r\n", "A: 1\r\n\r", ""])
  func incomplete(trailers: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw(Self.head + "2\r\nok\r\n0\r\n" + trailers))
    let failure = try await Client().failure(of: server.url("/"))
    #expect(failure.kind == .connectionLost && failure.message.contains("last chunk"), "\(failure.message)")
    #expect(failure.partial?.body == Data("ok".utf8))
  }

  @Test("Trailers share the limit of the head over HTTP/2") func limit() async throws {
    let server = try HTTP2Server.start { http2, _ in
      while true {
        let stream = try http2.request()
        try http2.respond(200, on: stream, endsStream: false)
        try http2.send([1], on: stream, endsStream: false)
        let fields = (0..<20).map { ("x-\($0)", String(repeating: "v", count: 100)) }
        try http2.sendTrailers(fields, on: stream)
      }
    }
    let url = "https://localhost:\(server.port)/"
    let failure = try await Client { $0.headerSizeLimit = 2_000 }.failure(of: url)
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure.message)")
    #expect(try await Client { $0.headerSizeLimit = 20_000 }.get(url).trailers?.fields.count == 20)
  }

  @Test("A chunked response is accepted if its head has exactly the size of the limit") func headAtLimit()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    for _ in 0..<2 { server.enqueue(.raw(Self.head + "2\r\nok\r\n0\r\n\r\n", closes: false)) }
    let size = "Transfer-Encoding: chunked\r\n".utf8.count
    #expect(try await Client { $0.headerSizeLimit = size }.get(server.url("/")).text == "ok")
    let failure = try await Client { $0.headerSizeLimit = size - 1 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure.message)")
  }

  @Test("A discarded body has no trailers") func dropped() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(Reply(body: .parts(["long"])).with(trailers: [Self.field("A", "1")]))
    let watcher = Watcher(disposition: .discard)
    let response = try await Client().get(server.url("/"), watcher: watcher)
    #expect(response.status == 200 && response.body == nil)
  }
}
