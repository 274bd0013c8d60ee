import FoundationEssentials
import HTTPWire
import Testing

@Suite("Heads of requests") struct RequestHeadWriterTests {
  private static func writer(
    _ url: String, _ method: String = "GET", _ fields: [(String, String)] = [],
    content: RequestHeadWriter.Content = .none, form: RequestHeadWriter.TargetForm = .origin,
    omitsExpect: Bool = false
  ) -> RequestHeadWriter {
    RequestHeadWriter(
      method: method, url: url, origin: Origin(url: url) ?? Origin(scheme: "http", host: "none", port: nil),
      fields: fields.map { HTTPHeader(name: $0.0, value: $0.1) }, content: content, form: form,
      omitsExpect: omitsExpect)
  }

  private static func text(_ writer: RequestHeadWriter) throws -> String {
    var buffer = Array("before".utf8)
    let summary = try writer.write(into: &buffer)
    #expect(buffer.starts(with: "before".utf8))
    #expect(summary.size == buffer.count - 6)
    return String(decoding: buffer.dropFirst(6), as: UTF8.self)
  }

  /// Returns the violation, and verifies that no byte was written.
  private static func violation(_ writer: RequestHeadWriter) -> RequestHeadViolation? {
    var buffer = Array("before".utf8)
    do throws(RequestHeadViolation) {
      _ = try writer.write(into: &buffer)
      return nil
    } catch {
      // Compare outside of `#expect`, because a failure would describe up to a million bytes.
      let isUnchanged = buffer == Array("before".utf8)
      #expect(isUnchanged, "\(error)")
      #expect(error.message.hasSuffix("."), "\(error.message)")
      return error
    }
  }

  private static func summary(_ writer: RequestHeadWriter) throws -> RequestHeadWriter.Summary {
    var buffer: [UInt8] = []
    return try writer.write(into: &buffer)
  }

  static let targets: [(String, RequestHeadWriter.TargetForm, String, String)] = [
    ("http://a.example", .origin, "/", "a.example"), ("http://a.example/", .origin, "/", "a.example"),
    ("http://a.example?x", .origin, "/?x", "a.example"), ("http://a.example#f", .origin, "/", "a.example"),
    ("http://a.example/a#f/?g", .origin, "/a", "a.example"),
    ("http://a.example/?", .origin, "/?", "a.example"),
    ("http://a.example/a?b?c/d", .origin, "/a?b?c/d", "a.example"),
    ("http://a.example//a/../b/./%2f%2F|", .origin, "//a/../b/./%2f%2F|", "a.example"),
    ("http://a.example:80/", .origin, "/", "a.example"),
    ("https://a.example:443/", .origin, "/", "a.example"),
    ("http://a.example:443/", .origin, "/", "a.example:443"),
    ("https://a.example:80/", .origin, "/", "a.example:80"),
    ("http://a.example:81/", .origin, "/", "a.example:81"),
    ("http://a.example./", .origin, "/", "a.example."),
    ("http://[2001:db8::1]/", .origin, "/", "[2001:db8::1]"),
    ("http://[2001:db8::1]:81/", .origin, "/", "[2001:db8::1]:81"),
    ("http://[fe80::1%25eth0]:81/", .origin, "/", "[fe80::1]:81"),
    ("HTTP://A.Example/B", .origin, "/B", "a.example"),
    ("http://a.example/b?c#d", .absolute, "http://a.example/b?c", "a.example"),
    ("http://ann:s3cret@a.example/b", .absolute, "http://a.example/b", "a.example"),
    ("http://ann:s3cret@a.example", .origin, "/", "a.example"),
    ("http://a.example", .absolute, "http://a.example/", "a.example"),
    ("http://a.example:80?b", .absolute, "http://a.example/?b", "a.example"),
    ("http://a.example:8080/", .absolute, "http://a.example:8080/", "a.example:8080"),
    ("http://[fe80::1%25eth0]/", .absolute, "http://[fe80::1]/", "[fe80::1]"),
    ("http://a.example/b", .asterisk, "*", "a.example"),
    ("https://a.example/b", .authority, "a.example:443", "a.example:443"),
    ("http://a.example/b", .authority, "a.example:80", "a.example:80"),
    ("https://[fe80::1%25eth0]/", .authority, "[fe80::1]:443", "[fe80::1]:443"),
    ("https://a.example.:0/", .authority, "a.example.:0", "a.example.:0"),
  ]

