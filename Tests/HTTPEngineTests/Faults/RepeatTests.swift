import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Requests that lose their connection before a response (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
@Suite(.timeLimit(.minutes(5))) struct RepeatTests {
  enum Content: CaseIterable {
    case copied, read, streamed

    var body: RequestBody {
      switch self {
      case .copied: .bytes(Data("0123456789".utf8))
      case .read: .bytes(Data(repeating: 0x61, count: 40_000))
      case .streamed: .source(PatternSource(length: 40_000))
      }
    }
  }

  @Test("A POST that the server read is not sent again", arguments: [false, true], Content.allCases)
  func postThatWasRead(isTLS: Bool, content: Content) async throws {
    let server = try ClosingServer(isTLS ? .tls(.localhost) : .none)
    let client = Client()
    #expect(try await client.get(server.url(isTLS: isTLS)).status == 200)
    let request = try client.request(server.url(isTLS: isTLS), "POST", body: content.body)
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .connectionLost)
    #expect(failure.message.contains("may have processed"), "\(failure.message)")
    #expect(server.methods == ["GET", "POST"])
  }

  @Test("Parallel POSTs on reused connections are sent once each") func parallelPosts() async throws {
    let server = try ClosingServer(.none)
    let client = Client(connectionsPerHost: 10)
    let gate = Gate()
    server.holdResponses(until: gate)
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<10 { group.addTask { try await client.get(server.url(isTLS: false)).status } }
      await gate.waitForArrival(count: 10)
      gate.open()
      for try await status in group { #expect(status == 200) }
    }
    let failures = try await withThrowingTaskGroup(of: TransportFailure.FailureKind.self) { group in
      for _ in 0..<10 {
        group.addTask {
          let request = try client.request(server.url(isTLS: false), "POST", body: Content.copied.body)
          return try await client.failure(of: request).kind
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(failures == Array(repeating: .connectionLost, count: 10))
    #expect(server.methods.filter { $0 == "POST" }.count == 10)
  }

  @Test("An idempotent request is repeated once", arguments: ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
  func idempotentRequest(method: String) async throws {
    let server = try ClosingServer(.none)
    let client = Client()
    #expect(try await client.get(server.url(isTLS: false)).status == 200)
    server.closeAll()
    let request = try client.request(server.url(isTLS: false), method)
    #expect(try await client.failure(of: request).kind == .connectionLost)
    #expect(server.methods == ["GET", method, method])
  }

  @Test("An idempotent request on a new connection is not repeated") func newConnection() async throws {
    let server = try ClosingServer(.none)
    server.closeAll()
    let client = Client()
    #expect(try await client.failure(of: client.request(server.url(isTLS: false))).kind == .connectionLost)
    #expect(server.methods == ["GET"])
  }

  @Test(
    "A request is not repeated after the response has begun",
    arguments: [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbo",
      "HTTP/1.1 200 OK\r\nConte", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early\r\n\r\n",
    ], [false, true])
  func begunResponse(answer: String, isTLS: Bool) async throws {
    let server = try ClosingServer(isTLS ? .tls(.localhost) : .none)
    let client = Client()
    #expect(try await client.get(server.url(isTLS: isTLS)).status == 200)
    server.answerPartially(answer)
    let failure = try await client.failure(of: client.request(server.url(isTLS: isTLS)))
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(server.methods == ["GET", "GET"])
  }

  @Test("A POST is not repeated if its response breaks off") func brokenPost() async throws {
    let server = try ClosingServer(.none)
    server.answerPartially("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbo")
    let client = Client()
    let failure = try await client.failure(of: client.request(server.url(isTLS: false), "POST"))
    #expect(failure.kind == .connectionLost)
    #expect(!failure.message.contains("may have processed"), "\(failure.message)")
    #expect(failure.partial?.body == Data("bo".utf8))
  }

  /// Checks that a repeated request uses no other pooled connection, because these may also have ended.
  @Test("A repeated request gets a new connection") func ownConnection() async throws {
    let gate = Gate()
    let server = try StreamTestServer { connection in
      _ = try connection.readRequest()
      try connection.pass(gate)
      try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      _ = try connection.readRequest()
    }
    let client = Client(connectionsPerHost: 3)
    let url = "http://localhost:\(server.port)/"
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<3 { group.addTask { try await client.get(url).status } }
      await gate.waitForArrival(count: 3)
      gate.open()
      for try await status in group { #expect(status == 200) }
    }
    #expect(try await client.get(url).status == 200)
    #expect(server.connectionCount == 4)
  }

  @Test("A repeated upload is sent completely from its start") func upload() async throws {
    let server = try ClosingServer(.none)
    let client = Client()
    #expect(try await client.get(server.url(isTLS: false)).status == 200)
    server.closeOnce()
    let source = PatternSource(length: 40_000)
    let response = try await client.send(
      client.request(server.url(isTLS: false), "PUT", body: .source(source)))
    #expect(response.status == 200)
    #expect(server.methods == ["GET", "PUT", "PUT"])
    #expect(server.lastBody == PatternSource.bytes(40_000))
  }

  @Test("A stream that can be read once is not repeated") func stream() async throws {
    let server = try ClosingServer(.none)
    let client = Client()
    #expect(try await client.get(server.url(isTLS: false)).status == 200)
    server.closeOnce()
    let body = RequestBody.source(PatternSource(length: 40_000, isRepeatable: false))
    let failure = try await client.failure(of: client.request(server.url(isTLS: false), "PUT", body: body))
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(server.methods == ["GET", "PUT"])
  }
}

/// A source of bytes that count up.
final class PatternSource: BodySource {
  let length: Int64
  let isRepeatable: Bool
  private let position = Mutex(0)

  init(length: Int64, isRepeatable: Bool = true) {
    self.length = length
    self.isRepeatable = isRepeatable
  }

  static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 / 7) } }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    position.withLock { $0 = 0 }
    return nil
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    position.withLock { position in
      let count = min(room.count, Int(length) - position)
      guard count > 0 else { return .end }
      for offset in 0..<count { room[offset] = UInt8(truncatingIfNeeded: (position + offset) / 7) }
      position += count
      return .bytes(count)
    }
  }

  func stop() {}
}

