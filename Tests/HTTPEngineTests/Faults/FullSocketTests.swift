import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Servers at a Unix-domain socket with no room for another connection. The system reports that at once, and does not
/// retry automatically.
@Suite("Full Unix-domain sockets", .timeLimit(.minutes(2))) struct FullSocketTests {
  private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  @Test("A request waits until the server accepts connections", arguments: [false, true])
  func waits(hasProxy: Bool) async throws {
    let server = try UnixSocketServer([Self.ok], isFull: true)
    let client = Client {
      $0.unixSocket = server.path
      if hasProxy { $0.proxy = .server(ProxyServer(.http, host: "localhost", port: 80)) }
    }
    let watcher = Watcher()
    async let response = client.get("http://localhost/", watcher: watcher)
    // The loop has tried to connect before it performs another request.
    await watcher.began.wait()
    _ = await client.transport.snapshot()
    #expect(server.heads.isEmpty)
    server.accept()
    #expect(try await response.text == "ok")
    #expect(server.heads.count == 1)
  }

  @Test("The connect timeout ends the wait") func timeout() async throws {
    let server = try UnixSocketServer([Self.ok], isFull: true)
    let client = Client {
      $0.unixSocket = server.path
      $0.connectTimeout = .milliseconds(300)
    }
    let failure = try await client.failure(of: "http://localhost/")
    #expect(failure.kind == .timedOut && failure.phase == .connect)
    #expect(failure.message.contains("queue of connections is full"), "\(failure.message)")
  }

  /// Limits connecting to a proxy whose queue was full, and which then does not answer CONNECT. Returns the failure;
  /// `nil` if the limit was exceeded before the proxy had the request.
  private func failureOfTunnel(within limit: Duration) async throws -> TransportFailure? {
    // It reads one head, and does not answer.
    let proxy = try UnixSocketServer([""], isFull: true)
    let client = Client {
      $0.unixSocket = proxy.path
      $0.proxy = .server(ProxyServer(.http, host: "localhost", port: 80))
      $0.connectTimeout = limit
    }
    let watcher = Watcher()
    let request = try client.request("https://shop.example/")
    async let failure = client.failure(of: request, watcher: watcher)
    // The loop has tried to connect before it makes the snapshot.
    await watcher.began.wait()
    _ = await client.transport.snapshot()
    proxy.accept()
    let outcome = try await failure
    return proxy.heads.isEmpty ? nil : outcome
  }

  @Test("A proxy that accepts a connection late, and then does not answer, is not taken for a full one")
  func silentProxy() async throws {
    var failure: TransportFailure?
    // A busy machine may need longer to accept the connection.
    for seconds in [1, 4, 16] where failure == nil {
      failure = try await failureOfTunnel(within: .seconds(seconds))
    }
    let message = try #require(failure, "no connection was accepted").message
    #expect(failure?.kind == .timedOut && failure?.phase == .connect)
    #expect(message.contains("through the proxy") && !message.contains("queue"), "\(message)")
  }

  @Test("A request that is cancelled stops trying") func cancelled() async throws {
    let server = try UnixSocketServer([Self.ok], isFull: true)
    let client = Client { $0.unixSocket = server.path }
    let watcher = Watcher()
    let request = try client.request("http://localhost/")
    async let failure = client.failure(of: request, watcher: watcher)
    await watcher.began.wait()
    watcher.cancel()
    #expect(try await failure.kind == .cancelled)
    server.accept()
    #expect(try await client.get("http://localhost/").text == "ok")
    #expect(server.heads.count == 1)
  }
}
