import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

/// Suspended exchanges on a connection of HTTP/2 in memory. The connection is read all the same.
@Suite("Suspended requests over HTTP/2", .timeLimit(.minutes(1)))
struct SuspendedStreamTests {
  /// A connection that has received the settings of its server, and a suspended exchange on its first stream.
  private struct Setup {
    let fixture: ConnectionFixture
    let watcher: Watcher
    let pipe = MemoryPipe()
    let connection: HTTP2Connection
    let exchange: Exchange
    let ending: ConnectionFixture.Ending

    init(
      _ fixture: ConnectionFixture, _ method: String = "GET", _ body: RequestBody = .none,
      fields: [HTTPHeader] = [], watcher: Watcher = Watcher()
    ) throws {
      self.fixture = fixture
      self.watcher = watcher
      connection = try fixture.http2(pipe)
      pipe.incoming = HTTP2TestConnection.bytes(of: .settings)
      (exchange, ending) = try fixture.exchange(method, body, fields: fields, observer: watcher)
      #expect(connection.start(exchange))
      fixture.core.exchanges.turn()
      #expect(exchange.phase == .running)
      fixture.core.exchanges.suspend(exchange)
    }

    func receive(
      _ status: Int, _ fields: [(String, String)] = [], on stream: UInt32 = 1, endsStream: Bool = true
    ) {
      pipe.incoming += HTTP2TestConnection.bytes(
        of: .headers, flags: endsStream ? 0x5 : 0x4, stream: stream,
        payload: SessionPeer.block([(":status", String(status))] + fields))
      connection.pipeIsReady()
    }

    func receiveContent(_ text: String, endsStream: Bool = true) {
      pipe.incoming += HTTP2TestConnection.bytes(
        of: .data, flags: endsStream ? 0x1 : 0, stream: 1, payload: Array(text.utf8))
      connection.pipeIsReady()
    }

    func resume() {
      fixture.core.exchanges.resume(exchange)
      fixture.core.exchanges.turn()
    }

    /// Whether the exchange has noticed nothing of a response.
    var isUntouched: Bool {
      watcher.heads.isEmpty && watcher.informationalHeads.isEmpty
        && watcher.counts.allSatisfy { $0.received == 0 }
        && exchange.head == nil && ending.outcome == nil
    }
  }

  private static let expect = [HTTPHeader(name: "Expect", value: "100-continue")]

  @Test("A suspended request receives its heads when it is resumed, and other streams go on")
  func heads() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      let (other, otherEnding) = try fixture.exchange(ticket: 2)
      #expect(setup.connection.start(other))
      fixture.core.exchanges.turn()
      setup.receive(103, endsStream: false)
      setup.receive(200, endsStream: false)
      setup.receiveContent("ok")
      #expect(setup.isUntouched, "a suspended request notices its response")
      #expect(setup.exchange.times.responseStart > 0, "a request with a response must not be repeated")
      setup.receive(204, on: 3)
      #expect(otherEnding.status == 204)
      setup.resume()
      #expect(setup.watcher.informationalHeads.map(\.status) == [103])
      #expect(setup.watcher.heads.map(\.status) == [200] && setup.ending.text == "ok")
    }
  }

  @Test("A discarded response of a suspended request counts when the request is resumed") func discarded()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, watcher: Watcher(disposition: .discard))
      // A body that is not read to its end.
      setup.receive(302, [("content-length", "1000000")], endsStream: false)
      #expect(setup.isUntouched && setup.exchange.expiry == .max)
      setup.resume()
      #expect(setup.ending.status == 302)
    }
  }

  @Test("A refusal stops the upload of a suspended request when it is resumed", arguments: [false, true])
  func refusedUpload(hasContent: Bool) async throws {
    try await ConnectionFixture.run { fixture in
      let source = RequestBody.source(ScriptedSource(.bytes([1]), .wait))
      let setup = try Setup(fixture, "POST", source)
      setup.receive(413, endsStream: !hasContent)
      if hasContent { setup.receiveContent("no") }
      #expect(setup.isUntouched)
      setup.resume()
      #expect(setup.ending.status == 413 && setup.ending.text == (hasContent ? "no" : ""))
      #expect(setup.watcher.heads.map(\.status) == [413])
    }
  }

  @Test("The response 100 to a suspended request lets its content go when it is resumed") func continues()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, "POST", .bytes(Data([7, 8, 9])), fields: Self.expect)
      setup.receive(100, endsStream: false)
      #expect(setup.isUntouched && setup.pipe.written.suffix(3) != [7, 8, 9])
      setup.resume()
      #expect(setup.pipe.written.suffix(3) == [7, 8, 9])
    }
  }

  @Test("A suspended request whose expectation fails is sent again when it is resumed")
  func failedExpectation() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture, "POST", .bytes(Data([7])), fields: Self.expect)
      setup.receive(417)
      #expect(setup.isUntouched && !setup.exchange.omitsExpect)
      setup.resume()
      #expect(setup.ending.outcome == nil && setup.watcher.heads.isEmpty && setup.exchange.omitsExpect)
    }
  }

  @Test("A connection that ends while a request is suspended is noticed after its head") func lostConnection()
    async throws
  {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      setup.receive(200, endsStream: false)
      setup.pipe.afterIncoming = .ended
      setup.receiveContent("part", endsStream: false)
      #expect(setup.isUntouched && setup.pipe.isClosed)
      setup.resume()
      #expect(setup.watcher.heads.map(\.status) == [200])
      #expect(setup.ending.failure?.kind == .connectionLost)
      #expect(setup.ending.failure?.partial?.body == Data("part".utf8))
    }
  }

  @Test("A suspended request that is cancelled does not see its head") func cancelled() async throws {
    try await ConnectionFixture.run { fixture in
      let setup = try Setup(fixture)
      setup.receive(200, endsStream: false)
      fixture.core.exchanges.abandon(setup.exchange, LoopExchanges.cancelled)
      #expect(setup.ending.failure?.kind == .cancelled && setup.watcher.heads.isEmpty)
      #expect(setup.ending.failure?.partial == nil)
    }
  }

  @Test("The heads that are kept for a suspended request have the limit of all heads") func limit()
    async throws
  {
    try await ConnectionFixture.run({ $0.headerSizeLimit = 100_000 }) { fixture in
      let setup = try Setup(fixture)
      let field = ("x", String(repeating: "v", count: 10_000))
      for _ in 0..<50 { setup.receive(103, [field], endsStream: false) }
      #expect(setup.isUntouched)
      setup.resume()
      #expect(setup.watcher.informationalHeads.count < 10, "more heads were kept than a response may have")
      #expect(setup.ending.failure?.kind == .dataLengthExceedsMaximum)
    }
  }
}
