import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Bodies that end with their connection (RFC 9112 §9.8).
@Suite(.timeLimit(.minutes(5))) struct CutOffTests {
  @Test(
    "A body without a length needs close_notify", arguments: TLSOptions.Version.allCases, [0, 500, 100_000])
  func closeNotify(version: TLSOptions.Version, count: Int) async throws {
    let options = TLSOptions(maximumVersion: version)
    let server = try HTTPTestServer(.tls(.localhost, options), routes: .none)
    server.enqueue(
      .cutAfterBody(bytes: count).framed(.untilClose), .bytes(count).framed(.untilClose),
      .cutAfterBody(bytes: count).framed(.untilClose))
    let client = Client()
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .connectionLost)
    #expect(failure.helps(host: "localhost"), "\(failure.message)")
    #expect(failure.metrics != nil)
    #expect(try await client.get(server.url("/")).bytes == Reply.patternBytes(count))
    let sink = ScriptedSink()
    let url = server.url("/")
    let streamed = try client.request(url, sink: sink)
    #expect(try await client.failure(of: streamed).kind == .connectionLost)
    #expect(sink.bytes == Reply.patternBytes(count))
    #expect(sink.finishes == 1)
  }

  @Test(
    "A body without a length needs close_notify for every head",
    arguments: [
      "HTTP/1.0 200 OK\r\n\r\nall", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall",
      "HTTP/1.1 404 Not Found\r\n\r\nall",
    ])
  func heads(head: String) async throws {
    let isCut = Gate()
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      while try !connection.line().isEmpty {}
      try connection.write(head)
      guard !isCut.isOpen else { return }
      isCut.open()
      try connection.cut()
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.failure(of: url).kind == .connectionLost)
    #expect(try await client.get(url).text == "all")
  }

  /// If the length of the body is known, the end of the connection does not matter.
  @Test(
    "A body of a known length does not need close_notify",
    arguments: [
      "Content-Length: 3\r\n\r\nall", "Transfer-Encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\n",
    ])
  func knownLength(rest: String) async throws {
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      while try !connection.line().isEmpty {}
      try connection.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\(rest)")
      try connection.cut()
    }
    #expect(try await Client().get("https://localhost:\(server.port)/").text == "all")
  }

  @Test(
    "A response without a body does not need close_notify",
    arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
  func noBody(method: String, status: Int) async throws {
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      while try !connection.line().isEmpty {}
      try connection.write("HTTP/1.1 \(status) Status\r\nConnection: close\r\n\r\n")
      try connection.cut()
    }
    let client = Client()
    let response = try await client.send(client.request("https://localhost:\(server.port)/", method))
    #expect(response.status == status)
  }

  @Test("Without TLS the ends of a connection are indistinguishable") func withoutTLS() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.bytes(5000).framed(.untilClose))
    #expect(try await Client().get(server.url("/")).bytes.count == 5000)
  }
}
