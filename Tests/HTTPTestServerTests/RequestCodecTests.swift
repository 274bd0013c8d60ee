@testable import HTTPTestServer
import Testing

struct RequestHeadParserTests {
  private func head(_ text: String) throws -> RequestHead? {
    guard case .head(let head, let length) = try RequestHeadParser.parse(Array(text.utf8)) else { return nil }
    #expect(length == text.utf8.count)
    return head
  }

  @Test("A head has its fields in order") func headFields() throws {
    let head = try #require(try head("GET /a?b HTTP/1.1\r\nHost: x\r\nA:  1 \r\na: 2\r\nEmpty:\r\n\r\n"))
    #expect(head.method == "GET")
    #expect(head.target == "/a?b")
    #expect(head.minorVersion == 1)
    #expect(head.headers.map(\.description) == ["Host: x", "A: 1", "a: 2", "Empty: "])
    #expect(head.keepsConnection)
  }

  @Test("Every prefix of a head is incomplete") func prefixes() throws {
    let bytes = Array("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n".utf8)
    for count in 0..<bytes.count {
      #expect(try RequestHeadParser.parse(Array(bytes.prefix(count))) == .incomplete)
    }
    #expect(try RequestHeadParser.parse(bytes) != .incomplete)
  }

  @Test("Bare line feeds and leading empty lines are accepted") func lineFeeds() throws {
    #expect(try head("\r\n\r\nGET / HTTP/1.0\nA: b\n\n")?.headers.count == 1)
  }

  @Test("Bytes after the head are not read") func bytesAfterHead() throws {
    let outcome = try RequestHeadParser.parse(Array("GET / HTTP/1.1\r\n\r\nGET".utf8))
    guard case .head(_, let length) = outcome else {
      Issue.record("no head")
      return
    }
    #expect(length == 18)
  }

  @Test(
    "A malformed head is refused",
    arguments: [
      ("GET /\r\n\r\n", 400), ("GET  / HTTP/1.1\r\n\r\n", 400), ("G(T / HTTP/1.1\r\n\r\n", 400),
      ("GET / HTTP/2.0\r\n\r\n", 505), ("GET / HTTQ/1.1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400), ("GET / HTTP/1.1\r\n: x\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nA : x\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\n\n", 400),
    ])
  func malformedHeads(_ text: String, _ status: Int) {
    let refusal = #expect(throws: RequestRefusal.self) {
      try RequestHeadParser.parse(Array(text.utf8))
    }
    #expect(refusal?.status == status)
  }

  @Test("A large head is refused before its end") func largeHead() {
    for start in ["", "GET / HTTP/1.1\r\nA: "] {
      let bytes = Array(start.utf8) + [UInt8](repeating: 0x78, count: 300_000)
      #expect(throws: RequestRefusal.headTooLarge) { try RequestHeadParser.parse(bytes) }
    }
  }

  @Test("Empty lines without end before a head are refused") func emptyLines() {
    let bytes = Array(String(repeating: "\r\n", count: 150_000).utf8)
    #expect(throws: RequestRefusal.headTooLarge) { try RequestHeadParser.parse(bytes) }
  }

  @Test("A TLS handshake is refused at its first byte") func handshake() {
    #expect(throws: RequestRefusal.self) { try RequestHeadParser.parse([0x16]) }
  }

  @Test("A field of invalid UTF-8 is read as Latin-1") func latin1() throws {
    let bytes = Array("GET / HTTP/1.1\r\nA: ".utf8) + [0xE4] + Array("\r\n\r\n".utf8)
    guard case .head(let head, _) = try RequestHeadParser.parse(bytes) else {
      Issue.record("no head")
      return
    }
    #expect(head.value("a") == "ä")
  }

  @Test("The host is named once, and only HTTP/1.0 may omit it") func host() throws {
    for (text, count) in [("GET / HTTP/1.1\r\n", 0), ("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n", 2)] {
      let head = try #require(try head(text + "\r\n"))
      let refusal = #expect(throws: RequestRefusal.badHost(count: count)) { try head.checkHost() }
      #expect(refusal?.status == 400)
    }
    #expect(throws: RequestRefusal.badHost(count: 2)) {
      try head("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n")?.checkHost()
    }
    for text in ["GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n"] {
      #expect(throws: Never.self) { try head(text)?.checkHost() }
    }
  }

  @Test("The connection stays open depending on version and field") func keepAlive() throws {
    #expect(try head("GET / HTTP/1.1\r\nConnection: foo, Close\r\n\r\n")?.keepsConnection == false)
    #expect(try head("GET / HTTP/1.0\r\n\r\n")?.keepsConnection == false)
    #expect(try head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")?.keepsConnection == true)
    #expect(try head("GET / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n")?.expectsContinue == true)
    #expect(try head("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n")?.expectsContinue == false)
  }
}

