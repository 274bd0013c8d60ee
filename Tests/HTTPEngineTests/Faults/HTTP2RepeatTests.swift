import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Requests over HTTP/2 that the server refuses or whose connection ends (RFC 9113 §6.8, §8.7).
@Suite(.timeLimit(.minutes(5))) struct HTTP2RepeatTests {
  static let http2: HTTPTestServer.Security = {
    var options = TLSOptions()
    options.applicationProtocols = ["h2", "http/1.1"]
    return .tls(.localhost, options)
  }()

  /// What a server does with the requests of a connection, in their order; later ones are answered by 200.
  enum Step: Sendable { case answer, refuse, close, goAway, http11Required, resetAfterHead, failInternally }

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
      var rest = (index < steps.count ? steps[index] : [])[...]
      guard connection.applicationProtocol == "h2" else {
        while true {
          let (method, body) = try connection.readRequest()
          log.note("1.1 \(method)")
          log.bodies.withLock { $0.append(body) }
          try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
      }
      let session = try HTTP2TestConnection(connection)
      var refused: Set<UInt32> = []
      while true {
        let step = rest.popFirst() ?? .answer
        if step == .refuse || step == .http11Required {
          // Before the body is complete.
          var frame = try session.next()
          while frame.kind != .headers { frame = try session.next() }
          log.note(step == .refuse ? "refused" : "1.1 required")
          refused.insert(frame.stream)
          try session.reset(frame.stream, step == .refuse ? .refusedStream : .http11Required)
          continue
        }
        let stream = try session.request(except: refused)
        log.note("request")
        switch step {
        case .answer, .refuse, .http11Required: try session.respond(200, on: stream)
        case .close: return
        case .goAway:
          try session.goAway(last: stream - 2)
          return try connection.stall()
        case .resetAfterHead:
          try session.respond(200, on: stream, endsStream: false)
          try session.reset(stream, .refusedStream)
        case .failInternally: try session.reset(stream, .internalError)
        }
      }
    }
  }

  @Test func aPOSTThatTheServerReadIsNotSentAgain() async throws {
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

  @Test(arguments: [true, false], ["GET", "POST"])
  func aRefusedStreamIsSentAgain(isKept: Bool, method: String) async throws {
    let log = Log()
    let server = try Self.server([isKept ? [.answer, .refuse] : [.refuse]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    if isKept { #expect(try await client.get(url).status == 200) }
    let body = method == "POST" ? RequestBody.source(PatternSource(length: 30_000)) : .none
    #expect(try await client.send(client.request(url, method, body: body)).status == 200)
    #expect(log.all.filter { $0 == "refused" }.count == 1)
    #expect(log.all.filter { $0 == "request" }.count == (isKept ? 2 : 1))
  }

  @Test func aGETAboveTheLastStreamOfGOAWAYIsSentAgain() async throws {
    let log = Log()
    let server = try Self.server([[.answer, .goAway]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    #expect(try await client.get(url).status == 200)
    #expect(log.all.count == 3)
  }

  /// Older versions of libcurl do not tell the end by GOAWAY from any other; then the request is not sent again.
  @Test func aPOSTAboveTheLastStreamOfGOAWAYIsSentAgainWhereThatIsKnown() async throws {
    let log = Log()
    let server = try Self.server([[.answer, .goAway]], log)
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).status == 200)
    do {
      let response = try await client.send(client.request(url, "POST", body: .bytes(Data("body".utf8))))
      #expect(response.status == 200 && log.all.count == 3)
    } catch let failure as TransportFailure {
      #expect(failure.kind == .connectionLost && log.all.count == 2, "\(failure.message)")
      #expect(failure.message.contains("may have processed"))
    }
  }

  @Test(arguments: [true, false])
  func anUploadThatNeedsHTTP1IsSentAgainFromItsStart(isKept: Bool) async throws {
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

  /// The handle of the first request may read HTTP/2 alone with libcurl 7.83 to 8.0, and is replaced.
  @Test(arguments: ["GET", "POST"])
  func aHostThatSpeaksHTTP1FromNowOnIsServed(method: String) async throws {
    let connections = Mutex(0)
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
        return
      }
      while true {
        _ = try connection.readRequest()
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
    let client = Client()
    let url = "https://localhost:\(server.port)/"
    #expect(try await client.get(url).head.version == .http2)
    let body = method == "POST" ? RequestBody.source(PatternSource(length: 30_000)) : .none
    for _ in 0..<3 {
      let response = try await client.send(client.request(url, method, body: body))
      #expect(response.head.version == .http1_1 && response.text == "ok")
    }
    #expect(server.connectionCount == 2 || server.connectionCount == 3)
  }

  @Test func aServerThatRefusesWithoutEndEndsTheRequest() async throws {
    let log = Log()
    let server = try Self.server(Array(repeating: [.refuse, .refuse, .refuse], count: 40), log)
    let client = Client()
    let request = try client.request(
      "https://localhost:\(server.port)/", "POST", body: .bytes(Data("b".utf8)))
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(log.all.count <= 34)
  }

  @Test(arguments: [Step.resetAfterHead, .failInternally])
  func aStreamThatTheServerBeganToProcessIsNotSentAgain(step: Step) async throws {
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
