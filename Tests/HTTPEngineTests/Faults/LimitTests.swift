import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct LimitTests {
  @Test(arguments: [1000, 4 << 20])
  func aHeadThatIsLargerThanTheLimitIsRefused(bytes: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.garbageHead(.huge(bytes: bytes)), .text("next"))
    let client = Client { $0.headerSizeLimit = 500 }
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
    #expect(failure.helps())
    #expect(failure.message.contains("header"))
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test func aHeadThatIsLargerThanLibcurlTakesSaysSo() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.garbageHead(.huge(bytes: 1 << 20)))
    let failure = try await Client { $0.headerSizeLimit = 8 << 20 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum, "\(failure.message)")
    #expect(failure.message.contains("header"))
  }

  @Test func informationalHeadsWithoutEndAreRefused() async throws {
    let server = try HTTPTestServer(routes: .none)
    var reply = Reply.ok
    for _ in 0..<2000 { reply = reply.preceded(by: 103) }
    server.enqueue(reply)
    let failure = try await Client { $0.headerSizeLimit = 10_000 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
  }

  @Test(arguments: [Reply.Framing.contentLength, .chunked])
  func aBodyOfTheLimitIsTakenAndAByteMoreIsNot(framing: Reply.Framing) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.bytes(50_000).framed(framing), .bytes(50_001).framed(framing), .text("next"))
    let client = Client { $0.bodySizeLimit = 50_000 }
    #expect(try await client.get(server.url("/")).bytes.count == 50_000)
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
    #expect(failure.message.contains("50000") && failure.message.contains("bodySizeLimit"))
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test func theLimitCountsDecodedBytes() async throws {
    let server = try HTTPTestServer()
    let failure = try await Client { $0.bodySizeLimit = 10 }.failure(of: server.url("/gzip"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
  }
}