struct RequestBodyDecoderTests {
  private func decoder(_ fields: [HTTPHeader], minorVersion: Int = 1) throws -> RequestBodyDecoder {
    try RequestBodyDecoder(
      RequestHead(method: "POST", target: "/", minorVersion: minorVersion, headers: fields))
  }

  private let chunked = HTTPHeader(name: "transfer-encoding", value: "Chunked")

  @Test("A request without fields has no body") func noBody() throws {
    var decoder = try decoder([])
    var body: [UInt8] = []
    #expect(decoder.isComplete)
    #expect(try decoder.feed(Array("GET".utf8)[...], into: &body) == 0)
    #expect(body.isEmpty)
  }

  @Test("A body of a known length is read and the rest is not") func knownLength() throws {
    var decoder = try decoder([HTTPHeader(name: "Content-Length", value: "5")])
    var body: [UInt8] = []
    #expect(try decoder.feed(Array("hel".utf8)[...], into: &body) == 3)
    #expect(!decoder.isComplete)
    #expect(try decoder.feed(Array("loGET".utf8)[...], into: &body) == 2)
    #expect(decoder.isComplete)
    #expect(body == Array("hello".utf8))
    #expect(!decoder.isChunked)
  }

  @Test("Chunks are read in pieces of any size", arguments: [1, 2, 3, 7, 100])
  func chunks(_ size: Int) throws {
    var decoder = try decoder([chunked])
    let wire = Array("5;x=y\r\nhello\r\n0a\r\n0123456789\r\n0\r\nSum: 15\r\nB:c \r\n\r\nGET".utf8)
    var body: [UInt8] = []
    var position = 0
    while position < wire.count, !decoder.isComplete {
      position += try decoder.feed(wire[position..<min(position + size, wire.count)], into: &body)
    }
    #expect(decoder.isComplete)
    #expect(body == Array("hello0123456789".utf8))
    #expect(wire.count - position == 3)
    #expect(decoder.trailers.map(\.description) == ["Sum: 15", "B: c"])
    #expect(decoder.isChunked)
  }

  @Test(
    "A malformed chunk is refused",
    arguments: [
      "x\r\n", "-1\r\n", "\r\n", "1\r\nab\r\n", "ffffffffffffffff\r\n", "+1\r\n", "0\r\nbad\r\n",
    ])
  func malformedChunks(_ text: String) throws {
    var decoder = try decoder([chunked])
    var body: [UInt8] = []
    #expect(throws: RequestRefusal.self) { _ = try decoder.feed(Array(text.utf8)[...], into: &body) }
  }

  @Test("An endless chunk line is refused") func endlessLine() throws {
    var decoder = try decoder([chunked])
    var body: [UInt8] = []
    let line = [UInt8](repeating: 0x31, count: 20_000)
    #expect(throws: RequestRefusal.headTooLarge) { _ = try decoder.feed(line[...], into: &body) }
  }

  @Test("Invalid framing is refused") func invalidFraming() {
    let length = { HTTPHeader(name: "Content-Length", value: $0) }
    for fields in [[length("-1")], [length("1"), length("2")], [length("x")], [length("")]] {
      #expect(throws: RequestRefusal.self) { _ = try decoder(fields) }
    }
    let gzip = HTTPHeader(name: "Transfer-Encoding", value: "gzip")
    #expect(throws: RequestRefusal.unsupportedCoding("gzip")) { _ = try decoder([gzip]) }
    #expect(throws: Never.self) { _ = try decoder([length("1"), length("1")]) }
    for minorVersion in 0...1 {
      let refusal = #expect(throws: RequestRefusal.self) {
        _ = try decoder(minorVersion == 0 ? [chunked] : [chunked, length("5")], minorVersion: minorVersion)
      }
      #expect(refusal?.status == 400)
    }
  }
}

struct SmallCodecTests {
  @Test("Targets are parsed") func targets() {
    let parts = { (target: String) in
      let target = RequestTarget(target)
      return [target.path, target.query]
    }
    #expect(parts("/a/b?c=d?e") == ["/a/b", "c=d?e"])
    #expect(parts("/") == ["/", ""])
    #expect(parts("http://host:80/a?b") == ["/a", "b"])
    #expect(parts("http://host?b") == ["/", "b"])
    #expect(parts("*") == ["*", ""])
    #expect(parts("/a?u=http://x/y") == ["/a", "u=http://x/y"])
  }

  @Test("Percent escapes are decoded") func percentEscapes() {
    #expect(PercentCoding.decode("a%20b+c%zz%4", plusIsSpace: true) == "a b c%zz%4")
    #expect(PercentCoding.decode("a+%E2%82%AC", plusIsSpace: false) == "a+€")
    let pairs = PercentCoding.pairs("a=1&&b&c=x=y&=z")
    #expect(pairs.map(\.name) == ["a", "b", "c", ""])
    #expect(pairs.map(\.value) == ["1", "", "x=y", "z"])
  }

