import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Ends and bytes that arrive before they are waited for.
@Suite("Ends of connections that come early", .timeLimit(.minutes(3)))
struct EarlyEndTests {
  /// Whether the socket reports the response before, with or after its connection is a matter of chance.
  @Test("A response that is sent before the request is received", arguments: [true, false])
  func responseBeforeRequest(hasResponse: Bool) async throws {
    let server = try StreamTestServer { connection in
      if hasResponse {
        try connection.write("HTTP/1.1 503 Full\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfull")
      }
      connection.closeWriting()
      connection.waitForEnd()
    }
    let url = "http://127.0.0.1:\(server.port)/"
    for _ in 0..<50 {
      let client = Client()
      if hasResponse {
        #expect(try await client.get(url).text == "full")
      } else {
        #expect(try await client.failure(of: url).kind == .connectionLost)
      }
    }
  }

  /// Closes the socket of the server with unread bytes, which resets the connection while the body is sent.
  @Test("A server that refuses an upload and resets the connection is heard", arguments: [false, true])
  func refusedUpload(isSecure: Bool) async throws {
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
      connection.reset()
    }
    let client = Client { $0.httpVersions = .http1Only }
    let url = "http\(isSecure ? "s" : "")://localhost:\(server.port)/"
    for _ in 0..<30 {
      let response = try await client.send(client.request(url, "PUT", body: .bytes(Data(count: 8 << 20))))
      #expect(response.status == 413)
      #expect(response.text == "no")
    }
  }

  @Test("A request that is cancelled in its TLS handshake closes its connection") func cancelledHandshake()
    async throws
  {
    let (isOpen, isClosed) = (Moment(), Moment())
    let server = try StreamTestServer { connection in
      _ = try connection.readExactly(5)
      isOpen.come()
      connection.waitForEnd()
      isClosed.come()
    }
    let client = Client()
    let watcher = Watcher()
    let request = try client.request("https://localhost:\(server.port)/")
    async let failure = client.failure(of: request, watcher: watcher)
    await isOpen.wait()
    watcher.cancel()
    #expect(try await failure.kind == .cancelled)
    await isClosed.wait()
  }

  @Test("A connection over TLS is closed with the alert") func closingAlert() async throws {
    let ends = Mutex<[Int?]>([])
    let hasEnded = Moment()
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
      // Without the alert, this throws.
      let rest = try? connection.readToEnd().count
      ends.withLock { $0.append(rest) }
      hasEnded.come()
    }
    #expect(try await Client().get("https://localhost:\(server.port)/").text == "ok")
    await hasEnded.wait()
    #expect(ends.withLock { $0 } == [0])
  }

  @Test("A body without length that ends without the alert of TLS is named so") func cutBody() async throws {
    let hasHead = Gate()
    let server = try StreamTestServer(.tls(.localhost)) { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\n\r\nhalf")
      try connection.pass(hasHead)
      try connection.cut()
    }
    let client = Client()
    let request = try client.request("https://localhost:\(server.port)/")
    let failure = try await client.failure(of: request, watcher: Watcher(onHead: { _ in hasHead.open() }))
    #expect(failure.kind == .connectionLost)
    #expect(
      failure.message.contains("without the TLS alert that ends a body without length"), "\(failure.message)")
  }

  @Test("Bytes of a proxy before the TLS handshake end the request") func bytesBeforeHandshake() async throws
  {
    let proxy = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\n\r\nbytes of an attacker")
      connection.waitForEnd()
    }
    let client = Client { $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port)) }
    let failure = try await client.failure(of: "https://localhost:1/")
    #expect(failure.kind == .secureConnectionFailed)
    #expect(failure.message.contains("before the TLS handshake"), "\(failure.message)")
  }

  @Test("A proxy that forwards requests receives them over HTTP/1.1") func forwardedRequest() async throws {
    let proxy = try StreamTestServer { connection in
      let head = String(decoding: try connection.readHead(), as: UTF8.self)
      #expect(head.hasPrefix("GET http://nowhere.test/ HTTP/1.1\r\n"), "\(head)")
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    let client = Client {
      $0.httpVersions = .http2PriorKnowledge
      $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port))
    }
    #expect(try await client.get("http://nowhere.test/").text == "ok")
  }
}
