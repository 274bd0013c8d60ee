import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The bodies of redirects over HTTP/1.1. They are neither read to their end nor looked at.
@Suite("Bodies of redirects", .timeLimit(.minutes(5)))
struct RedirectBodyTests {
  /// A redirect to `/next`, and whether its connection is used for the next request.
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let keepsConnection: Bool
    let write: @Sendable (StreamTestConnection) throws -> Void

    init(
      _ name: String, keepsConnection: Bool = false,
      _ write: @escaping @Sendable (StreamTestConnection) throws -> Void
    ) {
      testDescription = name
      self.keepsConnection = keepsConnection
      self.write = write
    }

    /// Makes a row with these fields and this body, after which the server waits.
    init(
      _ name: String, keepsConnection: Bool = false, _ fields: String..., body: [UInt8] = [],
      stalls: Bool = false
    ) {
      self.init(name, keepsConnection: keepsConnection) { connection in
        try connection.write(RedirectBodyTests.head(fields))
        try connection.write(body)
        if stalls { try connection.stall() }
      }
    }
  }

  private static func head(_ fields: [String], version: String = "HTTP/1.1", status: Int = 302) -> String {
    ([version + " \(status) Found", "Location: /next"] + fields).joined(separator: "\r\n") + "\r\n\r\n"
  }

  private static let block = [UInt8](repeating: 0x61, count: 16_384)
  private static let gzipped = "Content-Encoding: gzip"

  private static func chunk(_ bytes: [UInt8]) -> [UInt8] {
    Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + [0x0D, 0x0A]
  }

  static let rows: [Row] = [
    Row("none", keepsConnection: true, "Content-Length: 0"),
    Row("short", keepsConnection: true, "Content-Length: 5", body: Array("moved".utf8)),
    Row(
      "64 KiB", keepsConnection: true, "Content-Length: 65536", body: [UInt8](repeating: 0x61, count: 65_536)),
    Row("64 KiB and a byte, never sent", "Content-Length: 65537", stalls: true),
    Row(
      "short chunks", keepsConnection: true, "Transfer-Encoding: chunked",
      body: chunk([1, 2]) + chunk([3]) + Array("0\r\nX-Trailer: 1\r\n\r\n".utf8)),
    Row("300 MB of known length") { connection in
      try connection.write(head(["Content-Length: 314572800"]))
      try connection.writeForever(block)
    },
    Row("endless chunks") { connection in
      try connection.write(head(["Transfer-Encoding: chunked"]))
      try connection.writeForever(chunk(block))
    },
    Row("endless without length") { connection in
      try connection.write(head([]))
      try connection.writeForever(block)
    },
    Row("a length without a body", "Content-Length: 10", stalls: true),
    Row("a body that stops", "Content-Length: 10", body: [1, 2, 3], stalls: true),
    Row("a chunk that stops", "Transfer-Encoding: chunked", body: Array("5\r\nab".utf8), stalls: true),
    Row("reset after the head") { connection in
      try connection.write(head(["Content-Length: 10"]))
      connection.reset()
      throw RawServer.Close()
    },
    Row("closed within the body") { connection in
      try connection.write(head(["Content-Length: 10"]) + "abc")
      throw RawServer.Close()
    },
    Row("closed before the last chunk") { connection in
      try connection.write(head(["Transfer-Encoding: chunked"]) + "3\r\nabc\r\n")
      throw RawServer.Close()
    },
    Row("gzip that is none", keepsConnection: true, gzipped, "Content-Length: 5", body: Array("plain".utf8)),
    Row(
      "half of a gzip", keepsConnection: true, gzipped, "Content-Length: 12",
      body: [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0x48]),
    Row(
      "six codings", keepsConnection: true, "Content-Encoding: gzip, gzip, gzip, gzip, gzip, gzip",
      "Content-Length: 5", body: Array("plain".utf8)),
    Row("a chunk size that is none", "Transfer-Encoding: chunked", body: Array("x\r\n".utf8), stalls: true),
    Row(
      "a trailer that is none", "Transfer-Encoding: chunked", body: Array("0\r\nno colon\r\n\r\n".utf8),
      stalls: true),
    Row(
      "the end of the connection", "Connection: close", "Content-Length: 3", body: [1, 2, 3], stalls: true),
    Row("HTTP/1.0") { connection in
      try connection.write(head(["Content-Length: 3"], version: "HTTP/1.0") + "abc")
      throw RawServer.Close()
    },
  ]

  private static func server(_ row: Row) throws -> StreamTestServer {
    try RawServer.start { request, connection in
      if request.target == "/next" { return try connection.respond("200 OK", [], "arrived") }
      try row.write(connection)
    }
  }

  private static func url(_ server: StreamTestServer) -> String { "http://127.0.0.1:\(server.port)/" }

  @Test("The next request is sent whatever body a redirect has", arguments: rows)
  func data(row: Row) async throws {
    let server = try Self.server(row)
    let monitor = EventSpy()
    for session in [Session.real(), Session.real(eventMonitors: [monitor])] {
      let before = server.connectionCount
      let response = await session.request(Self.url(server)).end()
      #expect(response.value == Data("arrived".utf8), "\(String(describing: response.error))")
      #expect(server.connectionCount - before == (row.keepsConnection ? 1 : 2))
      let hops = response.metrics?.transactionMetrics ?? []
      #expect(hops.count == 2)
      #expect(hops.first?.countOfResponseBodyBytesReceived ?? .max <= 65_536 + 524_288)
      #expect(hops.last?.isReusedConnection == row.keepsConnection)
    }
  }

  @Test("A download and a stream take no byte of a redirect", arguments: rows)
  func sinks(row: Row) async throws {
    let server = try Self.server(row)
    let session = Session.real()
    let download = await session.download(Self.url(server)).serializingData().response
    #expect(download.value == Data("arrived".utf8), "\(String(describing: download.error))")
    download.removeFile()
    var streamed = Data()
    let stream = session.streamRequest(Self.url(server)).streamTask()
    for await event in stream.streamingData() { streamed += event.value ?? Data() }
    #expect(streamed == Data("arrived".utf8))
    // The stream begins on the last connection of the download.
    #expect(server.connectionCount == (row.keepsConnection ? 1 : 3))
  }

  @Test("The limit of bodies is separate from the limit of redirects") func limits() async throws {
    let server = try Self.server(
      Row("ten bytes", keepsConnection: true, "Content-Length: 10", body: Array("0123456789".utf8)))
    var options = TransportOptions()
    options.bodySizeLimit = 7
    let response = await Session.real(options: options).request(Self.url(server)).end()
    #expect(response.value == Data("arrived".utf8))
  }

  @Test("Requests that share a transfer do not wait for the body of a redirect") func shared() async throws {
    let server = try Self.server(Self.rows.first { $0.testDescription == "endless chunks" } ?? Self.rows[0])
    var options = TransportOptions()
    options.sharesIdenticalRequests = true
    let session = Session.real(options: options)
    let requests = (0..<3).map { _ in session.request(Self.url(server)) }
    for request in requests { #expect(await request.end().value == Data("arrived".utf8)) }
  }

  @Test("A redirect before the end of an upload is followed at once", arguments: [303, 307])
  func earlyRedirect(status: Int) async throws {
    let server = try RawServer.start { request, connection in
      if request.target == "/next" {
        let length = request.field("Content-Length").flatMap { Int($0) } ?? 0
        if length > 0 { _ = try connection.readExactly(length) }
        return try connection.respond("200 OK", [], "\(length)")
      }
      // The rest of the body is never read.
      try connection.write(Self.head(["Content-Length: 0"], status: status))
      try connection.stall()
    }
    let body = Data(count: 20_000_000)
    let response = await Session.real().upload(body, to: Self.url(server)).end()
    #expect(
      response.value == Data((status == 303 ? "0" : "20000000").utf8), "\(String(describing: response.error))"
    )
    #expect(server.connectionCount == 2)
  }

  @Test("A handler that declines a redirect waits for no body", arguments: [false, true])
  func declined(isDownload: Bool) async throws {
    let server = try Self.server(
      Self.rows.first { $0.testDescription == "endless without length" } ?? Self.rows[0])
    let session = Session.real()
    if isDownload {
      let response = await session.download(Self.url(server)).redirect(using: .doNotFollow)
        .serializingData(emptyResponseCodes: [302]).response
      #expect(response.response?.statusCode == 302)
      #expect(response.value?.isEmpty == true, "\(String(describing: response.error))")
      response.removeFile()
    } else {
      let response = await session.request(Self.url(server)).redirect(using: .doNotFollow).end()
      #expect(response.response?.statusCode == 302 && response.data == nil)
      #expect(response.error == nil)
    }
  }

  @Test("A refused redirect fails without its body", arguments: ["ftp://a.example/", "http:///x"])
  func refused(location: String) async throws {
    let server = try RawServer.start { _, connection in
      try connection.write("HTTP/1.1 302 Found\r\nLocation: \(location)\r\n\r\n")
      try connection.writeForever(Self.block)
    }
    let response = await Session.real().request(Self.url(server)).end()
    #expect(response.error != nil && response.response?.statusCode == 302)
  }

  @Test("A 3xx that leads nowhere has its body", arguments: ["", "Location:\r\n", "Location:  \r\n"])
  func noLocation(field: String) async throws {
    let server = try RawServer.start { _, connection in
      try connection.write("HTTP/1.1 302 Found\r\n\(field)Content-Length: 4\r\n\r\nbody")
    }
    let session = Session.real()
    #expect(await session.request(Self.url(server)).end().value == Data("body".utf8))
    let download = await session.download(Self.url(server)).serializingData().response
    #expect(download.value == Data("body".utf8), "\(String(describing: download.error))")
    download.removeFile()
  }

  @Test("Cookies of a redirect are stored whatever its body") func cookies() async throws {
    let server = try RawServer.start { request, connection in
      if request.target == "/next" {
        return try connection.respond("200 OK", [], request.field("Cookie") ?? "none")
      }
      try connection.write(Self.head(["Set-Cookie: a=1", "Content-Length: 99999999"]))
      try connection.stall()
    }
    let response = await Session.real(configuration: .isolated).request(Self.url(server)).end()
    #expect(response.value == Data("a=1".utf8))
  }

  @Test("A stored redirect without its body is followed from the cache") func cache() async throws {
    let server = try RawServer.start { request, connection in
      if request.target == "/next" {
        return try connection.respond("200 OK", ["Cache-Control: no-store"], "arrived")
      }
      try connection.write(
        Self.head(["Cache-Control: max-age=1000", "Content-Length: 1000000"], status: 301))
      try connection.stall()
    }
    let session = Session.real(
      configuration: .cached(by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)))
    for _ in 0..<2 { #expect(await session.request(Self.url(server)).end().value == Data("arrived".utf8)) }
    #expect(server.connectionCount == 2)
  }

  @Test("A WebSocket handshake follows a redirect whatever its body", arguments: rows)
  func webSocket(row: Row) async throws {
    let endpoint = WebSocketEndpoint { connection in
      try connection.close()
      try connection.drain()
    }
    let target = try HTTPTestServer.webSocket(.none, endpoint)
    let server = try RawServer.start { request, connection in
      if request.target == "/next" {
        return try connection.respond("307 Temporary Redirect", ["Location: \(target.socketURL())"])
      }
      try row.write(connection)
    }
    let socket = Session.forSockets().webSocketRequest(to: "ws://127.0.0.1:\(server.port)/")
    #expect(await socket.events() == [.connected(nil), .disconnected(1000, nil), .completed(nil)])
  }
}