  @Test("Media types are parsed") func mediaTypes() {
    let type = MediaType(#"Multipart/Form-Data; Boundary="a;\"b"; charset=utf-8"#)
    #expect(type.essence == "multipart/form-data")
    #expect(type.parameter("boundary") == #"a;"b"#)
    #expect(type.parameter("CHARSET") == "utf-8")
    #expect(type.parameter("none") == nil)
    #expect(MediaType("").essence == "")
  }

  @Test("Parts of forms are parsed") func formParts() {
    let body =
      "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n"
      + "--B\r\ncontent-disposition: form-data; name=\"f\"; filename=\"x;y.txt\"\r\nContent-Type: text/plain\r\n"
      + "\r\n--no-B\r\n--B\r\nX: no name\r\n\r\n\r\n--B--\r\n"
    let parts = MultipartParser.parts(of: Array(body.utf8), boundary: "B")
    #expect(parts.map(\.name) == ["a", "f"])
    #expect(parts.map(\.fileName) == [nil, "x;y.txt"])
    #expect(parts.map { String(decoding: $0.body, as: UTF8.self) } == ["1\r\n2", "--no-B"])
    #expect(MultipartParser.parts(of: Array(body.utf8), boundary: "").isEmpty)
    #expect(MultipartParser.parts(of: Array(body.utf8.prefix(30)), boundary: "B").isEmpty)
    #expect(MultipartParser.parts(of: [], boundary: "B").isEmpty)
  }

  @Test(
    "Ranges are parsed",
    arguments: [
      ("bytes=0-9", .part(0..<10)), ("bytes=5-", .part(5..<100)), ("bytes=-5", .part(95..<100)),
      ("bytes=90-200", .part(90..<100)), ("bytes=-500", .part(0..<100)), ("bytes=100-", .unsatisfiable),
      ("bytes=-0", .unsatisfiable), ("bytes=9-5", .whole), ("bytes=0-1,5-6", .whole), ("lines=1-2", .whole),
      ("bytes=a-b", .whole), ("bytes=-", .whole), ("Bytes=99-99", .part(99..<100)),
    ] as [(String, ByteRange)])
  func ranges(_ field: String, _ range: ByteRange) {
    #expect(ByteRange.parse(field, of: 100) == range)
  }

  @Test("An empty document has no range") func emptyDocument() {
    #expect(ByteRange.parse("bytes=0-", of: 0) == .unsatisfiable)
    #expect(ByteRange.parse("bytes=-1", of: 0) == .unsatisfiable)
    #expect(ByteRange.parse(nil, of: 0) == .whole)
  }

  @Test("Dates are written in the preferred format") func dates() {
    #expect(HTTPDate.text(secondsSince1970: 784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(HTTPDate.text(secondsSince1970: 0) == "Thu, 01 Jan 1970 00:00:00 GMT")
  }

  @Test("Documents are quoted") func quotation() {
    let document = JSONValue.object([
      ("a\"\\", .string("\n\r\t\u{1}ä")), ("b", .array([.int(-1), .bool(true), .null])),
      ("c", .multimap([("x", "1"), ("y", "2"), ("x", "3")])),
    ])
    #expect(
      document.text
        == #"{"a\"\\": "\n\r\t\u0001ä", "b": [-1, true, null], "c": {"x": ["1", "3"], "y": "2"}}"#)
  }

  @Test("Patterns match paths by segments") func patterns() {
    let pattern = RoutePattern("/a/{x}/b/{y}")
    #expect(pattern.match(RoutePattern.segments(of: "/a/1%2F2/b/c/")) == ["1/2", "c"])
    #expect(pattern.match(RoutePattern.segments(of: "/a/1/b")) == nil)
    #expect(pattern.match(RoutePattern.segments(of: "/a/1/c/2")) == nil)
    let rest = RoutePattern("/anything/**")
    #expect(rest.match(RoutePattern.segments(of: "/anything")) == [])
    #expect(rest.match(RoutePattern.segments(of: "/anything/a/b")) == [])
    #expect(rest.match(RoutePattern.segments(of: "/other")) == nil)
  }

  @Test("The byte pattern does not depend on the window") func bytePattern() {
    let whole = Reply.patternBytes(200_000)
    #expect(whole.count == 200_000)
    #expect(Reply.patternBytes(65_000..<140_000) == Array(whole[65_000..<140_000]))
    #expect(Reply.patternByte(at: 123_456) == whole[123_456])
    #expect(Set(whole).count == 256)
    #expect(Reply.patternBytes(-1).isEmpty)
    #expect(Reply.patternByte(at: -1) == whole[65_520])
    #expect(Reply.patternByte(at: .min) == Reply.patternByte(at: .min % 65_521 + 65_521))
  }

  @Test("The length of parts that no body could have is the greatest") func endlessParts() {
    #expect(Reply.Body.parts([.pattern(.max), .pattern(2)]).length == .max)
  }
}
