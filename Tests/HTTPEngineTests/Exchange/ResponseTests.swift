import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ResponseTests {
  @Test("A body of known length is complete", arguments: [0, 1, 1000, 16_384, 32_768, 32_769, 1 << 20])
  func knownLength(size: Int) async throws {
    let server = try HTTPTestServer()
    let watcher = Watcher()
    let response = try await Client().get(server.url("/bytes/\(size)"), watcher: watcher)
    #expect(response.bytes == Reply.patternBytes(size))
    #expect((response.body == nil) == (size == 0))
    #expect(watcher.counts.allSatisfy { $0.expectedToReceive == Int64(size) })
    #expect(watcher.last?.received ?? 0 == Int64(size))
    #expect(response.metrics.values.responseBodyBytes == Int64(size))
    #expect(watcher.endedCount == 1 && watcher.beganCount == 1 && watcher.callsAfterEnd == 0)
  }

  @Test("Thirty megabytes are complete", arguments: [Reply.Framing.contentLength, .chunked, .untilClose])
  func largeBody(framing: Reply.Framing) async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Content.bytes(30_000_000)
    server.enqueue(.data(bytes).framed(framing))
    let response = try await Client().get(server.url("/"))
    // Compared as memory: element by element is slow without optimization.
    #expect(response.body == Data(bytes))
  }

  @Test("Chunk sizes and trailers are not part of body and head") func chunks() async throws {
    let server = try HTTPTestServer(routes: .none)
    let trailer = HTTPHeader(name: "X-Trailer", value: "1")
    server.enqueue(.parts("first ", "", "second ", "third").with(trailers: [trailer]), .text("next"))
    let client = Client()
    let watcher = Watcher()
    let response = try await client.get(server.url("/"), watcher: watcher)
    #expect(response.text == "first second third")
    #expect(!response.head.block.contains("X-Trailer"))
    #expect(watcher.counts.allSatisfy { $0.expectedToReceive == -1 })
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 1)
  }

  @Test("A status without a body ends with its head", arguments: [204, 304])
  func noBody(status: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(status).with(header: "Content-Length", value: "100"), .text("next"))
    let client = Client()
    let response = try await client.get(server.url("/"))
    #expect(response.status == status)
    #expect(response.body == nil)
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 1)
  }

  @Test("Every status is a response", arguments: [200, 301, 401, 403, 404, 407, 418, 500, 503, 599, 799])
  func statuses(status: Int) async throws {
    let server = try HTTPTestServer()
    let response = try await Client().get(server.url("/status/\(status)"))
    #expect(response.status == status)
    #expect(server.requestCount == 1)
  }

  @Test("Informational heads are delivered apart from the final head") func informationalHeads() async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let link = HTTPHeader(name: "Link", value: "</style.css>")
    server.enqueue(.text("body").preceded(by: 100).preceded(by: 103, headers: [link]))
    let watcher = Watcher()
    let response = try await Client().get(server.url("/"), watcher: watcher)
    #expect(watcher.heads.map(\.status) == [200])
    #expect(watcher.informationalHeads.map(\.status) == [100, 103])
    #expect(watcher.informationalHeads.last?.block.value(of: "Link") == "</style.css>")
    #expect(!response.head.block.contains("Link"))
    #expect(response.text == "body")
  }

  @Test("Informational heads over HTTP/2 are delivered while the request is sent")
  func informationalHeadsOverHTTP2() async throws {
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.next().stream
      try http2.respond(104, [("location", "/files/1")], on: stream, endsStream: false)
      while try !http2.next().endsStream {}
      try http2.respond(201, on: stream)
      connection.waitForEnd()
    }
    let watcher = Watcher()
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    let request = try client.request(url, "POST", body: .bytes(Data(Content.bytes(40_000))))
    let response = try await client.send(request, watcher: watcher)
    #expect(response.status == 201 && response.head.version == .http2)
    #expect(watcher.informationalHeads.map(\.status) == [104])
    #expect(watcher.informationalHeads.first?.block.value(of: "Location") == "/files/1")
  }

  @Test("An informational head is delivered although the stream of HTTP/2 is reset after it")
  func informationalHeadBeforeReset() async throws {
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.next().stream
      try http2.respond(104, [("location", "/files/1")], on: stream, endsStream: false)
      try http2.reset(stream, .internalError)
      connection.waitForEnd()
    }
    let watcher = Watcher()
    let client = Client()
    let body = RequestBody.bytes(Data(Content.bytes(40_000)))
    let request = try client.request("https://localhost:\(server.port)/", "POST", body: body)
    _ = try await client.failure(of: request, watcher: watcher)
    #expect(watcher.informationalHeads.map(\.status) == [104] && watcher.heads.isEmpty)
  }

  @Test("A response of HTTP/1.0 ends with its connection") func http10() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw("HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nthe body"), .text("next"))
    let client = Client()
    let response = try await client.get(server.url("/"))
    #expect(response.head.version == .http1_0)
    #expect(response.metrics.version == .http1_0)
    #expect(response.text == "the body")
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 2)
  }

  @Test("Status lines without a reason and bare line feeds are accepted") func statusLines() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .raw("HTTP/1.1 200\nContent-Length: 2\n\nok"), .raw("HTTP/1.1 201 \r\nContent-Length: 2\r\n\r\nok"))
    let client = Client()
    for status in [200, 201] {
      let response = try await client.get(server.url("/"))
      #expect(response.status == status)
      #expect(response.text == "ok")
    }
  }

  @Test("A folded field is one field") func foldedField() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw("HTTP/1.1 200 OK\r\nX-A: one\r\n  two\r\nContent-Length: 2\r\n\r\nok"))
    let response = try await Client().get(server.url("/"))
    #expect(response.head.block.value(of: "X-A")?.split(separator: " ") == ["one", "two"])
  }
}
