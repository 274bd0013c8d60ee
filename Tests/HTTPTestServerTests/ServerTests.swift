import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ServerTests {
  @Test func anEnqueuedReplyComesBeforeTheRoutes() throws {
    let server = try HTTPTestServer()
    server.enqueue(.text("first"), .status(503).with(header: "Retry-After", value: "1"))
    let client = try RawClient(server)
    #expect(try client.get("/get").text == "first")
    let second = try client.get("/get")
    #expect(second.status == 503)
    #expect(second.statusLine == "HTTP/1.1 503 Service Unavailable")
    #expect(second.field("retry-after") == "1")
    #expect(try client.get("/get").text.contains("\"url\""))
    #expect(server.pendingReplyCount == 0)
    #expect(server.connectionCount == 1)
  }

  @Test func aRequestIsRecordedAsItCame() async throws {
    let server = try HTTPTestServer()
    let client = try RawClient(server)
    try client.write(
      "POST /a%20b?x=1&y=%C3%A4+b&x HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nx-twice: 2\r\n"
        + "Content-Length: 5\r\n\r\nhello")
    #expect(try client.readResponse().status == 404)
    let request = try await server.takeRequest()
    #expect(request.method == "POST")
    #expect(request.target == "/a%20b?x=1&y=%C3%A4+b&x")
    #expect(request.path == "/a%20b")
    #expect(request.query.map(\.name) == ["x", "y", "x"])
    #expect(request.query.map(\.value) == ["1", "ä b", ""])
    #expect(request.headers.map(\.name) == ["Host", "X-Twice", "x-twice", "Content-Length"])
    #expect(request.header("X-TWICE") == "1")
    #expect(request.headers(named: "x-twice") == ["1", "2"])
    #expect(request.bodyLength == 5)
    #expect(request.isBodyComplete)
    #expect(request.tlsVersion == nil)
    #expect(request.connection == 0)
    #expect(request.indexOnConnection == 0)
  }
}
