import HTTPWire
import Randomness
import Testing

@Suite struct ResponseAssemblyTests {
  /// Reads lines, each with CRLF, and returns the result of the last one.
  @discardableResult
  static func feed(
    _ assembly: inout ResponseAssembly, _ lines: String..., ending: String = "\r\n"
  ) -> ResponseAssembly.LineAction {
    var action = ResponseAssembly.LineAction.keep
    for line in lines {
      action = Array((line + ending).utf8).withUnsafeBytes { assembly.lineReceived($0) }
    }
    return action
  }

  static func head(_ action: ResponseAssembly.LineAction) -> ResponseHead? {
    if case .deliver(let head) = action { head } else { nil }
  }

  static func isContentCoded(_ assembly: ResponseAssembly) -> Bool {
    assembly.head?.block.marks.contains(.contentEncoding) == true
  }

  static func isRefused(_ action: ResponseAssembly.LineAction) -> Bool {
    if case .refuseHead = action { true } else { false }
  }

  static func violation(_ action: ResponseAssembly.LineAction) -> HeadViolation? {
    if case .refuse(let violation) = action { violation } else { nil }
  }

  @Test("The empty line delivers the head") func emptyLine() throws {
    var assembly = ResponseAssembly()
    #expect(Self.head(Self.feed(&assembly, "HTTP/1.1 200 OK", "A: 1", "B: 2", "a: 3")) == nil)
    let head = try #require(Self.head(Self.feed(&assembly, "")))
    #expect(head.status == 200)
    #expect(head.version == .http1_1)
    #expect(head.block.fields.map(\.name) == ["A", "B", "a"])
    #expect(head.block.value(of: "a") == "1, 3")
    #expect(assembly.head?.status == 200)
  }

  @Test(
    "An encoded body is detected",
    arguments: [
      ("Content-Encoding: gzip", true), ("content-encoding:br", true),
      ("Transfer-Encoding: chunked", false),
      ("TRANSFER-ENCODING:  Chunked ,", false), ("Content-Type: a/b", false), ("T:", false),
    ])
  func encodedBody(line: String, isEncoded: Bool) {
    var assembly = ResponseAssembly()
    Self.feed(&assembly, "HTTP/1.1 200 OK", line, "")
    #expect(Self.isContentCoded(assembly) == isEncoded)
  }

  static let statusLines: [(String, Int, HTTPVersion)] = [
    ("HTTP/1.0 404 Not Found", 404, .http1_0), ("HTTP/1.1 200 OK", 200, .http1_1),
    ("HTTP/1.1 200", 200, .http1_1), ("HTTP/1.1 200 ", 200, .http1_1), ("HTTP/2 503 ", 503, .http2),
    ("HTTP/2 204", 204, .http2), ("HTTP/3 200", 200, .http3), ("HTTP/1.1  201 Created", 201, .http1_1),
    ("HTTP/1.1 200OK", 200, .http1_1), ("HTTP/1.1 404-Not-Found", 404, .http1_1),
    ("HTTP/1.1 200\tOK", 200, .http1_1), ("HTTP/1.1 999 What", 999, .http1_1),
    ("HTTP/1.1 101 Switching Protocols", 101, .http1_1),
  ]

  @Test("A status line has version and status", arguments: statusLines)
  func statusLine(line: String, status: Int, version: HTTPVersion) throws {
    var assembly = ResponseAssembly()
    let head = try #require(Self.head(Self.feed(&assembly, line, "")))
    #expect(head.status == status)
    #expect(head.version == version)
  }

  @Test(
    "An invalid status line is refused",
    arguments: [
      "", "H", "HTTP/", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 2x0 OK", "HTTP/1.1 20", "http/1.1 200 OK",
      "HTTP/1.1 2000 OK", "HTTP-1.1 200 OK", "HTTP 1.1 200 OK", "HTTP/1,1 200 OK", "HTTP/1.x 200 OK",
      "HTTP/1.1\t200 OK", "ICY 200 OK", "HTTP/1.1 -20 OK", " HTTP/1.1 200 OK", "\u{0}\u{1}\u{2}",
      "HTTP/2.0 200 OK", "HTTP/3.0 200", "HTTP/4 200", "HTTP/1 200", "HTTP/11 200 OK", "HTTP/1.1 2000",
      "HTTP/1.1 200 O\rK", "HTTP/1.1 200 O\u{0}K", "HTTP/1.1 200 OK\r",
    ])
  func invalidStatusLines(line: String) {
    var assembly = ResponseAssembly()
    #expect(Self.violation(Self.feed(&assembly, line)) == .statusLine)
    #expect(assembly.head == nil)
  }

  @Test("Informational heads are delivered apart from the final head") func informationalHeads() throws {
    var assembly = ResponseAssembly()
    let early = Self.feed(
      &assembly, "HTTP/1.1 100 Continue", "", "HTTP/1.1 103 Early Hints", "Link: </a>",
      "Content-Encoding: br", "")
    #expect(Self.head(early) == nil)
    var hints: ResponseHead?
    if case .inform(let head) = early { hints = head }
    #expect(hints?.status == 103 && hints?.block.value(of: "Link") == "</a>")
    #expect(assembly.head == nil)
    let head = try #require(Self.head(Self.feed(&assembly, "HTTP/1.1 200 OK", "B: 2", "")))
    #expect(head.block.fields.map(\.name) == ["B"])
    #expect(!Self.isContentCoded(assembly))
  }