  @Test("The request line and Host", arguments: targets)
  func target(url: String, form: RequestHeadWriter.TargetForm, target: String, host: String) throws {
    let head = try Self.text(Self.writer(url, "OPTIONS", form: form))
    #expect(head == "OPTIONS \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
  }

  @Test("A tunnel has the fields of the proxy alone") func tunnel() throws {
    let origin = Origin(scheme: "https", host: "a.example", port: nil)
    let login = HTTPHeader(name: "Proxy-Authorization", value: "Basic eA==")
    #expect(
      try Self.text(RequestHeadWriter(tunnelTo: origin, fields: [login]))
        == "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic eA==\r\n\r\n")
  }

  @Test("Fields keep order, spelling, repetition and empty values") func fields() throws {
    let head = try Self.text(
      Self.writer(
        "http://a.example/", "GET",
        [
          ("X-Last", "1"), ("accept", "a, b"), ("X-Twice", "a"), ("X-Empty", ""), ("x-twice", " b\t"),
          ("X-U", "ü"),
        ]
      ))
    #expect(
      head
        == "GET / HTTP/1.1\r\nHost: a.example\r\nX-Last: 1\r\naccept: a, b\r\nX-Twice: a\r\nX-Empty:\r\nx-twice:  b\t\r\nX-U: ü\r\n\r\n"
    )
  }

  @Test("The first given Host is the first field and the only one") func givenHost() throws {
    let head = try Self.text(
      Self.writer("http://a.example:81/", "GET", [("A", "1"), ("hOST", "b"), ("Host", "c"), ("Hosts", "d")]))
    #expect(head == "GET / HTTP/1.1\r\nhOST: b\r\nA: 1\r\nHosts: d\r\n\r\n")
  }

  static let contents: [(String, RequestHeadWriter.Content, [(String, String)], String)] = [
    ("GET", .none, [], ""), ("DELETE", .none, [], ""), ("HEAD", .none, [], ""),
    ("POST", .none, [], "Content-Length: 0\r\n"), ("PUT", .none, [], "Content-Length: 0\r\n"),
    ("PATCH", .none, [], "Content-Length: 0\r\n"), ("post", .none, [], ""),
    ("GET", .length(0), [], "Content-Length: 0\r\n"), ("GET", .length(7), [], "Content-Length: 7\r\n"),
    ("POST", .length(.max), [], "Content-Length: 9223372036854775807\r\n"),
    ("POST", .length(10), [], "Content-Length: 10\r\n"), ("POST", .length(99), [], "Content-Length: 99\r\n"),
    ("POST", .length(100), [], "Content-Length: 100\r\n"),
    ("POST", .chunked, [], "Transfer-Encoding: chunked\r\n"),
    ("POST", .length(7), [("content-length", "7")], "content-length: 7\r\n"),
    ("GET", .none, [("Content-Length", "0")], "Content-Length: 0\r\n"),
    ("POST", .none, [("Content-Length", "0")], "Content-Length: 0\r\n"),
    ("POST", .chunked, [("transfer-encoding", "Chunked")], "transfer-encoding: Chunked\r\n"),
  ]

  @Test("The framing of the content is announced once", arguments: contents)
  func content(
    method: String, content: RequestHeadWriter.Content, fields: [(String, String)], framing: String
  ) throws {
    let head = try Self.text(Self.writer("http://a.example/", method, fields, content: content))
    #expect(head == "\(method) / HTTP/1.1\r\nHost: a.example\r\n\(framing)\r\n")
  }

  @Test("Bodies become contents") func bodies() {
    typealias Content = RequestHeadWriter.Content
    #expect(Content(.none) == .none)
    #expect(Content(.bytes(Data())) == .none)
    #expect(Content(.bytes(Data([1, 2]))) == .length(2))
    #expect(Content(.source(FixedSource(0))) == .length(0))
    #expect(Content(.source(FixedSource(5))) == .length(5))
    #expect(Content(.source(FixedSource(-1))) == .chunked)
  }

  static let contradictions: [(String, RequestHeadWriter.Content, [(String, String)], String)] = [
    ("GET", .none, [("Content-Length", "1")], "Content-Length"),
    ("POST", .length(7), [("Content-Length", "8")], "Content-Length"),
    ("POST", .length(7), [("Content-Length", "07")], "Content-Length"),
    ("POST", .length(7), [("Content-Length", "7, 7")], "Content-Length"),
    ("POST", .length(7), [("Content-Length", "")], "Content-Length"),
    ("POST", .length(7), [("Content-Length", "7"), ("Content-Length", "7")], "Content-Length"),
    ("POST", .chunked, [("CONTENT-LENGTH", "7")], "Content-Length"),
    ("POST", .chunked, [("Transfer-Encoding", "gzip, chunked")], "Transfer-Encoding"),
    (
      "POST", .chunked, [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
      "Transfer-Encoding"
    ),
    ("POST", .length(7), [("Transfer-Encoding", "chunked")], "Transfer-Encoding"),
    ("GET", .none, [("transfer-encoding", "identity")], "Transfer-Encoding"),
  ]

  @Test("Fields that contradict the content are refused", arguments: contradictions)
  func contradiction(
    method: String, content: RequestHeadWriter.Content, fields: [(String, String)], name: String
  ) {
    let writer = Self.writer("http://a.example/", method, fields, content: content)
    #expect(Self.violation(writer) == .contradictingFraming(name))
  }

  @Test(
    "HEAD and TRACE have no content",
    arguments: [("HEAD", RequestHeadViolation.contentOfHead), ("TRACE", .contentOfTrace)])
  func contentOfHead(method: String, violation: RequestHeadViolation) throws {
    for content in [RequestHeadWriter.Content.length(0), .length(1), .chunked] {
      #expect(Self.violation(Self.writer("http://a.example/", method, content: content)) == violation)
    }
    #expect(
      try Self.text(Self.writer("http://a.example/", method))
        == "\(method) / HTTP/1.1\r\nHost: a.example\r\n\r\n")
  }

  @Test("Each byte of a target, a name and a value is allowed or refused") func forbiddenBytes() {
    for byte in UInt8.min...0x7F {
      let character = String(decoding: [byte], as: UTF8.self)
      let isEnd = character == "#" || character == "?" || character == "/"
      let target = Self.violation(Self.writer("http://a.example/a\(character)b"))
      #expect(target == (byte > 0x20 && byte < 0x7F || isEnd ? nil : .target(byte)), "target, \(byte)")
      let method = Self.violation(Self.writer("http://a.example/", "G\(character)"))
      let isToken = HeaderFieldRules.isToken(character)
      #expect((method == nil) == isToken, "method, \(byte)")
      let name = Self.violation(Self.writer("http://a.example/", "GET", [("A\(character)", "b")]))
      #expect(name == (isToken ? nil : .field(.name("A\(character)"))), "name, \(byte)")
      let value = Self.violation(Self.writer("http://a.example/", "GET", [("A", "b\(character)")]))
      let isControl = byte < 0x20 && byte != 0x09 || byte == 0x7F
      #expect(value == (isControl ? .field(.value(field: "A", character: byte)) : nil), "value, \(byte)")
    }
    #expect(Self.violation(Self.writer("http://a.example/ä")) == .target(0xC3))
    #expect(Self.violation(Self.writer("http://a.example/", "GET", [("Host", "a\r\nB: c")])) != nil)
    let host = RequestHeadWriter(
      method: "GET", url: "http://a/", origin: Origin(scheme: "http", host: "a\r\nb", port: nil), fields: [],
      content: .none, form: .origin)
    #expect(Self.violation(host) == .target(0x0D))
  }

  @Test("A head has at most a million bytes, wherever they are") func largestHead() throws {
    let empty = try Self.text(Self.writer("http://a.example/", "GET", [("A", "b")])).utf8.count
    let rest = RequestHeadWriter.largestHead - empty
    for (excess, violation) in [(0, nil), (1, RequestHeadViolation.tooLarge)] {
      let value = String(repeating: "v", count: rest + 1 + excess)
      #expect(Self.violation(Self.writer("http://a.example/", "GET", [("A", value)])) == violation)
      let path = String(repeating: "p", count: rest + excess)
      #expect(Self.violation(Self.writer("http://a.example/\(path)", "GET", [("A", "b")])) == violation)
    }
    let field = ("A", String(repeating: "v", count: 400_000))
    #expect(Self.violation(Self.writer("http://a.example/", "GET", [field, field, field])) == .tooLarge)
    let endless = String(repeating: "p", count: 2_000_000)
    #expect(Self.violation(Self.writer("http://a.example/\(endless)")) == .tooLarge)
  }

  @Test("Expectations, upgrades and closing are reported") func summaries() throws {
    typealias Field = (String, String)
    func summary(_ fields: [Field], _ content: RequestHeadWriter.Content = .length(1), omits: Bool = false)
      throws
      -> [Bool]
    {
      let summary = try Self.summary(
        Self.writer("http://a.example/", "POST", fields, content: content, omitsExpect: omits))
      return [summary.expectsContinue, summary.asksForUpgrade, summary.closesConnection]
    }
    #expect(try summary([]) == [false, false, false])
    #expect(try summary([("expect", "100-Continue")]) == [true, false, false])
    #expect(try summary([("Expect", "100-continue")], .chunked) == [true, false, false])
    #expect(try summary([("Expect", "100-continue")], .none) == [false, false, false])
    #expect(try summary([("Expect", "200-ok")]) == [false, false, false])
    #expect(try summary([("Expect", "100-continue")], omits: true) == [false, false, false])
    #expect(try summary([("upgrade", "websocket")]) == [false, true, false])
    #expect(try summary([("Connection", "close")]) == [false, false, true])
    #expect(try summary([("connection", "x-close , CLOSE\t")]) == [false, false, true])
    #expect(try summary([("Connection", "x-close, close-x, keep-alive,")]) == [false, false, false])
    #expect(try summary([("Connection", "keep-alive"), ("Connection", "close")]) == [false, false, true])
  }

  @Test("The field Expect is left out after 417 and sent otherwise") func expectation() throws {
    let fields = [("Expect", "100-continue"), ("A", "b")]
    let sent = try Self.text(Self.writer("http://a.example/", "POST", fields, content: .length(1)))
    #expect(sent.contains("\r\nExpect: 100-continue\r\nA: b\r\n"))
    let again = try Self.text(
      Self.writer("http://a.example/", "POST", fields, content: .length(1), omitsExpect: true))
    #expect(again == "POST / HTTP/1.1\r\nHost: a.example\r\nA: b\r\nContent-Length: 1\r\n\r\n")
  }

  @Test(
    "A request without content has no expectation", arguments: [RequestHeadWriter.Content.none, .length(0)])
  func expectationWithoutContent(content: RequestHeadWriter.Content) throws {
    let fields = [("Expect", "100-Continue"), ("A", "b")]
    for method in ["GET", "DELETE", "POST"] {
      let text = try Self.text(Self.writer("http://a.example/", method, fields, content: content))
      #expect(text.hasPrefix("\(method) / HTTP/1.1\r\nHost: a.example\r\nA: b\r\n"), "\(text)")
      #expect(!text.contains("Expect"), "\(text)")
    }
    let other = try Self.text(
      Self.writer("http://a.example/", "GET", [("Expect", "200-ok")], content: content))
    #expect(other.contains("\r\nExpect: 200-ok\r\n"), "only 100-continue waits with content")
  }

  @Test("An expectation that was left out is not left out of the next request with content")
  func laterContent()
    throws
  {
    var memory = RequestHeadMemory()
    let fields = [("Expect", "100-continue")]
    for _ in 0..<3 {
      var buffer: [UInt8] = []
      _ = try Self.writer("http://a.example/", "GET", fields).write(into: &buffer, &memory)
    }
    var buffer: [UInt8] = []
    let summary = try Self.writer("http://a.example/", "POST", fields, content: .length(1))
      .write(into: &buffer, &memory)
    #expect(summary.expectsContinue)
    #expect(String(decoding: buffer, as: UTF8.self).contains("\r\nExpect: 100-continue\r\n"))
  }

  @Test("Connection names Upgrade") func upgrade() throws {
    let alone = try Self.text(Self.writer("http://a.example/", "GET", [("upgrade", "x/1"), ("A", "b")]))
    #expect(
      alone
        == "GET / HTTP/1.1\r\nHost: a.example\r\nupgrade: x/1\r\nA: b\r\nConnection: Upgrade\r\n\r\n")
    for value in ["Upgrade", "close, uPGRADE"] {
      let named = try Self.text(
        Self.writer("http://a.example/", "GET", [("Connection", value), ("Upgrade", "x/1")]))
      #expect(
        named == "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: \(value)\r\nUpgrade: x/1\r\n\r\n")
    }
  }

  @Test("A warm buffer keeps its memory") func warmBuffer() throws {
    let writer = Self.writer(
      "https://a.example/path?query", "POST", [("A", "b"), ("C", "d")], content: .length(3))
    var buffer: [UInt8] = []
    buffer.reserveCapacity(512)
    let before = buffer.withUnsafeBufferPointer { $0.baseAddress }
    for _ in 0..<3 {
      buffer.removeAll(keepingCapacity: true)
      _ = try writer.write(into: &buffer)
    }
    #expect(buffer.withUnsafeBufferPointer { $0.baseAddress } == before)
  }

  @Test("A writer of a request has its parts") func request() throws {
    let profile = ConnectionProfile()
    let request = WireRequest(
      url: "http://a.example/b", origin: Origin(scheme: "http", host: "a.example", port: nil),
      profile: profile
    ) {
      $0.method = "PUT"
      $0.fields = [HTTPHeader(name: "Expect", value: "100-continue")]
      $0.body = .bytes(Data([1, 2, 3]))
    }
    let head =
      "PUT http://a.example/b HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    #expect(try Self.text(RequestHeadWriter(request, form: .absolute)) == head)
    #expect(
      try Self.text(RequestHeadWriter(request, form: .absolute, omitsExpect: true))
        == head.replacing("Expect: 100-continue\r\n", with: ""))
  }
}

