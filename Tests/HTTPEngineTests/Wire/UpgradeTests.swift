import HTTPTestServer
import HTTPWire
import Testing

/// Requests that offer to switch to another protocol, which HTTP/2 has no way to say (RFC 9113 §8.6).
@Suite("Requests with Upgrade", .timeLimit(.minutes(5))) struct UpgradeTests {
  private static let upgrade = [
    HTTPHeader(name: "Connection", value: "Upgrade"), HTTPHeader(name: "Upgrade", value: "other/1"),
  ]

  /// Chooses HTTP/2 if a client offers it. Records the heads of HTTP/1.1.
  private func server(_ heads: Received) throws -> StreamTestServer {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    return try StreamTestServer(.tls(.localhost, options)) { connection in
      guard connection.applicationProtocol != "h2" else {
        let http2 = try HTTP2TestConnection(connection)
        while true { try http2.respond(204, on: http2.request()) }
      }
      while true {
        heads.add(try connection.readHead())
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
  }

  @Test("Upgrade is sent over HTTP/1.1 to a server that speaks HTTP/2", arguments: [false, true])
  func version(hasConnection: Bool) async throws {
    let heads = Received()
    let server = try server(heads)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    if hasConnection { #expect(try await client.get(url).head.version == .http2) }
    let response = try await client.send(client.request(url, fields: Self.upgrade))
    #expect(response.head.version == .http1_1)
    #expect(response.text == "ok")
    #expect(heads.texts.count == 1 && heads.texts.allSatisfy { $0.contains("\r\nUpgrade: other/1\r\n") })
    if hasConnection {
      #expect(try await client.get(url).head.version == .http2, "the connection was given up")
    }
  }

  @Test("A response 101 to a request with Upgrade is delivered, and its connection closed")
  func switching() async throws {
    let rest = Received()
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: other/1\r\n\r\n")
      rest.add(try connection.readToEnd())
    }
    let client = Client()
    let response = try await client.send(
      client.request("http://127.0.0.1:\(server.port)/", fields: Self.upgrade))
    #expect(response.status == 101 && response.body == nil)
    #expect(await ProcessFacts.eventually { rest.values == [[]] }, "the connection was not closed")
  }
}