  @Test("A head has fields from its first field line to the next status line")
  func headWithFields() {
    var assembly = ResponseAssembly()
    #expect(!assembly.hasFields)
    for line in ["HTTP/1.1 103 Early Hints", "HTTP/1.1 200 OK"] {
      Self.feed(&assembly, line)
      #expect(!assembly.hasFields)
      Self.feed(&assembly, "A: 1")
      #expect(assembly.hasFields)
      Self.feed(&assembly, "")
    }
    assembly.restart(headerSizeLimit: 1000)
    #expect(!assembly.hasFields)
  }

  @Test("Trailers are not part of the head") func trailers() {
    var assembly = ResponseAssembly()
    Self.feed(&assembly, "HTTP/1.1 200 OK", "A: 1", "")
    let action = Self.feed(&assembly, "Digest: x", " folded", "", "B: 2", "")
    #expect(Self.head(action) == nil)
    #expect(assembly.head?.status == 200)
    #expect(assembly.head?.block.fields.count == 1)
  }

  @Test("A status line inside of a head or among trailers is refused")
  func secondStatusLine() {
    var assembly = ResponseAssembly()
    let inHead = Self.feed(&assembly, "HTTP/1.1 200 OK", "A: 1", "HTTP/1.1 500 X: y")
    #expect(Self.violation(inHead) == .fieldName("HTTP/1.1 500 X"))
    assembly = ResponseAssembly()
    #expect(Self.violation(Self.feed(&assembly, "HTTP/1.1 200 OK", "", "HTTP/1.1 500 No")) == .missingColon)
  }

  @Test("A folded line belongs to the field before it") func foldedLine() throws {
    var assembly = ResponseAssembly()
    let head = try #require(
      Self.head(
        Self.feed(&assembly, "HTTP/1.1 200 OK", "A: one", " two: three", "\tfour", "B: 2", "")))
    #expect(head.block.fields.map(\.name) == ["A", "B"])
    #expect(head.block.value(of: "A") == "one two: three\tfour")
  }

  @Test("Bare line feeds end lines") func bareLineFeeds() throws {
    var assembly = ResponseAssembly()
    let head = try #require(
      Self.head(Self.feed(&assembly, "HTTP/1.1 200 OK", "A: 1", "B: 2", "", ending: "\n")))
    #expect(head.block.value(of: "B") == "2")
  }

  @Test(
    "A content coding is detected",
    arguments: [
      ("Content-Encoding: gzip", true), ("content-encoding:br", true), ("CONTENT-ENCODING: x", true),
      ("Content-Encodings: gzip", false), ("Content-Encodin: gzip", false), ("Content-Length: 3", false),
      ("X: Content-Encoding: gzip", false),
    ])
  func contentCoding(line: String, isEncoded: Bool) {
    var assembly = ResponseAssembly()
    Self.feed(&assembly, "HTTP/1.1 200 OK", line, "")
    #expect(Self.isContentCoded(assembly) == isEncoded)
  }

  @Test("A head at the limit is accepted and one byte more is refused") func headLimit() {
    // "A: 123456\r\n" has eleven bytes.
    for (limit, isRefused) in [(22, false), (21, true)] {
      var assembly = ResponseAssembly(headerSizeLimit: limit)
      Self.feed(&assembly, "HTTP/1.1 200 OK", "A: 123456")
      #expect(Self.isRefused(Self.feed(&assembly, "A: 123456")) == isRefused)
    }
  }

  @Test("Endless informational heads exceed the limit") func endlessInformationalHeads() {
    var assembly = ResponseAssembly(headerSizeLimit: 1000)
    var heads = 0
    while heads < 1000, !Self.isRefused(Self.feed(&assembly, "HTTP/1.1 103 Early Hints", "A: 1")) {
      Self.feed(&assembly, "")
      heads += 1
    }
    #expect((10..<1000).contains(heads))
  }

  @Test("A restarted assembly has no state of the earlier response") func restart() throws {
    var assembly = ResponseAssembly(headerSizeLimit: 20)
    Self.feed(&assembly, "HTTP/1.0 500 No", "Content-Encoding: x")
    assembly.restart(headerSizeLimit: 1000)
    #expect(assembly.head == nil)
    #expect(Self.head(Self.feed(&assembly, "")) == nil)
    let head = try #require(
      Self.head(Self.feed(&assembly, "HTTP/1.1 200 OK", "A: 12345678901234567890", "")))
    #expect(head.block.fields.count == 1)
    #expect(!Self.isContentCoded(assembly))
  }

  @Test("Random lines deliver one head at most") func randomLines() {
    var random = SeededGenerator(seed: 7)
    let lines = [
      "HTTP/1.1 200 OK", "HTTP/1.1 100 Continue", "HTTP/2 404", "A: 1", " folded", "", "", "garbage",
      "HTTP/1.1",
    ]
    for _ in 0..<500 {
      var assembly = ResponseAssembly(headerSizeLimit: 64)
      var deliveries = 0
      for _ in 0..<20 {
        let line = lines[Int(random.next() % UInt64(lines.count))]
        if Self.head(Self.feed(&assembly, line)) != nil { deliveries += 1 }
      }
      #expect(deliveries <= 1)
      #expect((assembly.head != nil) == (deliveries == 1))
    }
  }
}
