import HTTPWire
import Testing

@Suite("Discarded bodies") struct DroppedBodyTests {
  private static func body(
    _ status: Int = 302, _ lines: [String] = [], version: String = "HTTP/1.1", method: String = "GET",
    isReusable: Bool = true, now: UInt64 = 1000
  ) throws -> DroppedBody {
    var assembly = ResponseAssembly()
    var head: ResponseHead?
    for line in ["\(version) \(status)"] + lines + [""] {
      let action = Array((line + "\r\n").utf8).withUnsafeBytes { assembly.lineReceived($0) }
      if case .deliver(let complete) = action { head = complete }
    }
    return DroppedBody(
      try #require(head), assembly.framing, method: method, isReusable: isReusable, now: now)
  }

  @Test(
    "A short body is read, and any other closes the connection",
    arguments: [
      (["Content-Length: 0"], DroppedBody.Decision.read), (["Content-Length: 65536"], .read),
      (["Content-Length: 65537"], .close), (["Content-Length: 9223372036854775807"], .close),
      (["Transfer-Encoding: chunked"], .read), ([], .close),
      (["Content-Length: 1", "Connection: close"], .close),
      (["Content-Length: 1", "Connection: keep-alive, Close"], .close),
      (["Content-Length: 1", "Connection: keep-alive"], .read),
    ])
  func heads(lines: [String], decision: DroppedBody.Decision) throws {
    #expect(try Self.body(302, lines).decision == decision, "\(lines)")
    #expect(try Self.body(401, lines).decision == decision, "\(lines)")
  }

  @Test("A response without a body keeps its connection whatever its length") func noBody() throws {
    let long = ["Content-Length: 1000000"]
    #expect(try Self.body(302, long, method: "HEAD").decision == .read)
    #expect(try Self.body(304, long).decision == .read)
    #expect(try Self.body(302, long, method: "POST").decision == .close)
  }

  @Test("A connection that cannot be reused is not read") func unusable() throws {
    let short = ["Content-Length: 1"]
    #expect(try Self.body(302, short, isReusable: false).decision == .close)
    #expect(try Self.body(302, short, version: "HTTP/1.0").decision == .close)
    #expect(try Self.body(302, short, version: "HTTP/2").decision == .read)
    #expect(try Self.body(302, [], version: "HTTP/2").decision == .read, "a stream has its own end")
    #expect(try Self.body(302, ["Content-Length: 65537"], version: "HTTP/2").decision == .close)
  }

  @Test("A body of unknown length is read up to the limit") func counting() throws {
    var body = try Self.body(302, ["Transfer-Encoding: chunked"])
    #expect(body.received(65_000) == .read)
    #expect(body.received(536) == .read)
    #expect(body.count == DroppedBody.longest)
    #expect(body.received(1) == .close)
    #expect(body.received(0) == .close, "the decision is final")
    #expect(body.received(.max) == .close && body.received(.max) == .close && body.count == .max)
  }

  @Test("The wait for a body ends a quarter of a second after its head") func deadline() throws {
    #expect(try Self.body().deadline == 250_001_000)
    #expect(try Self.body(now: .max - 1).deadline == .max)
  }
}
