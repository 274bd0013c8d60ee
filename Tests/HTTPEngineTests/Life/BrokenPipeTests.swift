import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// Connections that their server has reset, on threads of the program. SIGPIPE would end the process. The connections
/// are idle while the loop has no thread, so it learns of nothing.
@Suite("Broken connections on threads of the program", .timeLimit(.minutes(2))) struct BrokenPipeTests {
  /// Starts a server that answers a request on each connection, and then resets its half-closed connection.
  private static func server(_ protocols: [String], _ gate: Gate) throws -> StreamTestServer {
    var options = TLSOptions()
    options.applicationProtocols = protocols
    return try StreamTestServer(.tls(.localhost, options)) { connection in
      if connection.applicationProtocol == "h2" {
        let http2 = try HTTP2TestConnection(connection)
        try http2.respond(200, on: http2.request())
      } else {
        _ = try connection.readHead()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
      try connection.pass(gate)
      connection.closeWriting()
      connection.reset()
    }
  }

  private static func breakConnection(_ server: StreamTestServer, _ gate: Gate) async {
    #expect(await ProcessFacts.eventually { ProcessFacts.engineThreadCount == 0 }, "the loop has a thread")
    gate.open()
    #expect(await ProcessFacts.eventually { server.openConnectionCount == 0 }, "the connection is open")
  }

  @Test("A client that is released does not end the process", arguments: ["h2", "http/1.1"])
  func release(name: String) async {
    await #expect(processExitsWith: .success) { [name = name as String] in
      let gate = Gate()
      let server = try Self.server([name], gate)
      let url = "https://localhost:\(server.port)/"
      var client: Client? = Client(lingering: .zero)
      #expect(try await client?.get(url).status == 200)
      await Self.breakConnection(server, gate)
      client = nil
    }
  }

  @Test("A loop on the thread of a caller does not end the process", arguments: ["h2", "http/1.1"])
  func borrowedThread(name: String) async {
    await #expect(processExitsWith: .success) { [name = name as String] in
      let gate = Gate()
      let server = try Self.server([name], gate)
      let url = "https://localhost:\(server.port)/"
      let client = Client(lingering: .zero, mayStartThread: { false })
      #expect(try await client.get(url).status == 200)
      await Self.breakConnection(server, gate)
      #expect(try await client.get(url).status == 200)
      #expect(server.connectionCount == 2)
    }
  }
}
