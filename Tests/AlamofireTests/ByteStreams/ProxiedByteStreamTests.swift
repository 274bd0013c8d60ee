import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Streams of bytes through proxies", .timeLimit(.minutes(5))) struct ProxiedByteStreamTests {
  /// Starts an HTTP proxy that supports `CONNECT` only, and connects every host to one port.
  static func proxy(
    _ security: HTTPTestServer.Security = .none, to port: Int, seen: Recorder<String>,
    status: String = "200 OK"
  ) throws -> StreamTestServer {
    try StreamTestServer(security) { connection in
      while true {
        let line = try connection.line()
        if line.isEmpty { break }
        seen.add(line)
      }
      guard status.hasPrefix("200") else {
        try connection.write("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
        return
      }
      try connection.relay(toPort: port) { try connection.write("HTTP/1.1 \(status)\r\n\r\n") }
    }
  }

  @Test("Tunnel through an HTTP proxy", arguments: [true, false]) func tunnel(isSecure: Bool) async throws {
    let server = try StreamTestServer(isSecure ? .tls(.localhost) : .none) { connection in
      // The server sends first, right after the response of the proxy.
      try connection.write("hello\n")
      try connection.echo()
    }
    let seen = Recorder<String>()
    let proxy = try Self.proxy(to: server.port, seen: seen)
    let session = Session.forStreams {
      $0.proxy = .http("127.0.0.1", port: proxy.port, username: "ann", password: "secret")
    }
    let stream = session.byteStream(host: "localhost", port: 7777, secure: isSecure)
    #expect(try await stream.read(atLeast: 6, atMost: 6).data == Data("hello\n".utf8))
    try await stream.write(Data("x".utf8))
    #expect(try await stream.read().data == Data("x".utf8))
    #expect(seen.values.first == "CONNECT localhost:7777 HTTP/1.1")
    #expect(seen.values.contains { $0.hasPrefix("Proxy-Authorization: Basic ") })
    // The same easy handle sends requests afterwards.
    let http = try HTTPTestServer()
    let direct = session.request(http.url("/get"))
    direct.transportOptions { $0.proxy = .none }
    #expect(await direct.serializingData().response.response?.statusCode == 200)
  }

  @Test("A proxy that refuses fails the stream") func refusal() async throws {
    let seen = Recorder<String>()
    let proxy = try Self.proxy(to: 1, seen: seen, status: "403 Forbidden")
    let session = Session.forStreams { $0.proxy = .http("127.0.0.1", port: proxy.port) }
    let stream = session.byteStream(host: "localhost", port: 7777)
    #expect(await failure { try await stream.read() }?.transferCode == .cannotConnectToHost)
    let asking = try Self.proxy(to: 1, seen: seen, status: "407 Who")
    let other = Session.forStreams { $0.proxy = .http("127.0.0.1", port: asking.port) }
    let stranger = other.byteStream(host: "localhost", port: 7777)
    #expect(await failure { try await stranger.read() }?.transferCode == .userAuthenticationRequired)
  }

  @Test("SOCKS proxy is used") func socks() async throws {
    let server = try StreamTestServer()
    let port = server.port
    let proxy = try StreamTestServer { connection in
      _ = try connection.read(atMost: 2)
      _ = try connection.read()  // the methods of authentication
      try connection.write([5, 0])
      let head = try connection.read(atMost: 5)
      guard head.count == 5, head[3] == 3 else { return }
      _ = try connection.read(atMost: Int(head[4]) + 2)
      try connection.relay(toPort: port) { try connection.write([5, 0, 0, 1, 127, 0, 0, 1, 0, 1]) }
    }
    let session = Session.forStreams { $0.proxy = .socks5h("127.0.0.1", port: proxy.port) }
    let stream = session.byteStream(host: "nowhere.test", port: 7777)
    try await stream.write(Data("x".utf8))
    #expect(try await stream.read().data == Data("x".utf8))
    #expect(server.connectionCount == 1)
  }

  @Test("Host overrides and refused addresses apply to streams") func overrides() async throws {
    let server = try StreamTestServer()
    let led = Session.forStreams {
      $0.hostOverrides = [.init(host: "nowhere.test", target: "127.0.0.1", targetPort: server.port)]
    }
    let stream = led.byteStream(host: "nowhere.test", port: 25)
    try await stream.write(Data("x".utf8))
    #expect(try await stream.read().data == Data("x".utf8))
    let protected = led.byteStream(host: "127.0.0.1", port: server.port) { $0.refusesPrivateAddresses = true }
    #expect(await failure { try await protected.read() }?.transferCode == .unsupportedURL)
    #expect(server.connectionCount == 1)
  }
}