/// A source that has a length and no bytes.
private final class FixedSource: BodySource {
  let length: Int64
  let isRepeatable = true
  init(_ length: Int64) { self.length = length }
  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? { nil }
  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading { .end }
  func stop() {}
}

@Suite("Chunks of requests") struct RequestChunksTests {
  /// Reads a body as the library reads chunks of responses.
  private static func content(_ bytes: [UInt8]) -> (content: [UInt8], trailers: String)? {
    var reader = ChunkedReader()
    var content: [UInt8] = []
    return bytes.withUnsafeBytes { raw in
      var position = 0
      while true {
        switch reader.read(raw, from: &position) {
        case .content(let range):
          content += raw[range]
          reader.contentTaken(range.count)
          position = range.upperBound
        case .end where position == raw.count:
          return (content, String(decoding: reader.trailers, as: UTF8.self))
        default: return nil
        }
      }
    }
  }

  @Test(
    "Sizes are written in hexadecimal", arguments: [1, 9, 10, 15, 16, 17, 255, 256, 4_095, 65_536, Int.max])
  func sizeLine(count: Int) {
    var buffer: [UInt8] = []
    RequestChunks.appendSizeLine(of: count, to: &buffer)
    #expect(String(decoding: buffer, as: UTF8.self) == String(count, radix: 16) + "\r\n")
    var fixed = [UInt8](repeating: 0x2E, count: 40)
    let start = fixed.withUnsafeMutableBytes { RequestChunks.writeSizeLine(of: count, before: 30, in: $0) }
    #expect(Array(fixed[start..<30]) == buffer)
    #expect(fixed[..<start].allSatisfy { $0 == 0x2E } && fixed[30...].allSatisfy { $0 == 0x2E })
    #expect(buffer.count <= RequestChunks.longestSizeLine)
  }

