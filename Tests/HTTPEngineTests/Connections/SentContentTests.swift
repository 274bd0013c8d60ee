import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Uploads over HTTP/2 with content that waits in the output of their connection, which is in memory.
@Suite("Content of HTTP/2 that the system accepts late", .timeLimit(.minutes(5))) struct SentContentTests {
  private static let second: UInt64 = 1_000_000_000

  /// An upload on the first stream of a connection.
  private struct Upload {
    let pipe = MemoryPipe()
    let connection: HTTP2Connection
    let exchange: Exchange

    /// Begins an upload, of which the system accepts a part.
    ///
    /// - Parameters:
    ///   - size: The size of the content. The server's window has 65,535 bytes.
    ///   - room: The number of bytes that the system accepts.
    init(
      _ fixture: ConnectionFixture, size: Int = 60_000, room: Int, trailers: RequestTrailers? = nil,
      idleTimeout: Duration? = nil
    ) throws {
      connection = try fixture.http2(pipe)
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
      pipe.room = room
      exchange = try fixture.exchange(
        "POST", .bytes(Data(count: size)), trailers: trailers, idleTimeout: idleTimeout
      ).0
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      #expect(Int(exchange.count.sent) == min(size, 65_535), "content is missing in the output")
    }

    /// Lets the system accept more bytes.
    func accept(_ count: Int) {
      pipe.room = count
      connection.pipeIsReady()
    }
  }

  @Test(
    "A request is sent when the system has accepted its last byte, also of trailers",
    arguments: [nil, 1, 40_000] as [Int?])
  func lastByte(trailerSize: Int?) async throws {
    let trailers = trailerSize.map { size in
      RequestTrailers(names: []) { completion in
        completion([HTTPHeader(name: "X-End", value: String(repeating: "a", count: size))])
      }
    }
    try await ConnectionFixture.run { fixture in
      let size = try Upload(fixture, room: .max, trailers: trailers).pipe.written.count
      let upload = try Upload(fixture, room: size - 1, trailers: trailers)
      let exchange = upload.exchange
      #expect(upload.pipe.written.count == size - 1 && exchange.times.requestEnd == 0, "a byte waits")
      upload.accept(1)
      #expect(upload.pipe.written.count == size && exchange.times.requestStart > 0)
      #expect(exchange.times.requestEnd >= exchange.times.requestStart, "the metrics have no end")
    }
  }

  @Test("The limit of the first byte begins when the system has accepted the content") func firstByte()
    async throws
  {
    try await ConnectionFixture.run({ $0.timeLimits.firstByte = .seconds(2) }) { fixture in
      let upload = try Upload(fixture, room: 20_000)
      let exchange = upload.exchange
      fixture.core.state.now = Clock.now(plus: .seconds(3))
      let failure = exchange.timeout()
      #expect(failure == nil, "\(failure?.message ?? "")")
      upload.accept(.max)
      let expiry = exchange.phaseTimer?.expiry ?? 0
      #expect(expiry >= exchange.times.requestEnd + 2 * Self.second, "the response is awaited too briefly")
      fixture.core.state.now = Clock.now(plus: .seconds(3))
      #expect(exchange.timeout()?.phase == .firstByte)
    }
  }

  @Test(
    "Content that the system does not accept in time exceeds the limit of sending", arguments: [false, true])
  func requestSend(isAccepted: Bool) async throws {
    try await ConnectionFixture.run({ $0.timeLimits.requestSend = .seconds(2) }) { fixture in
      let upload = try Upload(fixture, room: isAccepted ? .max : 20_000)
      fixture.core.state.now = Clock.now(plus: .seconds(3))
      let failure = upload.exchange.timeout()
      let expected: PhaseTimer.Phase? = isAccepted ? nil : .requestSend
      #expect(failure?.phase == expected, "\(failure?.message ?? "no failure")")
      #expect(isAccepted || failure?.metrics?.values.requestEnd == -1, "its last byte was not sent")
    }
  }

  @Test("Each piece of the output that the system accepts is activity of its upload") func activity()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let upload = try Upload(fixture, room: 20_000, idleTimeout: .seconds(1))
      for count in [20_000, 10_000, Int.max] {
        fixture.core.state.now += 900_000_000
        upload.accept(count)
        let expiry = upload.exchange.expiry
        #expect(expiry == fixture.core.now + Self.second, "the host has just taken bytes")
      }
    }
  }

  @Test("An upload that waits for the window is not sent, and other requests are not its activity")
  func window() async throws {
    try await ConnectionFixture.run { fixture in
      let upload = try Upload(fixture, size: 100_000, room: .max, idleTimeout: .seconds(1))
      let expiry = upload.exchange.expiry
      let written = upload.pipe.written.count
      fixture.core.state.now += 500_000_000
      #expect(upload.connection.start(try fixture.exchange(ticket: 2).0))
      fixture.core.exchanges.turn()
      #expect(upload.pipe.written.count > written && upload.exchange.expiry == expiry)
      #expect(upload.exchange.times.requestEnd == 0, "34,465 bytes of it are left")
      for stream in [0, 1] as [UInt32] {
        upload.pipe.incoming += HTTP2TestConnection.bytes(
          of: .windowUpdate, stream: stream, payload: [0, 1, 0, 0])
      }
      upload.accept(.max)
      #expect(upload.exchange.count.sent == 100_000 && upload.exchange.times.requestEnd > 0)
    }
  }

  @Test("Bytes of an upload that leave first are neither the end nor activity of other requests")
  func besideUpload() async throws {
    try await ConnectionFixture.run { fixture in
      let pipe = MemoryPipe()
      let connection = try fixture.http2(pipe)
      // Windows of 16 megabytes.
      pipe.incoming =
        HTTP2TestConnection.bytes(of: .settings, payload: [0, 4, 1, 0, 0, 0])
        + HTTP2TestConnection.bytes(of: .windowUpdate, payload: [1, 0, 0, 0])
      let accept = { (count: Int) in
        fixture.core.state.now += 300_000_000
        pipe.room = count
        connection.pipeIsReady()
      }
      pipe.room = 1_000
      let (large, _) = try fixture.exchange("POST", .bytes(Data(count: 4 << 20)))
      #expect(connection.start(large))
      fixture.core.exchanges.turn()
      let (small, _) = try fixture.exchange("POST", .bytes(Data([7])), ticket: 2, idleTimeout: .seconds(1))
      let (plain, _) = try fixture.exchange(ticket: 3, idleTimeout: .seconds(1))
      #expect(connection.start(small) && connection.start(plain))
      fixture.core.exchanges.turn()
      // The output gets the two requests, behind more than 70,000 bytes of the upload.
      accept(60_000)
      #expect(small.count.sent == 1 && small.times.requestEnd == 0, "it is still in the output")
      let expiries = [small.expiry, plain.expiry]
      accept(20_000)
      #expect([small.expiry, plain.expiry] == expiries && small.times.requestEnd == 0)
      accept(300_000)
      #expect(small.times.requestEnd > 0 && plain.times.requestEnd > 0 && large.times.requestEnd == 0)
      let expiry = fixture.core.now + Self.second
      #expect([small.expiry, plain.expiry] == [expiry, expiry], "the host has just taken both requests")
    }
  }
}
