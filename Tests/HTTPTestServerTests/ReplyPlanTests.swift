@testable import HTTPTestServer
import Testing

struct ReplyPlanTests {
  private func plan(
    _ reply: Reply, isHead: Bool = false, minorVersion: Int = 1, keeps: Bool = true
  ) -> ReplyPlan {
    ReplyPlan(
      reply, to: .init(isHead: isHead, minorVersion: minorVersion, keepsConnection: keeps))
  }

  /// Returns the bytes of the plan. Steps without bytes are shown by their names.
  private func wire(_ plan: ReplyPlan) -> String {
    plan.steps.map { step in
      switch step {
      case .send(let bytes): String(decoding: bytes, as: UTF8.self)
      case .sendPattern(let range): "<\(range.lowerBound)..<\(range.upperBound)>"
      case .pause(let duration): "<pause \(duration)>"
      case .gate: "<gate>"
      case .stall: "<stall>"
      }
    }.joined()
  }

  @Test("A known length is sent as Content-Length") func knownLength() {
    let plan = plan(.text("hi"))
    #expect(
      wire(plan)
        == "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\n\r\nhi")
    #expect(plan.ending == .keepAlive)
    #expect(wire(self.plan(.ok)) == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
  }

  @Test("Parts are chunks") func parts() {
    let reply = Reply(body: .parts(["ab", "", .gate(Gate()), .pattern(20), .pause(.seconds(1))]))
      .with(trailers: [HTTPHeader(name: "Sum", value: "3")])
    #expect(
      wire(plan(reply))
        == "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n<gate>14\r\n<0..<20>\r\n"
        + "<pause 1.0 seconds>0\r\nSum: 3\r\n\r\n")
  }

  @Test("A client of HTTP/1.0 receives no chunks") func oldClient() {
    let plan = plan(Reply(body: .chunks(["a", "b"])), minorVersion: 0, keeps: true)
    #expect(wire(plan) == "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab")
    #expect(plan.ending == .close)
    let kept = self.plan(.text("x"), minorVersion: 0)
    #expect(wire(kept).contains("\r\nConnection: keep-alive\r\n"))
    #expect(kept.ending == .keepAlive)
  }

  @Test("Some statuses have no body", arguments: [204, 304, 101])
  func statusesWithoutBody(_ status: Int) {
    let plan = plan(Reply(status: status, body: .bytes([1])))
    #expect(!wire(plan).contains("Content-Length"))
    #expect(wire(plan).hasSuffix("\r\n\r\n"))
  }

  @Test("The response to HEAD has the length only") func headResponse() {
    #expect(wire(plan(.text("hi"), isHead: true)).hasSuffix("Content-Length: 2\r\n\r\n"))
  }

  @Test("Fields of the reply have priority") func priority() {
    let reply = Reply(
      status: 299, reason: "Fine", headers: [HTTPHeader(name: "content-length", value: "7")],
      body: .bytes(Array("hi".utf8)))
    #expect(wire(plan(reply)) == "HTTP/1.1 299 Fine\r\ncontent-length: 7\r\n\r\nhi")
    let closing = plan(Reply.ok.with(header: "Connection", value: "Close"))
    #expect(closing.ending == .close)
    #expect(wire(closing).contains("\r\nConnection: Close\r\n"))
  }

  @Test("The framing can be chosen") func framing() {
    #expect(wire(plan(Reply.text("hi").framed(.chunked))).hasSuffix("\r\n\r\n2\r\nhi\r\n0\r\n\r\n"))
    let plain = plan(Reply(body: .chunks(["ab", "c"])).framed(.contentLength))
    #expect(wire(plain) == "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
    let open = plan(Reply.text("hi").framed(.untilClose))
    #expect(!wire(open).contains("Content-Length"))
    #expect(open.ending == .close)
  }

  @Test("The client can request the end of the connection") func connectionClose() {
    let plan = plan(.ok, keeps: false)
    #expect(plan.ending == .close)
    #expect(wire(plan).contains("\r\nConnection: close\r\n"))
    #expect(self.plan(Reply.ok.closing()).ending == .close)
  }

  @Test("A reply is described in short") func descriptions() {
    let replies: [Reply] = [
      .status(503), .json("{}").with(status: 422), .closeAfterBody(bytes: 1), .raw("abc"), .webSocket(),
    ]
    #expect(
      replies.map { "\($0)" } == [
        "503, 0 bytes", "422, 2 bytes", "200, 1001 bytes, closeAfterBody(bytes: 1)", "3 raw bytes",
        "WebSocket connection",
      ])
  }

  @Test("Informational responses are first") func informationalResponses() {
    let reply = Reply.ok.preceded(by: 103, headers: [HTTPHeader(name: "Link", value: "</a>")])
    #expect(
      wire(plan(reply)) == "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    #expect(!wire(plan(reply, minorVersion: 0)).contains("103"))
  }

  @Test(
    "Effects are converted to steps",
    arguments: [
      (.stall, "<stall>", .keepAlive), (.closeBeforeReply, "", .close), (.reset, "", .reset),
      (.stallAfterHead, "HEAD<stall>", .keepAlive),
      (.stallAfterBody(bytes: 4), "HEADabcd<stall>", .keepAlive),
      (.resetAfterBody(bytes: 1), "HEADa", .reset), (.closeAfterBody(bytes: 3), "HEADabc", .close),
      (.cutAfterBody(bytes: 0), "HEAD", .cut), (.closeAfterBody(bytes: 99), "HEADabcdef", .close),
      (.raw([0x41], closes: true), "A", .close), (.raw([0x41], closes: false), "A", .keepAlive),
      (.slowDrip(bytesPerStep: 4, interval: .seconds(1)), "HEADabcd<pause 1.0 seconds>ef", .keepAlive),
    ] as [(Reply.Effect, String, ConnectionEnding)])
  func effects(_ effect: Reply.Effect, _ expected: String, _ ending: ConnectionEnding) {
    let plan = plan(Reply(body: .bytes(Array("abcdef".utf8)), effect: effect))
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
    #expect(wire(plan) == expected.replacing("HEAD", with: head))
    #expect(plan.ending == ending)
  }

  @Test(
    "A response without a body fails after its head",
    arguments: [
      (.stallAfterBody(bytes: 4), "<stall>", .keepAlive), (.resetAfterBody(bytes: 1), "", .reset),
      (.closeAfterBody(bytes: 3), "", .close), (.cutAfterBody(bytes: 0), "", .cut), (.badChunk, "", .close),
      (.truncatedChunked, "", .close), (.wrongLength(claimed: 9), "", .keepAlive),
      (.slowDrip(bytesPerStep: 4, interval: .seconds(1)), "", .keepAlive),
    ] as [(Reply.Effect, String, ConnectionEnding)])
  func effectsWithoutBody(_ effect: Reply.Effect, _ expected: String, _ ending: ConnectionEnding) {
    let body = Reply.Body.bytes(Array("abcdef".utf8))
    for status in [200, 204, 304] {
      let plan = plan(Reply(status: status, body: body, effect: effect), isHead: status == 200)
      #expect(wire(plan).hasSuffix("\r\n\r\n\(expected)"), "\(status)")
      #expect(plan.ending == ending, "\(status)")
    }
  }

  @Test("Parts are divided across their boundaries") func dividedParts() {
    let reply = Reply(
      body: .parts(["ab", .pause(.seconds(1)), "cd"]), effect: .closeAfterBody(bytes: 3))
    #expect(wire(plan(reply)).hasSuffix("2\r\nab\r\n<pause 1.0 seconds>1\r\nc\r\n"))
  }

  @Test("A wrong length closes the connection only if bytes are missing") func wrongLength() {
    let short = plan(.wrongLength(claimed: 50))
    #expect(wire(short).contains("Content-Length: 50\r\n"))
    #expect(wire(short).hasSuffix("<0..<100>"))
    #expect(short.ending == .keepAlive)
    #expect(plan(.wrongLength(claimed: 101)).ending == .close)
  }

  @Test("Malformed chunks and missing ends are sent") func malformedChunks() {
    #expect(wire(plan(.badChunk)).hasSuffix("64\r\n<0..<100>\r\nnot-a-size\r\nmore\r\n"))
    #expect(wire(plan(.truncatedChunked)).hasSuffix("64\r\n<0..<100>\r\n"))
    #expect(plan(.truncatedChunked).ending == .close)
  }

  @Test("Half of a gzip body is sent with its own length") func halfOfGzip() throws {
    let plan = plan(.truncatedGzip)
    guard case .send(let bytes)? = plan.steps.last else {
      Issue.record("no bytes are sent")
      return
    }
    let whole = Compression.gzip(Reply.patternBytes(10_000))
    #expect(bytes.suffix(whole.count / 2).elementsEqual(whole.prefix(whole.count / 2)))
    #expect(wire(plan).contains("Content-Length: \(whole.count / 2)\r\n"))
    #expect(wire(plan).contains("Content-Encoding: gzip\r\n"))
  }

  @Test("A malformed head ends the connection", arguments: Reply.GarbageHead.allCases)
  func malformedHeads(_ kind: Reply.GarbageHead) {
    #expect(plan(.garbageHead(kind)).ending == .close)
  }

  @Test("Unusual statuses are sent") func unusualStatuses() {
    #expect(wire(plan(.status(7))).hasPrefix("HTTP/1.1 007 Unknown\r\n"))
    #expect(wire(plan(.status(1234))).hasPrefix("HTTP/1.1 1234 Unknown\r\n"))
    #expect(wire(plan(.status(-1))).hasPrefix("HTTP/1.1 -1 Unknown\r\n"))
  }
}