  @Test("A body in chunks is read back unchanged") func wholeBody() throws {
    var body: [UInt8] = []
    var content: [UInt8] = []
    for size in [1, 3, 16, 300] {
      let chunk = [UInt8](repeating: UInt8(truncatingIfNeeded: size), count: size)
      content += chunk
      RequestChunks.appendSizeLine(of: size, to: &body)
      body += chunk
      body += RequestChunks.chunkEnd.description.utf8
    }
    var plain = body
    try RequestChunks.appendEnd(to: &plain)
    #expect(plain.suffix(5).elementsEqual("0\r\n\r\n".utf8))
    #expect(Self.content(plain)?.content == content)
    try RequestChunks.appendEnd(
      trailers: [HTTPHeader(name: "Digest", value: "x"), HTTPHeader(name: "X-Empty", value: "")], to: &body)
    let read = try #require(Self.content(body))
    #expect(read.content == content && read.trailers == "Digest: x\r\nX-Empty:\r\n")
  }

  @Test(
    "Trailers that are needed before the body, or are not fields, are refused",
    arguments: ["content-length", "Transfer-Encoding", "HOST", "Trailer", "Authorization", "A B", ""])
  func forbiddenTrailer(name: String) {
    var buffer = Array("before".utf8)
    let fields = [HTTPHeader(name: "A", value: "1"), HTTPHeader(name: name, value: "2")]
    #expect(throws: RequestHeadViolation.self) { try RequestChunks.appendEnd(trailers: fields, to: &buffer) }
    #expect(throws: RequestHeadViolation.self) {
      try RequestChunks.appendEnd(trailers: [HTTPHeader(name: "A", value: "b\r\nc: d")], to: &buffer)
    }
    #expect(buffer == Array("before".utf8))
  }
}
