import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@testable import HTTPEngine

/// The trailer fields of requests (RFC 9110 §6.5), on the wire.
@Suite("Trailers of requests on the wire", .timeLimit(.minutes(5))) struct RequestTrailerTests {
  /// The trailers of a request, and how often they were asked for. Each reply has the number of its call.
  private final class Trailers: Sendable {
    let calls = Mutex(0)
    let fields: [HTTPHeader]
    let names: [String]

    init(_ fields: [(String, String)] = [("X-End", "1")], names: [String] = []) {
      self.fields = fields.map { HTTPHeader(name: $0, value: $1) }
      self.names = names
    }

    var count: Int { calls.withLock { $0 } }

    var request: RequestTrailers {
      RequestTrailers(names: names) { [self] completion in
        let call = calls.withLock { calls in
          calls += 1
          return calls
        }
        // From another thread, as the code of a caller does.
        Task.detached { [fields] in
          completion(
            fields.map { HTTPHeader(name: $0.name, value: $0.value.replacing("#", with: "\(call)")) })
        }
      }
    }
  }

  private static let bytes = Content.bytes(100_000)

  /// Returns bodies of requests, with the bytes that they send.
  private static func bodies() -> [(name: String, body: RequestBody, bytes: [UInt8])] {
    [
      ("small data", .bytes(Data([1, 2, 3])), [1, 2, 3]), ("data", .bytes(Data(bytes)), bytes),
      ("no data", .bytes(Data()), []),
      ("a stream", .source(ScriptedSource(.bytes([4]), .bytes([5, 6]))), [4, 5, 6]),
      ("an empty stream", .source(ScriptedSource()), []),
      (
        "a source with a length", .source(ScriptedSource(.bytes([4, 5]), .bytes([6]), length: 3)), [4, 5, 6]
      ),
    ]
  }

  private func send(
    _ body: RequestBody, _ trailers: Trailers, to url: String, by client: Client, _ method: String = "PUT",
    fields: [HTTPHeader] = [], observer: (any WireObserver)? = nil
  ) throws -> WireRequest {
    try client.request(url, method, fields: fields, body: body).changing {
      $0.trailers = trailers.request
      $0.wireObserver = observer
    }
  }

  @Test("Trailers follow the last chunk over HTTP/1.1, and the connection is reused") func http1()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    for (name, body, bytes) in Self.bodies() {
      server.enqueue(.text("ok"))
      let trailers = Trailers(names: ["X-End"])
      let response = try await client.send(send(body, trailers, to: server.url("/"), by: client))
      #expect(response.text == "ok", "\(name)")
      let request = try #require(server.recordedRequests.last, "\(name)")
      #expect(request.isChunked && request.body == bytes && request.isBodyComplete, "\(name)")
      #expect(request.trailers == trailers.fields, "\(name)")
      #expect(request.header("Content-Length") == nil, "\(name)")
      #expect(request.headers(named: "Trailer") == ["X-End"], "\(name)")
      #expect(trailers.count == 1, "\(name)")
    }
    #expect(server.connectionCount == 1)
  }

  @Test("A request without fields in its trailers ends as usual") func noFields() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("ok"))
    let client = Client()
    let request = try send(.bytes(Data([1])), Trailers([]), to: server.url("/"), by: client)
    #expect(try await client.send(request).text == "ok")
    let received = try #require(server.recordedRequests.last)
    #expect(received.isChunked && received.body == [1] && received.trailers.isEmpty)
    #expect(received.header("Trailer") == nil)
  }

  /// A request as a server of HTTP/2 receives it.
  private struct Received: Sendable {
    var heads: [[HTTPHeader]] = []
    var content: [UInt8] = []
    /// The kind of the frame that ended the stream.
    var lastKind: HTTP2TestConnection.Kind?
  }

  private final class ReceivedRequests: Sendable {
    private let list = Mutex<[Received]>([])

    var count: Int { list.withLock { $0.count } }
    var last: Received? { list.withLock { $0.last } }
    func append(_ request: Received) { list.withLock { $0.append(request) } }
  }

  private func server(_ received: ReceivedRequests = ReceivedRequests()) throws -> StreamTestServer {
    try HTTP2Server.start { http2, _ in
      var decoder = HeaderDecoder()
      var current = Received()
      while true {
        let frame = try http2.next()
        switch frame.kind {
        case .headers: current.heads.append(try decoder.fields(of: frame))
        case .data: current.content += frame.payload
        default: break
        }
        guard frame.endsStream else { continue }
        current.lastKind = frame.kind
        received.append(current)
        current = Received()
        try http2.respond(200, on: frame.stream)
      }
    }
  }

  @Test("Trailers are HEADERS with END_STREAM over HTTP/2") func http2() async throws {
    let received = ReceivedRequests()
    let server = try server(received)
    let client = Client()
    for (name, body, bytes) in Self.bodies() {
      let trailers = Trailers([("X-End", "1"), ("Empty", "")], names: ["X-End", "Empty"])
      let url = "https://localhost:\(server.port)/"
      #expect(
        try await client.send(send(body, trailers, to: url, by: client)).status == 200, "\(name)")
      let request = try #require(received.last, "\(name)")
      try #require(request.heads.count == 2, "\(name)")
      #expect(request.heads[0].first { $0.name == "trailer" }?.value == "X-End, Empty", "\(name)")
      #expect(request.heads[1].map(\.name) == ["x-end", "empty"], "\(name)")
      #expect(request.heads[1].map(\.value) == ["1", ""], "\(name)")
      #expect(request.content == bytes && request.lastKind == .headers, "\(name)")
      #expect(trailers.count == 1, "\(name)")
    }
    #expect(server.connectionCount == 1)
  }

  @Test("A request without fields in its trailers ends with DATA over HTTP/2") func noFields2() async throws {
    let received = ReceivedRequests()
    let server = try server(received)
    let client = Client()
    let request = try send(
      .bytes(Data([1, 2])), Trailers([]), to: "https://localhost:\(server.port)/", by: client)
    #expect(try await client.send(request).status == 200)
    let last = try #require(received.last)
    #expect(last.heads.count == 1 && last.content == [1, 2] && last.lastKind == .data)
  }

  @Test(
    "Fields that must not be trailers end the request, which is not repeated",
    arguments: [("Content-Length", "1"), ("Set-Cookie", "a=b"), ("X-A", "b\r\nc: d"), ("", "1")],
    [false, true])
  func refused(field: (String, String), isHTTP2: Bool) async throws {
    let plain = try HTTPTestServer(routes: .none)
    let received = ReceivedRequests()
    let server2 = try server(received)
    let client = Client()
    // The used connection would allow a repetition.
    plain.enqueue(.text("first"), .text("second"))
    let url = isHTTP2 ? "https://localhost:\(server2.port)/" : plain.url("/")
    _ = try await client.get(url)
    let trailers = Trailers([field])
    let failure = try await client.failure(of: send(.bytes(Data([1])), trailers, to: url, by: client))
    #expect(failure.kind == .badURL, "\(failure.message)")
    #expect(field.0.isEmpty || failure.message.contains(field.0), "\(failure.message)")
    #expect(!failure.message.contains("c: d"), "values may be secret")
    #expect(trailers.count == 1)
    #expect(plain.requestCount <= 2 && received.count <= 1)
  }

  @Test(
    "An announced name that is refused ends the request before anything is sent", arguments: [false, true])
  func refusedName(isHTTP2: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client { $0.httpVersions = isHTTP2 ? .http2PriorKnowledge : .http1Only }
    let trailers = Trailers(names: ["Content-Type"])
    let failure = try await client.failure(
      of: send(.bytes(Data([1])), trailers, to: server.url("/"), by: client))
    #expect(failure.kind == .badURL && failure.message.contains("Content-Type"), "\(failure.message)")
    #expect(server.connectionCount == 0 && trailers.count == 0)
  }

  @Test("A body that fails has no trailers", arguments: [false, true]) func failingBody(isHTTP2: Bool)
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let server2 = try self.server()
    let client = Client()
    let source = ScriptedSource(.bytes([1]), .failure(TransportFailure(.cannotReadBody, "The disk is gone.")))
    let trailers = Trailers()
    let url = isHTTP2 ? "https://localhost:\(server2.port)/" : server.url("/")
    let failure = try await client.failure(of: send(.source(source), trailers, to: url, by: client))
    #expect(failure.kind == .cannotReadBody, "\(failure.message)")
    #expect(trailers.count == 0)
  }

  @Test("A repeated request asks for its trailers again") func repetition() async throws {
    let server = try HTTPTestServer(routes: .none)
    // The connection ends without a response once the first request was read.
    server.enqueue(.text("first"), .raw([]), .text("second"))
    let client = Client()
    #expect(try await client.get(server.url("/")).text == "first")
    let trailers = Trailers([("X-Call", "#")])
    let request = try send(.bytes(Data(Self.bytes)), trailers, to: server.url("/"), by: client)
    #expect(try await client.send(request).text == "second")
    #expect(trailers.count == 2)
    #expect(server.recordedRequests.suffix(2).map { $0.trailers.first?.value } == ["1", "2"])
    #expect(server.recordedRequests.last?.body == Self.bytes)
  }

  @Test("An early refusal stops the body before its trailers", arguments: [false, true])
  func earlyResponse(isHTTP2: Bool) async throws {
    let plain = try StreamTestServer { connection in
      while !(try connection.read(atMost: 65_536)).elements(contain: "\r\n\r\n") {}
      try connection.write("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
      connection.waitForEnd()
    }
    let server2 = try HTTP2Server.start { http2, connection in
      var frame = try http2.next()
      while frame.kind != .headers { frame = try http2.next() }
      try http2.respond(413, on: frame.stream, endsStream: false)
      try http2.send(Array("no".utf8), on: frame.stream, endsStream: true)
      connection.waitForEnd()
    }
    let client = Client()
    let trailers = Trailers()
    let source = ScriptedSource(.bytes([1]), .wait)
    let url = isHTTP2 ? "https://localhost:\(server2.port)/" : "http://127.0.0.1:\(plain.port)/"
    let response = try await client.send(send(.source(source), trailers, to: url, by: client))
    #expect(response.status == 413 && response.text == "no" && trailers.count == 0)
  }

  @Test("Trailers are shown to the observer of the bytes, in both directions", arguments: [false, true])
  func observed(isHTTP2: Bool) async throws {
    let plain = try HTTPTestServer(routes: .none)
    plain.enqueue(.parts("ok").with(trailers: [HTTPHeader(name: "x-received", value: "2")]))
    let server2 = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      try http2.sendTrailers([("x-received", "2")], on: stream)
      connection.waitForEnd()
    }
    let client = Client()
    let observer = HeadRecorder()
    let url = isHTTP2 ? "https://localhost:\(server2.port)/" : plain.url("/")
    let request = try send(
      .bytes(Data([1])), Trailers([("x-sent", "1")]), to: url, by: client, observer: observer)
    #expect(try await client.send(request).status == 200)
    #expect(observer.text(.requestHead).hasSuffix("\r\n\r\nx-sent: 1\r\n\r\n"))
    #expect(observer.text(.responseHead).hasSuffix("\r\n\r\nx-received: 2\r\n\r\n"))
  }

  @Test("A request that is cancelled while its trailers are computed ends at once") func cancelled()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    let isAsked = Moment()
    let url = server.url("/")
    let request = try client.request(url, "PUT", body: .bytes(Data([1]))).changing {
      $0.trailers = RequestTrailers(names: []) { _ in isAsked.come() }
    }
    let task = Task { try await client.failure(of: request) }
    await isAsked.wait()
    task.cancel()
    #expect(try await task.value.kind == .cancelled)
  }
}

/// Records the heads that it receives.
private final class HeadRecorder: WireObserver {
  private let parts = Mutex<[WirePart: [UInt8]]>([:])

  func bytesMoved(_ part: WirePart, _ bytes: UnsafeRawBufferPointer) {
    let copy = Array(bytes)
    parts.withLock { $0[part, default: []] += copy }
  }

  func wireEnded() {}

  func text(_ part: WirePart) -> String {
    String(decoding: parts.withLock { $0[part] ?? [] }, as: UTF8.self)
  }
}

extension [UInt8] {
  /// Whether the bytes of a text are among them.
  fileprivate func elements(contain text: String) -> Bool {
    String(decoding: self, as: UTF8.self).contains(text)
  }
}
