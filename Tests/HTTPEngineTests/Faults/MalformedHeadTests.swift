import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Heads that a client must refuse, and deviations that it has to accept: `Documentation/HTTPReading.md`.
@Suite("Malformed response heads", .timeLimit(.minutes(5))) struct MalformedHeadTests {
  /// Heads with five bytes of body, and a word of the error message.
  static let malformed: [(head: String, word: String)] = [
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 5\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5a\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1e2\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5;\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551621\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", "gzip"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n", "gzip"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n", "xchunked"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n", "chunked"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "chunked"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n", "identity"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n", "chunked;q=1"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n", "transfer coding"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 5\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n", "Content-Length"),
    ("HTTP/1.1 200 OK\r\nX-A\t: b\r\nContent-Length: 5\r\n", "X-A"),
    ("HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 5\r\n", "X A"),
    ("HTTP/1.1 200 OK\r\nX(A): b\r\nContent-Length: 5\r\n", "X(A)"),
    ("HTTP/1.1 200 OK\r\n: b\r\nContent-Length: 5\r\n", "field name"),
    ("HTTP/1.1 200 OK\r\nX-Á: b\r\nContent-Length: 5\r\n", "field name"),
    ("HTTP/1.1 200 OK\r\nX-A: b\rX-B: c\r\nContent-Length: 5\r\n", "X-A"),
    ("HTTP/1.1 200 OK\r\nX-A: b\r\r\nContent-Length: 5\r\n", "X-A"),
    ("HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 5\r\n", ""),
    ("HTTP/1.1 200 OK\r\nX-A: b\u{0}c\r\nContent-Length: 5\r\n", ""),
    ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", "protocol"),
    ("HTTP/2.0 200 OK\r\nContent-Length: 5\r\n", "status line"),
    ("HTTP/2 200 \r\nContent-Length: 5\r\n", "HTTP/2"),
    ("HTTP/3 200 \r\nContent-Length: 5\r\n", "HTTP"),
    ("HTTP/1.1 099 OK\r\nContent-Length: 5\r\n", ""),
    ("HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n", ""),
    ("HTTP/1.1 200 O\rK\r\nContent-Length: 5\r\n", "status line"),
    ("HTTP/1.1 103 Early Hints\r\nX A: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "X A"),
    ("HTTP/2 103 \r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/2"),
    ("HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 5\r\n", "Location"),
  ]

  @Test("Malformed head ends the request and its connection", arguments: malformed)
  func malformedHead(head: String, word: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw(head + "\r\n12345", closes: false), .text("next"))
    let client = Client()
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .badServerResponse, "\(failure.message)")
    #expect(failure.message.contains(word), "\(failure.message)")
    #expect(failure.helps(host: "127.0.0.1"), "\(failure.message)")
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 2)
  }

  static let accepted: [String] = [
    "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
    "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200  OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length:  005 \r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Empty:\r\nX-Tab:\tb\r\nX-Latin: \u{e9}\u{1}\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Folded: a\r\n b\r\n\tc\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 302 Found\r\nContent-Length: 5\r\nLocation: /a\r\nLocation: /a\r\n\r\n",
  ]

  @Test("Harmless deviations are accepted", arguments: accepted)
  func acceptedHead(head: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw(head + "12345"))
    #expect(try await Client().get(server.url("/")).text == "12345")
  }

  @Test("Several spaces before the status code are accepted")
  func spacesBeforeStatus() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw("HTTP/1.1  200  OK\r\nContent-Length: 5\r\n\r\n12345"))
    #expect(try await Client().get(server.url("/")).text == "12345")
  }

  @Test("Folded Content-Encoding is unfolded before the body is decoded")
  func foldedContentEncoding() async throws {
    let server = try HTTPTestServer(routes: .none)
    let packed: [UInt8] = [0x4B, 0x4C, 0x4A, 0x06, 0x00]
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Encoding:\r\n deflate\r\n\r\n"
    server.enqueue(.raw(Array(head.utf8) + packed))
    #expect(try await Client().get(server.url("/")).text == "abc")
  }

  @Test("Head that frames its body twice closes the connection")
  func ambiguousFraming() async throws {
    let body = "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"
    for start in [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n",
    ] {
      let server = try HTTPTestServer(routes: .none)
      server.enqueue(.raw(start + body, closes: false), .text("next"), .text("third"))
      let client = Client()
      #expect(try await client.get(server.url("/")).text == "12345")
      #expect(try await client.get(server.url("/")).text == "next")
      #expect(server.connectionCount == 2)
      #expect(try await client.get(server.url("/")).text == "third")
      #expect(server.connectionCount == 2, "the handle keeps connections again")
    }
  }

  @Test("Trailers count against the limit of the head")
  func endlessTrailers() async throws {
    let server = try HTTPTestServer(routes: .none)
    var bytes = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n".utf8)
    for index in 0..<2000 { bytes += Array("X-Trailer-\(index): 0123456789\r\n".utf8) }
    server.enqueue(.raw(bytes + Array("\r\n".utf8)), .raw(bytes + Array("\r\n".utf8)))
    let failure = try await Client { $0.headerSizeLimit = 20_000 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure.message)")
    #expect(failure.message.contains("headerSizeLimit"))
    #expect(try await Client { $0.headerSizeLimit = 90_000 }.get(server.url("/")).text == "12345")
  }

  @Test("Malformed trailer ends the request", arguments: ["no colon", "X A: b", "X-A : b", "X-A: b\rc"])
  func malformedTrailer(line: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\(line)\r\n\r\n"))
    let failure = try await Client().failure(of: server.url("/"))
    #expect(failure.kind == .badServerResponse, "\(failure.message)")
    #expect(failure.helps(host: "127.0.0.1"), "\(failure.message)")
  }
}