/// Answers GET, and closes the connection without a response after it has read any other request.
final class ClosingServer: Sendable {
  private struct State {
    var methods: [String] = []
    var lastBody: [UInt8] = []
    var closesAll = false
    var closesOnce = false
    var closesNothing = false
    var partialAnswer: String?
    var gate: Gate?
  }

  private let state: Box
  private let server: StreamTestServer

  private final class Box: Sendable { let mutex = Mutex(State()) }

  init(_ security: HTTPTestServer.Security) throws {
    let state = Box()
    self.state = state
    server = try StreamTestServer(security) { connection in
      while true {
        let (method, body) = try connection.readRequest()
        let (gate, closes, partial) = state.mutex.withLock { state -> (Gate?, Bool, String?) in
          state.methods.append(method)
          state.lastBody = body
          let closes = state.closesAll || (!state.closesNothing && method != "GET")
          if state.closesOnce { (state.closesNothing, state.closesOnce) = (true, false) }
          return (state.gate, closes, state.partialAnswer)
        }
        if let partial { return try connection.write(partial) }
        if closes { return }
        if let gate { try connection.pass(gate) }
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      }
    }
  }

  func url(isTLS: Bool) -> String { "\(isTLS ? "https" : "http")://localhost:\(server.port)/" }
  var methods: [String] { state.mutex.withLock { $0.methods } }
  var lastBody: [UInt8] { state.mutex.withLock { $0.lastBody } }
  func closeAll() { state.mutex.withLock { $0.closesAll = true } }
  func closeOnce() { state.mutex.withLock { $0.closesOnce = true } }
  func answerPartially(_ text: String) { state.mutex.withLock { $0.partialAnswer = text } }
  func holdResponses(until gate: Gate) { state.mutex.withLock { $0.gate = gate } }
}

extension StreamTestConnection {
  /// Reads a request of HTTP/1.1: its method, and its body when it has a length or chunks.
  func readRequest() throws -> (method: String, body: [UInt8]) {
    let first = try line()
    guard let method = first.split(separator: " ").first else { throw CancellationError() }
    var length = 0
    var isChunked = false
    while case let field = try line(), !field.isEmpty {
      let lower = field.lowercased()
      if lower.hasPrefix("content-length:") {
        length = Int(lower.dropFirst(15).filter { $0 != " " }) ?? 0
      }
      if lower.hasPrefix("transfer-encoding:") { isChunked = true }
    }
    guard isChunked else { return (String(method), try readExactly(length)) }
    var body: [UInt8] = []
    while let size = Int(try line(), radix: 16) {
      body += try readExactly(size)
      _ = try line()
      if size == 0 { break }
    }
    return (String(method), body)
  }
}