struct CompressionTests {
  /// Computes the checksum of gzip (RFC 1952 §8) bit by bit.
  private func crc(_ bytes: [UInt8]) -> UInt32 {
    var crc = ~UInt32(0)
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 {
        let isOdd = crc & 1 == 1
        crc >>= 1
        if isOdd { crc ^= 0xEDB8_8320 }
      }
    }
    return ~crc
  }

  private func number(_ bytes: some Sequence<UInt8>) -> UInt32 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }

  @Test("gzip has its magic number and its checksum", arguments: [0, 1, 1000, 100_000])
  func gzip(_ count: Int) {
    let bytes = Reply.patternBytes(count)
    let coded = Compression.gzip(bytes)
    #expect(coded.prefix(3) == [0x1F, 0x8B, 8])
    #expect(number(coded.suffix(8).prefix(4)) == crc(bytes))
    #expect(number(coded.suffix(4)) == UInt32(count))
  }

  @Test("deflate is the format of zlib") func deflate() {
    let coded = Compression.zlib([0x61])
    #expect(coded[0] & 0x0F == 8)
    #expect((Int(coded[0]) << 8 | Int(coded[1])) % 31 == 0)
    // Adler-32 of one byte `a`.
    #expect(coded.suffix(4) == [0x00, 0x62, 0x00, 0x62])
  }
}
