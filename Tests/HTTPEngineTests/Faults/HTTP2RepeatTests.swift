import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Scenarios
import Synchronization
import Testing

/// Requests over HTTP/2 that the server refuses, or that lose their connection (RFC 9113 §6.8, §8.7).
@Suite(.timeLimit(.minutes(5))) struct HTTP2RepeatTests {
  static let http2: HTTPTestServer.Security = {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    return .tls(.localhost, options)
  }()

  /// A step of the server for one request of a connection. Requests after the last step get a 200.
  enum Step: Sendable {
    case answer, refuse, close, goAway, goAwayBehind, goAwayAndClose, http11Required, resetAfterHead,
      failInternally
    case cutInHead
    case goAwayHTTP11
    /// A frame that an attacker changes into RST_STREAM with REFUSED_STREAM, or into GOAWAY.
    case forgedRefusal, forgedGoAway
  }

  /// Counts the requests that reached the server, and the complete bodies.
  final class Log: Sendable {
    let methods = Mutex<[String]>([])
    let bodies = Mutex<[[UInt8]]>([])
    func note(_ text: String) { methods.withLock { $0.append(text) } }
    var all: [String] { methods.withLock { $0 } }
  }

  static func server(_ steps: [[Step]], _ log: Log) throws -> StreamTestServer {
    let connections = Mutex(0)
    return try StreamTestServer(http2) { connection in
      let index = connections.withLock { count in
        count += 1
        return count - 1
      }
      guard connection.applicationProtocol == "h2" else { return try answerHTTP1(on: connection, log) }
      try answer(index < steps.count ? steps[index] : [], on: connection, log)
    }
  }

  private static func answerHTTP1(on connection: StreamTestConnection, _ log: Log) throws {
    while true {
      let (method, body) = try connection.readRequest()
      log.note("1.1 \(method)")
      log.bodies.withLock { $0.append(body) }
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
  }

  private static func answer(_ steps: [Step], on connection: StreamTestConnection, _ log: Log) throws {
    var rest = steps[...]
    let session = try HTTP2TestConnection(connection)
    var refused: Set<UInt32> = []
    while true {
      let step = rest.popFirst() ?? .answer
      if step == .refuse || step == .http11Required {
        // The refusal is sent before the body is complete.
        var frame = try session.next()
        while frame.kind != .headers { frame = try session.next() }
        log.note(step == .refuse ? "refused" : "1.1 required")
        refused.insert(frame.stream)
        try session.reset(frame.stream, step == .refuse ? .refusedStream : .http11Required)
        continue
      }
      let stream = try session.request(except: refused)
      log.note("request")
      guard try perform(step, stream, session, connection) else { return }
    }
  }

  /// Performs the step for a request. Returns false if the connection ends.
  private static func perform(
    _ step: Step, _ stream: UInt32, _ session: HTTP2TestConnection, _ connection: StreamTestConnection
  ) throws -> Bool {
    switch step {
    case .answer, .refuse, .http11Required: try session.respond(200, on: stream)
    case .close: return false
    case .goAway:
      try session.goAway(last: stream == 1 ? 0 : stream - 2)
      try connection.stall()
      return false
    case .goAwayHTTP11:
      try session.goAway(last: stream == 1 ? 0 : stream - 2, .http11Required)
      try connection.stall()
      return false
    case .goAwayBehind, .goAwayAndClose:
      // The request counts as processed.
      try session.goAway(last: stream)
      if step == .goAwayAndClose { return false }
      try session.reset(stream, .noError)
      try connection.stall()
      return false
    case .cutInHead:
      try session.write(.headers, stream: stream, payload: [0x88])
      return false
    case .forgedRefusal:
      connection.changeNextRecord([8: 0x08 ^ 0x03, 17: 0x01 ^ 0x07])
      try session.write(.windowUpdate, stream: stream, payload: [0, 0, 0, 1])
      try connection.stall()
      return false
    case .forgedGoAway:
      // PING becomes GOAWAY with last stream 0: the server processed none.
      connection.changeNextRecord([8: 0x06 ^ 0x07])
      try session.write(.ping, flags: 0x1, payload: [UInt8](repeating: 0, count: 8))
      try connection.stall()
      return false
    case .resetAfterHead:
      try session.respond(200, on: stream, endsStream: false)
      try session.reset(stream, .refusedStream)
    case .failInternally: try session.reset(stream, .internalError)
    }
    return true
  }

  @Test("A POST that the server read is not sent again") func postThatWasRead() async throws {
    let log = Log()
    let server = try Self.server([[.answer, .close]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).head.version == .http2)
    let failure = try await client.failure(of: client.request(url, "POST", body: .bytes(Data("body".utf8))))
    #expect(failure.kind == .connectionLost)
    #expect(failure.message.contains("may have processed"), "\(failure.message)")
    #expect(log.all == ["request", "request"])
  }

  @Test(
    "A refusal that is not authentic has no request sent again",
    arguments: [Step.forgedRefusal, .forgedGoAway])
  func forgedRefusals(step: Step) async throws {
    let log = Log()
    let server = try Self.server([[.answer, step]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    let failure = try await client.failure(of: client.request(url, "POST", body: .bytes(Data("body".utf8))))
    #expect(
      failure.message.contains("may have processed") || failure.kind == .secureConnectionFailed, "\(failure)")
    #expect(log.all == ["request", "request"])
  }

  @Test("A refused stream is sent again", arguments: [true, false], ["GET", "POST"])
  func refusedStream(isKept: Bool, method: String) async throws {
    let log = Log()
    let server = try Self.server([isKept ? [.answer, .refuse] : [.refuse]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    if isKept { #expect(try await client.get(url).status == 200) }
    let body = method == "POST" ? RequestBody.source(PatternSource(length: 30_000)) : .none
    #expect(try await client.send(client.request(url, method, body: body)).status == 200)
    #expect(log.all.filter { $0 == "refused" }.count == 1)
    #expect(log.all.filter { $0 == "request" }.count == (isKept ? 2 : 1))
    #expect(server.connectionCount <= 2, "the connection of the second attempt is not given up")
  }

  @Test("A stream that is refused repeatedly is sent again", arguments: ["GET", "POST"])
  func repeatedlyRefusedStream(method: String) async throws {
    let log = Log()
    let server = try Self.server([[.refuse, .refuse, .refuse], [.refuse, .refuse], [.refuse]], log)
    let client = Client()
    let response = try await client.send(client.request("https://localhost:\(server.port)/", method))
    #expect(response.status == 200)
    #expect(log.all == ["refused", "refused", "refused", "request"])
  }

  @Test("An upload that is refused halfway is sent again from its start") func refusedUpload() async throws {
    let refusals = Mutex(0)
    let sizes = Mutex<[Int]>([])
    let server = try StreamTestServer(Self.http2) { connection in
      let session = try HTTP2TestConnection(connection)
      var counts: [UInt32: Int] = [:]
      var refused: Set<UInt32> = []
      while true {
        let frame = try session.next()
        guard !refused.contains(frame.stream) else { continue }
        if frame.kind == .data, refusals.withLock({ $0 == 0 }) {
          refusals.withLock { $0 += 1 }
          refused.insert(frame.stream)
          try session.reset(frame.stream, .refusedStream)
          continue
        }
        if frame.kind == .data { counts[frame.stream, default: 0] += frame.payload.count }
        guard frame.endsStream else { continue }
        sizes.withLock { $0.append(counts[frame.stream] ?? 0) }
        try session.respond(200, on: frame.stream)
      }
    }
    let client = Client()
    let body = RequestBody.bytes(Data(repeating: 0x61, count: 40_000))
    let request = try client.request("https://localhost:\(server.port)/", "POST", body: body)
    #expect(try await client.send(request).status == 200)
    #expect(refusals.withLock { $0 } == 1 && sizes.withLock { $0 } == [40_000])
  }

  /// Checks that an earlier refusal does not count as evidence about a later attempt.
  @Test("A POST that is read after a refusal is not sent again") func postAfterRefusal() async throws {
    let log = Log()
    let server = try Self.server([[.refuse, .close], [.close]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    let failure = try await client.failure(of: client.request(url, "POST", body: .bytes(Data("body".utf8))))
    #expect(failure.kind == .connectionLost)
    #expect(failure.message.contains("may have processed"), "\(failure.message)")
    #expect(log.all == ["refused", "request"])
  }

  @Test("An idempotent request is sent again if its connection ends", arguments: ["GET", "PUT"])
  func idempotentRequest(method: String) async throws {
    let log = Log()
    let server = try Self.server([[.answer, .close]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    #expect(try await client.send(client.request(url, method)).status == 200)
    #expect(log.all == ["request", "request", "request"])
  }

  @Test(
    "The first request of a new connection that ends is not sent again",
    arguments: [Step.close, .cutInHead, .goAwayAndClose], ["GET", "PUT", "POST"])
  func newConnection(step: Step, method: String) async throws {
    let log = Log()
    let server = try Self.server([[step], [.answer]], log)
    let client = Client()
    let failure = try await client.failure(of: client.request("https://localhost:\(server.port)/", method))
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(log.all == ["request"])
  }

  @Test("A request above the last stream of GOAWAY is sent again", arguments: ["GET", "POST"], [1, 5])
  func goAway(method: String, times: Int) async throws {
    let log = Log()
    let steps = [[.answer, .goAway]] + Array(repeating: [Step.goAway], count: times - 1)
    let server = try Self.server(steps, log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    let body = method == "POST" ? RequestBody.source(PatternSource(length: 30_000)) : .none
    #expect(try await client.send(client.request(url, method, body: body)).status == 200)
    #expect(log.all.count == 2 + times)
  }

  @Test(
    "A request that the server may have processed is sent again once, if it is idempotent",
    arguments: [Step.goAwayBehind, .goAwayAndClose, .close, .cutInHead], ["GET", "PUT", "POST"])
  func unknownFate(step: Step, method: String) async throws {
    let log = Log()
    let server = try Self.server([[.answer, step], [step], [step], [step]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    let body = method == "GET" ? RequestBody.none : .bytes(Data("body".utf8))
    let failure = try await client.failure(of: client.request(url, method, body: body))
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(log.all.count <= (method == "POST" ? 2 : 3))
  }

  @Test("An upload that requires HTTP/1.1 is sent again from its start", arguments: [true, false])
  func http11Required(isKept: Bool) async throws {
    let log = Log()
    let server = try Self.server([isKept ? [.answer, .http11Required] : [.http11Required]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    if isKept { #expect(try await client.get(url).status == 200) }
    let source = PatternSource(length: 60_000)
    let response = try await client.send(client.request(url, "POST", body: .source(source)))
    #expect(response.status == 200 && response.head.version == .http1_1)
    #expect(log.bodies.withLock { $0 } == [PatternSource.bytes(60_000)])
  }

  @Test("A connection that ends with HTTP_1_1_REQUIRED is replaced by HTTP/1.1", arguments: ["GET", "POST"])
  func goAwayHTTP11(method: String) async throws {
    let log = Log()
    let server = try Self.server([[.goAwayHTTP11], [.goAwayHTTP11]], log)
    let client = Client()
    let body = method == "GET" ? RequestBody.none : .bytes(Data("body".utf8))
    let response = try await client.send(
      client.request("https://localhost:\(server.port)/", method, body: body))
    #expect(response.status == 200 && response.head.version == .http1_1)
    #expect(log.all == ["request", "1.1 \(method)"])
  }

  /// Serves HTTP/2 on the first connection, and HTTP/1.1 on later ones.
  @Test("A host that changes to HTTP/1.1 is served", .steps, arguments: ["GET", "POST"])
  func changeToHTTP11(method: String) async throws {
    let connections = Mutex(0)
    // A POST that is sent before the end of the connection is known would not be sent again.
    let isClosed = Moment()
    let server = try StreamTestServer { connection in
      let isFirst = connections.withLock { count in
        count += 1
        return count == 1
      }
      var options = TLSOptions()
      options.applicationProtocols = isFirst ? ["h2"] : ["http/1.1"]
      try connection.startTLS(.localhost, options)
      guard !isFirst else {
        let session = try HTTP2TestConnection(connection)
        try session.respond(200, on: session.request())
        connection.cutOff()
        isClosed.come()
        return
      }
      while true {
        _ = try connection.readRequest()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    step("request by HTTP/2")
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).head.version == .http2)
    await isClosed.wait()
    let body = method == "POST" ? RequestBody.source(PatternSource(length: 30_000)) : .none
    for number in 1...3 {
      step("request \(number) by HTTP/1.1")
      let response = try await client.send(client.request(url, method, body: body))
      #expect(response.head.version == .http1_1 && response.text == "ok")
    }
    #expect(server.connectionCount == 2 || server.connectionCount == 3)
  }

  @Test("A server that refuses without end ends the request") func endlessRefusals() async throws {
    let log = Log()
    let server = try Self.server(Array(repeating: Array(repeating: .refuse, count: 40), count: 40), log)
    let client = Client()
    let request = try client.request(
      "https://localhost:\(server.port)/", "POST", body: .bytes(Data("b".utf8)))
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(log.all.count <= 34)
  }

  @Test(
    "A stream that the server began to process is not sent again",
    arguments: [Step.resetAfterHead, .failInternally])
  func processedStream(step: Step) async throws {
    let log = Log()
    let server = try Self.server([[.answer, step]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    let failure = try await client.failure(of: client.request(url, "POST", body: .bytes(Data("body".utf8))))
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(log.all == ["request", "request"])
  }
}
