import Glibc
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FaultTests {
  private let server: HTTPTestServer
  private let client: RawClient

  init() throws {
    server = try HTTPTestServer()
    client = try RawClient(server)
  }

  @Test("A stall reads the request and does not send a byte") func stall() async throws {
    server.enqueue(.stall)
    try client.ask("GET", "/")
    #expect(try await server.takeRequest().path == "/")
    #expect(!client.hasBytes)
    #expect(server.openConnectionCount == 1)
    server.stop()
    #expect(try client.readToEnd().isEmpty)
  }

  @Test("A stall ends when the client closes the connection") func endOfStall() async throws {
    server.enqueue(.stall)
    try client.ask("GET", "/")
    _ = try await server.takeRequest()
    client.closeNow()
    while server.openConnectionCount > 0 { await Task.yield() }
  }

  @Test(
    "A stall after some bytes leaves the connection open",
    arguments: [(Reply.stallAfterHead, 0), (.stallAfterBody(bytes: 300), 300)])
  func partialStall(_ reply: Reply, _ count: Int) throws {
    server.enqueue(reply)
    try client.ask("GET", "/")
    let head =
      "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: \(1000 + count)\r\n\r\n"
    #expect(String(decoding: try client.read(head.utf8.count), as: UTF8.self) == head)
    #expect(try client.read(count) == Reply.patternBytes(count))
    #expect(client.isOpen)
    #expect(!client.hasBytes)
  }

  @Test("Closing sends an end without bytes") func closeConnection() throws {
    server.enqueue(.closeBeforeReply)
    try client.ask("GET", "/")
    #expect(try client.readToEnd().isEmpty)
  }

  @Test("A reset is received as one") func reset() throws {
    server.enqueue(.reset)
    try client.ask("GET", "/")
    #expect(client.endingError() == ECONNRESET)
  }

  @Test("A reset after some bytes delivers them") func resetAfterBytes() throws {
    server.enqueue(.resetAfterBody(bytes: 100))
    try client.ask("GET", "/")
    var bytes: [UInt8] = []
    let error = #expect(throws: RawClient.Failure.self) {
      while true { bytes += try client.readSome() }
    }
    if case .system("recv", ECONNRESET)? = error {} else { Issue.record("\(String(describing: error))") }
    #expect(bytes.suffix(100) == Reply.patternBytes(100)[...])
  }

  @Test(
    "A close after some bytes delivers them",
    arguments: [Reply.closeAfterBody(bytes: 100), .cutAfterBody(bytes: 100)])
  func closeAfterBytes(_ reply: Reply) throws {
    server.enqueue(reply)
    try client.ask("GET", "/")
    let bytes = try client.readToEnd()
    #expect(String(decoding: bytes, as: UTF8.self).contains("Content-Length: 1100\r\n"))
    #expect(bytes.suffix(100) == Reply.patternBytes(100)[...])
  }

  @Test("A slow drip is complete") func drip() throws {
    server.enqueue(Reply.bytes(50).with(effect: .slowDrip(bytesPerStep: 7, interval: .milliseconds(1))))
    #expect(try client.get("/").body == Reply.patternBytes(50))
    #expect(try client.get("/ip").status == 200)
  }

  @Test("Garbage and raw bytes are sent unchanged") func rawBytes() throws {
    server.enqueue(.garbage, .raw("abc", closes: false), .raw("def"))
    try client.ask("GET", "/")
    #expect(try !client.readText().contains("HTTP"))
    let other = try RawClient(server)
    try other.ask("GET", "/")
    #expect(try other.read(3) == Array("abc".utf8))
    try other.ask("GET", "/")
    #expect(try other.readText() == "def")
  }

  @Test("Malformed chunks are sent as scripted") func malformedChunks() throws {
    server.enqueue(.badChunk, .truncatedChunked)
    try client.ask("GET", "/")
    #expect(try client.readText().hasSuffix("\r\nnot-a-size\r\nmore\r\n"))
    let other = try RawClient(server)
    try other.ask("GET", "/")
    let text = try other.readText()
    #expect(text.contains("chunked"))
    #expect(!text.hasSuffix("0\r\n\r\n"))
  }

  @Test("An early reply does not wait for the body") func earlyReply() async throws {
    server.enqueue(.earlyReply(413))
    try client.ask("POST", "/", ["Content-Length: 1000000"])
    let response = try client.readResponse()
    #expect(response.status == 413)
    #expect(response.field("Connection") == "close")
    let request = try await server.takeRequest()
    #expect(request.body.isEmpty)
    #expect(!request.isBodyComplete)
    // Bytes that are still in flight must not destroy the response, so the connection ends without a reset.
    try client.write([UInt8](repeating: 0, count: 1_000_000))
    #expect(client.endingError() == nil)
  }

  @Test("A malformed body after an early reply has no second response") func malformedLateBody() async throws
  {
    server.enqueue(.earlyReply(200, then: .afterReply))
    try client.ask("POST", "/", ["Transfer-Encoding: chunked"])
    #expect(try client.readResponse().status == 200)
    try client.write("3\r\nabc\r\nzz\r\n")
    #expect(try client.readText().isEmpty)
    let request = try await server.takeRequest()
    #expect(request.bodyText == "abc")
    #expect(!request.isBodyComplete)
    #expect(request.isChunked)
  }

  @Test("An early reply can read the body afterwards") func bodyAfterEarlyReply() async throws {
    server.enqueue(.earlyReply(200, then: .afterReply))
    try client.ask("POST", "/", ["Content-Length: 3"])
    #expect(try client.readResponse().status == 200)
    #expect(server.requestCount == 0)
    try client.write("abc")
    #expect(try await server.takeRequest().bodyText == "abc")
    #expect(try client.get("/ip").status == 200)
  }

  @Test("An incomplete body is recorded as incomplete") func incompleteBody() async throws {
    server.enqueue(.ok)
    try client.ask("POST", "/", ["Content-Length: 10"])
    try client.write("abc")
    client.closeNow()
    let request = try await server.takeRequest()
    #expect(request.bodyText == "abc")
    #expect(!request.isBodyComplete)
  }

  @Test("An incomplete body over TLS is recorded, also without a closing alert") func incompleteTLSBody()
    async throws
  {
    let server = try HTTPTestServer(.tls(.localhost))
    server.enqueue(.ok)
    let client = try TLSClient(server, authority: TestIdentity.localhost.caPEM)
    client.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
    client.closeNow()
    let request = try await server.takeRequest()
    #expect(request.bodyText == "abc")
    #expect(!request.isBodyComplete)
  }

  @Test("Early hints precede the reply") func earlyHints() throws {
    server.enqueue(Reply.text("x").preceded(by: 103, headers: [HTTPHeader(name: "Link", value: "</a>")]))
    try client.ask("GET", "/")
    let hints = try client.readResponse()
    #expect(hints.status == 103)
    #expect(hints.field("Link") == "</a>")
    #expect(try client.readResponse().text == "x")
  }

  @Test("Trailers follow the last chunk") func trailers() throws {
    server.enqueue(Reply.text("x").with(trailers: [HTTPHeader(name: "Sum", value: "1")]))
    #expect(try client.get("/").trailers == ["Sum: 1"])
  }

  @Test("Connections fail as scripted") func connectionEffects() throws {
    let server = try HTTPTestServer()
    server.enqueue(connections: .closeOnAccept, .resetOnAccept, .closeInHandshake, .plainText, .alert(40))
    #expect(try RawClient(server).readToEnd().isEmpty)
    #expect(try RawClient(server).endingError() == ECONNRESET)
    let closed = try RawClient(server)
    try closed.write("hello")
    #expect(try closed.readToEnd().isEmpty)
    let plain = try RawClient(server)
    try plain.write([0x16, 0x03])
    #expect(try plain.readResponse().status == 400)
    let alert = try RawClient(server)
    try alert.write([0x16, 0x03])
    #expect(try alert.readToEnd() == [0x15, 3, 3, 0, 2, 2, 40])
    #expect(try RawClient(server).get("/ip").status == 200)
  }

  @Test("A stalled connection does not read a byte") func stalledConnection() throws {
    let server = try HTTPTestServer()
    server.enqueue(connections: .stall)
    let client = try RawClient(server)
    try client.ask("GET", "/ip")
    #expect(try RawClient(server).get("/ip").status == 200)
    #expect(server.requestCount == 1)
    #expect(!client.hasBytes)
    server.stop()
    // Unread bytes make the end of the connection a reset.
    #expect(client.endingError() == ECONNRESET)
  }

  @Test("A refused port refuses connections") func refusedPort() throws {
    let port = try HTTPTestServer.refusedPort()
    #expect(try HTTPTestServer.refusedPort() == port)
    let error = #expect(throws: RawClient.Failure.self) { try RawClient(port: port) }
    if case .system("connect", ECONNREFUSED)? = error {} else { Issue.record("\(String(describing: error))") }
  }

  @Test("An unresponsive port neither accepts nor refuses connections") func unresponsivePort() throws {
    let target = try UnresponsivePort()
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    #expect(RawClient.connect(descriptor, to: target.port) == EINPROGRESS)
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    #expect(poll(&entry, 1, 200) == 0)
  }
}
