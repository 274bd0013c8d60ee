import FoundationEssentials
import Glibc
import HTTPTestServer
import HTTPWire
import Testing

/// Which connections are kept alive after a response, and how their sockets are configured (RFC 9112 §9).
@Suite("Persistence of connections", .timeLimit(.minutes(5))) struct PersistenceTests {
  /// Answers every request of a connection with the same bytes.
  private static func server(_ response: String) throws -> StreamTestServer {
    try StreamTestServer { connection in
      while true {
        _ = try connection.readHead()
        try connection.write(response)
      }
    }
  }

  private func connections(for response: String) async throws -> Int {
    let server = try Self.server(response)
    let client = Client()
    for _ in 0..<3 {
      #expect(try await client.get("http://127.0.0.1:\(server.port)/").text == "ok", "\(response)")
    }
    return server.connectionCount
  }

  @Test(
    "A response that asks for the end of the connection gets it, wherever it says so",
    arguments: [
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nConnection: x-a , CLOSE\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nConnection: x-a\r\nconnection: Close\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ])
  func closes(response: String) async throws {
    #expect(try await connections(for: response) == 3)
  }

  @Test(
    "A response that does not is answered on a connection that lives on",
    arguments: [
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
    ])
  func persists(response: String) async throws {
    #expect(try await connections(for: response) == 1)
  }

  @Test(
    "Options of Connection that contain the word close do not close",
    arguments: ["x-close", "close-later", "keep-alive, x-close"])
  func similarOptions(value: String) async throws {
    let response = "HTTP/1.1 200 OK\r\nConnection: \(value)\r\nContent-Length: 2\r\n\r\nok"
    #expect(try await connections(for: response) == 1)
  }

  @Test(
    "A proxy of HTTP/1.0 keeps a connection that it promises to keep",
    arguments: [("Proxy-Connection: Keep-Alive\r\n", 1), ("Connection: keep-alive\r\n", 1), ("", 3)])
  func oldProxy(field: String, connections: Int) async throws {
    let proxy = try Self.server("HTTP/1.0 200 OK\r\n\(field)Content-Length: 2\r\n\r\nok")
    let client = Client { $0.proxy = .server(ProxyServer(.http, host: "127.0.0.1", port: proxy.port)) }
    for _ in 0..<3 { #expect(try await client.get("http://nowhere.test/").text == "ok") }
    #expect(proxy.connectionCount == connections)
  }

  @Test("An end of the connection after a complete response is not an error", arguments: [false, true])
  func endAfterResponse(isReset: Bool) async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      if isReset { connection.reset() }
    }
    let client = Client()
    for _ in 0..<10 { #expect(try await client.get("http://127.0.0.1:\(server.port)/").text == "ok") }
  }

  @Test("A reset within a response keeps the bytes that were received before it") func resetWithinResponse()
    async throws
  {
    let gate = Gate()
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
      try connection.pass(gate)
      connection.reset()
    }
    let client = Client()
    let sink = ScriptedSink()
    let request = try client.request("http://127.0.0.1:\(server.port)/", sink: sink)
    async let failure = client.failure(of: request)
    #expect(await ProcessFacts.eventually { sink.bytes.count == 4 }, "the first bytes were not delivered")
    gate.open()
    #expect(try await failure.kind == .connectionLost)
    #expect(sink.bytes == Array("half".utf8))
  }

  @Test("Sockets send small pieces at once and detect silent peers") func socketOptions() async throws {
    let server = try HTTPTestServer()
    let client = Client()
    _ = try await client.get(server.url("/get"))
    let socket = try #require(SocketFacts.descriptor(connectedTo: server.port))
    #expect(SocketFacts.option(socket, Int32(IPPROTO_TCP), TCP_NODELAY) != 0)
    #expect(SocketFacts.option(socket, SOL_SOCKET, SO_KEEPALIVE) != 0)
    #expect(SocketFacts.option(socket, Int32(IPPROTO_TCP), TCP_KEEPIDLE) == 60)
    #expect(SocketFacts.option(socket, Int32(IPPROTO_TCP), TCP_KEEPINTVL) == 60)
    withExtendedLifetime(client) {}
  }

  /// Does not check how long they stay open, because the pool has no clock that a test could set.
  @Test("At most 64 idle connections stay open, and the oldest are closed") func idleLimit() async throws {
    let servers = try (0..<70).map { _ in try HTTPTestServer() }
    let client = Client()
    for server in servers { #expect(try await client.get(server.url("/get")).status == 200) }
    let isWithinLimit = await ProcessFacts.eventually {
      servers.count { $0.openConnectionCount > 0 } <= 64
    }
    #expect(isWithinLimit, "\(servers.count { $0.openConnectionCount > 0 }) connections are open")
    #expect(servers.suffix(32).allSatisfy { $0.openConnectionCount == 1 }, "a new connection was closed")
    #expect(servers[0].openConnectionCount == 0, "the oldest connection is still open")
    withExtendedLifetime(client) {}
  }
}

/// Facts about the sockets of this process.
enum SocketFacts {
  /// Returns a socket that is connected to a port of this machine.
  static func descriptor(connectedTo port: Int) -> Int32? {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap { Int32($0) }.first { remotePort(of: $0) == port }
  }

  static func option(_ socket: Int32, _ level: Int32, _ name: Int32) -> Int32? {
    var value: Int32 = -1
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(socket, level, name, &value, &length) == 0 ? value : nil
  }

  private static func remotePort(of socket: Int32) -> Int? {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(socket, $0, &length) }
    }
    return result == 0 ? Int(UInt16(bigEndian: address.sin_port)) : nil
  }
}
