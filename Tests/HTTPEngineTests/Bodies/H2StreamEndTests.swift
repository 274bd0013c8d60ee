import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// A body of HTTP/2 without `Content-Length` is complete at END_STREAM (RFC 9113 §8.1) and at no other end. Over TLS,
/// no request here has an idle timeout. The limit of the suite ends a request that hangs.
@Suite("Ends of HTTP/2 streams", .timeLimit(.minutes(3))) struct H2StreamEndTests {
  /// The fault instead of END_STREAM.
  enum Fault: CaseIterable {
    case reset
    case resetTwice
    case garbage
    case frameTooLarge
    case dataOnIdleStream
    case loneContinuation
    case brokenFieldBlock
    case fieldBlockWithoutEnd
    case trailersWithStatus
    case goAwayAndReset
    case errorAndCut

    /// Whether the fault ends the whole connection.
    var isOfConnection: Bool {
      switch self {
      case .reset, .resetTwice, .trailersWithStatus, .goAwayAndReset: false
      default: true
      }
    }

    /// The failure of the request.
    var kind: TransportFailure.FailureKind {
      switch self {
      case .reset, .resetTwice, .goAwayAndReset, .errorAndCut: return .connectionLost
      default: return .badServerResponse
      }
    }

    func send(on stream: UInt32, _ http2: HTTP2TestConnection, _ connection: StreamTestConnection) throws {
      switch self {
      case .reset: try http2.reset(stream, .noError)
      case .resetTwice:
        try http2.reset(stream, .noError)
        try http2.reset(stream, .streamClosed)
      case .garbage: try connection.write("HTTP/1.1 500 Internal Server Error\r\n\r\n")
      case .frameTooLarge: try http2.write(.data, stream: stream, payload: Content.bytes(20_000))
      case .dataOnIdleStream: try http2.send([1, 2, 3], on: stream + 1000, endsStream: true)
      case .loneContinuation: try http2.write(.continuation, flags: 0x4, stream: stream, payload: [0x88])
      case .brokenFieldBlock:
        try http2.write(.headers, flags: 0x5, stream: stream, payload: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
      case .fieldBlockWithoutEnd:
        try http2.write(.headers, flags: 0x1, stream: stream, payload: [])
        try http2.send([1], on: stream, endsStream: true)
      case .trailersWithStatus: try http2.sendTrailers([(":status", "200")], on: stream)
      case .goAwayAndReset:
        try http2.goAway(last: stream + 1000)
        try http2.reset(stream, .noError)
      case .errorAndCut:
        try http2.reset(stream, .internalError)
        try connection.cut()
      }
    }
  }

  private func url(_ server: StreamTestServer) -> String { "https://localhost:\(server.port)/" }

  @Test("A stream without END_STREAM is a failure", arguments: Fault.allCases, [0, 100, 40_000])
  func oneStream(fault: Fault, count: Int) async throws {
    let hasHead = Gate()
    let server = try HTTP2Server.start { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      if count > 0 { try http2.send(Content.bytes(count), on: stream, endsStream: false) }
      try connection.pass(hasHead)
      try fault.send(on: stream, http2, connection)
      connection.waitForEnd()
    }
    let client = Client()
    let watcher = Watcher(onHead: { _ in hasHead.open() })
    let failure = try await client.failure(of: client.request(url(server)), watcher: watcher)
    #expect(failure.kind == fault.kind, "\(failure.message)")
    #expect(failure.helps(host: "localhost"), "\(failure.message)")
  }

  @Test("A stream that breaks off in one segment with its head is a failure", arguments: Fault.allCases)
  func atOnce(fault: Fault) async throws {
    let server = try HTTP2Server.start { http2, connection in
      while true {
        let stream = try http2.request()
        try http2.respond(200, on: stream, endsStream: false)
        try http2.send(Content.bytes(1000), on: stream, endsStream: false)
        try fault.send(on: stream, http2, connection)
      }
    }
    let client = Client()
    for _ in 0..<5 {
      let failure = try await client.failure(of: url(server))
      #expect(failure.kind == fault.kind, "\(failure.message)")
    }
  }

  @Test(
    "Of several streams, those that the fault concerns fail", .steps, arguments: Fault.allCases,
    [100, 40_000])
  func severalStreams(fault: Fault, count: Int) async throws {
    let streamCount = 4
    let areShown = (0..<streamCount).map { _ in Gate() }
    let server = try HTTP2Server.start { http2, connection in
      // The first request alone shows that the connection can be shared.
      try http2.respond(200, on: http2.request())
      let streams = try (0..<streamCount).map { _ in try http2.request() }
      for stream in streams {
        try http2.respond(200, on: stream, endsStream: false)
        try http2.send(Content.bytes(count), on: stream, endsStream: false)
      }
      for gate in areShown { try connection.pass(gate) }
      try fault.send(on: streams[1], http2, connection)
      for stream in streams where stream != streams[1] { try http2.send([1], on: stream, endsStream: true) }
      connection.waitForEnd()
    }
    step("first request")
    let client = Client()
    #expect(try await client.get(url(server)).status == 200)
    step("streams, one of which has the fault")
    let results = try await withThrowingTaskGroup(of: Result<WireResponse, TransportFailure>.self) { group in
      for gate in areShown {
        let request = try client.request(url(server))
        group.addTask {
          do throws(TransportFailure) {
            return .success(
              try await client.transport.send(request, observer: Watcher(onHead: { _ in gate.open() })))
          } catch {
            return .failure(error)
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let bodies = results.compactMap { try? $0.get().bytes }
    #expect(bodies.allSatisfy { $0 == Content.bytes(count) + [1] })
    #expect(bodies.count == (fault.isOfConnection ? 0 : streamCount - 1))
    #expect(server.connectionCount == 1)
  }

  /// Sends a response and RST_STREAM in one record, so that both are read at once.
  @Test("A response that is reset in one record is a failure", arguments: [0, 2, 8], [0, 1000])
  func oneRecord(code: UInt8, count: Int) async throws {
    let counter = Counter()
    let server = try HTTP2Server.start { http2, connection in
      while true {
        counter.enter()
        let number = try withUnsafeBytes(of: http2.request().bigEndian) { Array($0) }
        var bytes = [0, 0, 1, 1, 4] + number + [0x88]
        if count > 0 {
          bytes += [0, UInt8(count >> 8), UInt8(count & 0xFF), 0, 0] + number + Content.bytes(count)
        }
        try connection.write(bytes + [0, 0, 4, 3, 0] + number + [0, 0, 0, code])
      }
    }
    let client = Client()
    for _ in 0..<5 {
      let failure = try await client.failure(of: url(server))
      #expect(failure.kind == .connectionLost, "\(failure.message)")
    }
    // A request that has got a part of a response is not sent again.
    #expect(counter.most <= 6)
  }

  @Test("A stream that is reset before its head is a failure, and is not sent again more than once")
  func withoutHead() async throws {
    let counter = Counter()
    let server = try HTTP2Server.start { http2, connection in
      for _ in 0..<10 {
        let stream = try http2.request()
        counter.enter()
        try http2.reset(stream, .noError)
      }
      connection.waitForEnd()
    }
    let client = Client()
    #expect(try await client.failure(of: url(server)).kind == .connectionLost)
    #expect(counter.most <= 2)
  }

  @Test("Garbage ends requests that have no response")
  func garbageBeforeTheHead() async throws {
    let server = try HTTP2Server.start { http2, connection in
      _ = try http2.request()
      try connection.write("HTTP/1.1 500 Internal Server Error\r\n\r\n")
      connection.waitForEnd()
    }
    let client = Client()
    let failure = try await client.failure(of: url(server))
    #expect(failure.kind == Fault.garbage.kind, "\(failure.message)")
    // A violation does not cause the request to be sent again.
    #expect(server.connectionCount <= 1)
  }

  @Test("Each fault ends its request without TLS, too", arguments: Fault.allCases, [0, 100, 40_000])
  func withoutTLS(fault: Fault, count: Int) async throws {
    let hasHead = Gate()
    let server = try HTTP2Server.startWithoutTLS { http2, connection in
      let stream = try http2.request()
      try http2.respond(200, on: stream, endsStream: false)
      if count > 0 { try http2.send(Content.bytes(count), on: stream, endsStream: false) }
      try connection.pass(hasHead)
      try fault.send(on: stream, http2, connection)
      connection.waitForEnd()
    }
    let client = Client { $0.httpVersions = .http2PriorKnowledge }
    let request = try client.request("http://localhost:\(server.port)/", idleTimeout: .seconds(10))
    do throws(TransportFailure) {
      let watcher = Watcher(onHead: { _ in hasHead.open() })
      let response = try await client.transport.send(request, observer: watcher)
      let body = response.body.map { Array($0) } ?? []
      #expect(Content.bytes(count).starts(with: body))
    } catch {
      #expect(error.kind == fault.kind, "\(error.message)")
    }
  }
}
