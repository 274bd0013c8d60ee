import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// URLs that a server names. What is sent is what the server wrote, and no escape is escaped again.
@Suite("URLs of servers", .timeLimit(.minutes(5)))
struct ServerURLTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let location: String
    /// The target of the next request.
    let target: String
    /// The URL that the caller sees, from its path on.
    let shown: String
    var testDescription: String { location }

    init(_ location: String, _ target: String? = nil, shown: String? = nil) {
      self.location = location
      self.target = target ?? location
      self.shown = shown ?? self.target
    }
  }

  static let rows: [Row] = [
    Row("/search?ids[]=1&q=a%20b", shown: "/search?ids%5B%5D=1&q=a%20b"),
    Row("/a%20b/[x]?y=%2F", shown: "/a%20b/%5Bx%5D?y=%2F"),
    Row("/[::1]%2F", shown: "/%5B::1%5D%2F"),
    Row("/?q=100%&r=%41", shown: "/?q=100%25&r=%41"),
    Row("/?a=%zz&b=%7e", shown: "/?a=%25zz&b=%7e"),
    Row("/?%", shown: "/?%25"),
    Row("/?q={a}&r=%2F", "/?q=%7Ba%7D&r=%2F"),
    Row("/?q=a b%20c", "/?q=a%20b%20c"),
    Row("/?u=\u{FC}&v=%C3%BC", "/?u=%C3%BC&v=%C3%BC"),
    Row("/?a^b|c`d=\"%41", "/?a%5Eb%7Cc%60d=%22%41"),
    Row("/?a?b/c:@!$&'()*+,;=-._~%20"),
    Row("/%5B%5d;p=1,2?%5b"),
    Row("/%25?%2520"),
    Row("/?next=http://b.example/?x[]=%2520", shown: "/?next=http://b.example/?x%5B%5D=%2520"),
  ]

  private static func server(_ row: Row) throws -> StreamTestServer {
    try RawServer.start { request, connection in
      guard request.target == "/start" else { return try connection.respond("200 OK", [], request.target) }
      try connection.respond("307 Temporary Redirect", ["Location: \(row.location)"])
    }
  }

  @Test("A redirect is sent as the server wrote it, and shown with its escapes", arguments: rows)
  func redirect(row: Row) async throws {
    let server = try Self.server(row)
    let base = "http://127.0.0.1:\(server.port)"
    let response = await Session.real().request("\(base)/start").end()
    #expect(response.data.map { String(decoding: $0, as: UTF8.self) } == row.target)
    #expect(response.response?.url?.absoluteString == base + row.shown)
    #expect(response.metrics?.transactionMetrics.last?.request.url?.absoluteString == base + row.shown)
  }

  @Test("A redirect whose location is not UTF-8 is sent with the server's bytes")
  func otherEncoding() async throws {
    let server = try HTTPTestServer(routes: .none)
    let start = Array("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /caf".utf8)
    server.enqueue(.raw(start + [0xE9] + Array("?q=%20\r\n\r\n".utf8)), .status(200))
    let response = await Session.real().request(server.url("/start")).end()
    #expect(response.response?.statusCode == 200)
    #expect(server.recordedRequests.map(\.target) == ["/start", "/caf%E9?q=%20"])
    #expect(response.response?.url?.absoluteString == server.url("/caf%E9?q=%20"))
  }

  @Test("A handler sees the escapes, and an unchanged URL is sent as the server wrote it", arguments: rows)
  func handler(row: Row) async throws {
    let server = try Self.server(row)
    let base = "http://127.0.0.1:\(server.port)"
    let proposed = Recorder<String?>()
    let spy = EventSpy()
    let request = Session.real(eventMonitors: [spy]).request("\(base)/start").redirect(
      using: .modify { _, request, _ in
        proposed.add(request.url?.absoluteString)
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Changed")
        return request
      })
    let response = await request.end()
    #expect(proposed.values == [base + row.shown])
    #expect(response.data.map { String(decoding: $0, as: UTF8.self) } == row.target)
    #expect(request.task?.currentRequest?.url?.absoluteString == base + row.shown)
  }

  @Test("The error after a redirect names its URL", arguments: rows)
  func failure(row: Row) async throws {
    let server = try RawServer.start { request, connection in
      guard request.target == "/start" else { throw RawServer.Close() }
      try connection.respond("307 Temporary Redirect", ["Location: \(row.location)", "Connection: close"])
      throw RawServer.Close()
    }
    let base = "http://127.0.0.1:\(server.port)"
    let response = await Session.real().request("\(base)/start").end()
    #expect((response.error?.underlyingError as? URLError)?.failingURL?.absoluteString == base + row.shown)
  }

  @Test("The challenge after a redirect names its URL", arguments: rows)
  func challenge(row: Row) async throws {
    let server = try RawServer.start { request, connection in
      if request.target == "/start" {
        return try connection.respond("307 Temporary Redirect", ["Location: \(row.location)"])
      }
      try connection.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""])
    }
    let base = "http://127.0.0.1:\(server.port)"
    let response = await Session.real().request("\(base)/start").end()
    #expect(response.response?.statusCode == 401)
    #expect(response.response?.url?.absoluteString == base + row.shown)
  }

  @Test("A redirected WebSocket handshake shows the escapes", arguments: rows)
  func webSocket(row: Row) async throws {
    let server = try RawServer.start { request, connection in
      guard request.target == "/start" else {
        return try connection.respond("400 Bad Request", [], request.target)
      }
      try connection.respond("307 Temporary Redirect", ["Location: \(row.location)"])
    }
    let base = "ws://127.0.0.1:\(server.port)"
    let socket = Session.forSockets().webSocketRequest(to: "\(base)/start")
    #expect(await socket.events() == [.completed(.badServerResponse)])
    #expect(socket.response?.url?.absoluteString == base + row.shown)
  }

  @Test("An upload continues at the URL that its server names")
  func upload() async throws {
    let targets = Recorder<String>()
    let server = try RawServer.start { request, connection in
      targets.add(request.target)
      let length = request.field("Content-Length").flatMap { Int($0) } ?? 0
      if length > 0 { _ = try connection.readExactly(length) }
      let isCreation = request.lines[0].hasPrefix("POST")
      let location = isCreation ? ["Location: /files/[1]?k=a%20b"] : []
      try connection.respond(
        isCreation ? "201 Created" : "204 No Content",
        ["Tus-Resumable: 1.0.0", "Upload-Offset: \(isCreation ? 0 : length)"] + location)
    }
    let response = await Session.real().upload(Data(count: 100), to: "http://127.0.0.1:\(server.port)/files")
      .resumable(UploadFixture.options(.tus)).response()
    #expect(response.error == nil)
    #expect(targets.values.last == "/files/%5B1%5D?k=a%20b", "\(targets.values)")
  }
}
