import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The bodies of answered and unanswered challenges.
@Suite("Bodies of challenges", .timeLimit(.minutes(5)))
struct ChallengeBodyTests {
  private static let asks = "WWW-Authenticate: Basic realm=\"r\""

  private static func url(_ server: StreamTestServer) -> String { "http://127.0.0.1:\(server.port)/" }

  /// Starts a server that asks for credentials with a head and a body, and accepts any.
  private static func server(
    _ fields: [String], _ body: @escaping @Sendable (StreamTestConnection) throws -> Void
  ) throws -> StreamTestServer {
    try RawServer.start { request, connection in
      guard request.field("Authorization") == nil else { return try connection.respond("200 OK", [], "in") }
      try connection.write(
        (["HTTP/1.1 401 Unauthorized", asks] + fields).joined(separator: "\r\n") + "\r\n\r\n")
      try body(connection)
    }
  }

  @Test("An answered challenge waits for no body", arguments: [false, true])
  func endless(isMonitored: Bool) async throws {
    let server = try Self.server([]) { try $0.writeForever([UInt8](repeating: 0x61, count: 16_384)) }
    let session = Session.real(eventMonitors: isMonitored ? [EventSpy()] : [])
    let response = await session.request(Self.url(server)).authenticate(username: "u", password: "p").end()
    #expect(response.value == Data("in".utf8), "\(String(describing: response.error))")
    #expect(server.connectionCount == 2)
  }

  @Test("An answered challenge cannot fail by its body") func broken() async throws {
    let server = try Self.server(["Content-Encoding: gzip", "Content-Length: 5"]) { try $0.write("plain") }
    let response = await Session.real().request(Self.url(server)).authenticate(username: "u", password: "p")
      .end()
    #expect(response.value == Data("in".utf8), "\(String(describing: response.error))")
    #expect(server.connectionCount == 1)
  }

  @Test("A download of a challenge without a body that ends is answered") func download() async throws {
    let server = try Self.server(["Content-Length: 10"]) { try $0.stall() }
    let response = await Session.real().download(Self.url(server)).authenticate(username: "u", password: "p")
      .serializingData().response
    #expect(response.value == Data("in".utf8), "\(String(describing: response.error))")
    response.removeFile()
  }

  @Test("A challenge without a credential has its body") func unanswered() async throws {
    let server = try Self.server(["Content-Length: 6"]) { try $0.write("denied") }
    let session = Session.real()
    #expect(await session.request(Self.url(server)).end().value == Data("denied".utf8))
    let download = await session.download(Self.url(server)).serializingData().response
    #expect(download.value == Data("denied".utf8))
    download.removeFile()
  }

  @Test("A refused credential has the body of its refusal") func refused() async throws {
    let server = try RawServer.start { request, connection in
      let text = request.field("Authorization") == nil ? "asked" : "denied"
      try connection.respond("401 Unauthorized", [Self.asks], text)
    }
    let response = await Session.real().request(Self.url(server)).authenticate(username: "u", password: "p")
      .end()
    #expect(response.value == Data("denied".utf8))
    #expect(response.response?.statusCode == 401)
  }

  @Test("One of two requests that share a challenge answers it, and the other has its body") func shared()
    async throws
  {
    let isJoined = Gate()
    let server = try RawServer.start { request, connection in
      guard request.field("Authorization") == nil else { return try connection.respond("200 OK", [], "in") }
      try connection.pass(isJoined)
      try connection.respond("401 Unauthorized", [Self.asks], "denied")
    }
    var options = TransportOptions()
    options.sharesIdenticalRequests = true
    let session = Session.real(options: options)
    let known = session.request(Self.url(server)).authenticate(username: "u", password: "p")
    let unknown = session.request(Self.url(server))
    async let first = known.end()
    async let second = unknown.end()
    #expect(await eventually { session.core.sharedTransfers.memberCount == 2 }, "both wait for one transfer")
    isJoined.open()
    #expect(await first.value == Data("in".utf8))
    #expect(await second.value == Data("denied".utf8))
  }
}
