import HTTPWire
import Randomness
import Scenarios
import Testing

/// The rules of `Documentation/HTTPReading.md`, and the ends of responses (RFC 9112 §6.3).
@Suite("Responses of HTTP/1.1") struct HTTP1ReaderTests {
  typealias Part = ResponsePart

  private static func read(_ text: String, _ method: String = "GET", limit: Int = 1_000) -> [Part] {
    SegmentedReading.read(Array(text.utf8), method: method, limit: limit, segments: [])
  }

  private static func fields(_ fields: (String, String)...) -> [HTTPHeader] {
    fields.map { HTTPHeader(name: $0.0, value: $0.1) }
  }

  private static func end(_ content: String, _ trailers: [HTTPHeader] = [], excess: Int = 0) -> Part {
    .end(content: Array(content.utf8), trailers: trailers, excess: excess)
  }

  private static func open(_ content: String, mayEnd: Bool = false) -> Part {
    .open(content: Array(content.utf8), mayEnd: mayEnd)
  }

  static let responses: [(String, String, [Part])] = [
    (
      "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      [.head(200, fields(("Content-Length", "2"))), end("ok")]
    ),
    (
      "GET", "HTTP/1.1 200 OK\nContent-Length: 2\n\nokHTTP",
      [.head(200, fields(("Content-Length", "2"))), end("ok", excess: 4)]
    ),
    (
      "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
      [.head(200, fields(("Content-Length", "0"))), end("")]
    ),
    (
      "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
      [.head(200, fields(("Content-Length", "3"))), open("ok")]
    ),
    ("GET", "HTTP/1.0 200 OK\r\n\r\nok\r\n", [.head(200, []), open("ok\r\n", mayEnd: true)]),
    ("GET", "HTTP/1.1 200 OK\r\n\r\n", [.head(200, []), open("", mayEnd: true)]),
    (
      "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nx",
      [.head(200, fields(("Transfer-Encoding", "chunked"))), end("ok", excess: 1)]
    ),
    (
      "GET",
      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\nA: b\n c\nD:\n\n",
      [
        .head(200, fields(("Content-Length", "9"), ("Transfer-Encoding", "chunked"))),
        end("a", fields(("A", "b c"), ("D", ""))),
      ]
    ),
    (
      "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
      [.head(200, fields(("Transfer-Encoding", "chunked"))), open("ok")]
    ),
    (
      "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok",
      [.head(200, fields(("Transfer-Encoding", "identity"))), open("ok", mayEnd: true)]
    ),
    (
      "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
      [.head(200, fields(("Content-Length", "2"))), end("")]
    ),
    (
      "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      [.head(200, fields(("Transfer-Encoding", "chunked"))), end("")]
    ),
    ("HEAD", "HTTP/1.0 404 No\r\n\r\nno", [.head(404, []), end("", excess: 2)]),
    (
      "GET", "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n",
      [.head(204, fields(("Content-Length", "2"))), end("")]
    ),
    (
      "GET", "HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\n",
      [.head(304, fields(("Content-Length", "2"))), end("")]
    ),
    (
      "GET", "HTTP/1.1 205 No\r\nContent-Length: 0\r\n\r\n",
      [.head(205, fields(("Content-Length", "0"))), end("")]
    ),
    (
      "CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nTLS",
      [.head(200, fields(("Content-Length", "2"))), end("", excess: 3)]
    ),
    ("CONNECT", "HTTP/1.1 299 OK\r\n\r\n", [.head(299, []), end("")]),
    (
      "CONNECT", "HTTP/1.1 300 No\r\nContent-Length: 2\r\n\r\nno",
      [.head(300, fields(("Content-Length", "2"))), end("no")]
    ),
    (
      "CONNECT", "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno",
      [.head(407, fields(("Content-Length", "2"))), end("no")]
    ),
    (
      "GET", "HTTP/1.1 101 Up\r\nUpgrade: a\r\n\r\n\u{1}\u{2}",
      [.head(101, fields(("Upgrade", "a"))), end("", excess: 2)]
    ),
    (
      "GET",
      "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nC: d\r\nContent-Length: 1\r\n\r\nx",
      [
        .informational(100, []), .informational(103, fields(("A", "b"))),
        .head(200, fields(("C", "d"), ("Content-Length", "1"))), end("x"),
      ]
    ),
    (
      "HEAD", "HTTP/1.1 102 Wait\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      [.informational(102, fields(("Content-Length", "9"))), .head(200, []), end("")]
    ),
    ("GET", "HTTP/1.1 103 Early\r\n\r\n", [.informational(103, []), open("")]),
    (
      "GET", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\td\r\nE: f\r\nContent-Length: 0\r\n\r\n",
      [.head(200, fields(("A", "b c\td"), ("E", "f"), ("Content-Length", "0"))), end("")]
    ),
    ("GET", "", []), ("GET", "HTTP/1.1 200 OK\r\nA: b\r\n", [open("")]), ("GET", "H", [open("")]),
    ("GET", "HTTP/1.1 200 OK", [open("")]),
    // Nonsense, and responses without a head (HTTP/0.9).
    ("GET", "<html>", [.violation(.statusLine)]), ("GET", "h", [.violation(.statusLine)]),
    ("GET", "HTTPS/1.1 200 OK\r\n", [.violation(.statusLine)]),
    ("GET", "\r\nHTTP/1.1 200 OK\r\n\r\n", [.violation(.statusLine)]),
    ("GET", "SSH-2.0-OpenSSH_9", [.violation(.statusLine)]),
    ("GET", "\u{15}\u{3}\u{1}", [.violation(.statusLine)]),
    ("GET", "HTTP/1.1 abc\r\n", [.violation(.statusLine)]),
    ("GET", "HTTP/1.1 099 No\r\n", [.violation(.statusCode(99))]),
    ("GET", "HTTP/2 200 OK\r\n", [.violation(.version("HTTP/2"))]),
    ("GET", "HTTP/3 200 OK\r\n", [.violation(.version("HTTP/3"))]),
    ("GET", "HTTP/1.0 101 Up\r\n\r\n", [.violation(.unrequestedUpgrade)]),
    ("GET", "HTTP/1.1 200 OK\r\nA b\r\n", [.violation(.missingColon)]),
    ("GET", "HTTP/1.1 200 OK\r\nA : b\r\n", [.violation(.spaceBeforeColon("A"))]),
    ("GET", "HTTP/1.1 200 OK\r\nA: b\r\nC: \u{0}\r\n", [.violation(.fieldValue(field: "C", character: 0))]),
    ("GET", "HTTP/1.1 200 OK\r\nA: b\rc: d\r\n", [.violation(.fieldValue(field: "A", character: 0x0D))]),
    ("GET", "HTTP/1.1 200 OK\r\n A: b\r\n", [.violation(.foldBeforeFirstField)]),
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n", [.violation(.foldedFraming("Content-Length"))]),
    (
      "GET", "HTTP/1.1 200 OK\r\nB: c\r\nContent-Length: 1\r\nA: b\r\nContent-Length: 2\r\n",
      [.violation(.contradictingContentLengths)]
    ),
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n", [.violation(.contentLength)]),
    ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n", [.violation(.transferCoding("gzip"))]),
    ("GET", "HTTP/1.1 302 No\r\nLocation: a\r\nLocation: b\r\n\r\n", [.violation(.contradictingLocations)]),
    ("GET", "HTTP/1.1 103 Early\r\nA b\r\n", [.violation(.missingColon)]),
    (
      "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokx",
      [.head(200, fields(("Transfer-Encoding", "chunked"))), .violation(.chunkEnd)]
    ),
    (
      "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA b\r\n\r\n",
      [.head(200, fields(("Transfer-Encoding", "chunked"))), .violation(.missingColon)]
    ),
  ]

  @Test("A response has the same parts in one segment, in each two, and byte by byte", arguments: responses)
  func response(method: String, text: String, parts: [Part]) {
    let bytes = Array(text.utf8)
    let expected = bytes.isEmpty ? [Self.open("")] : parts
    #expect(Self.read(text, method) == expected)
    for size in 1..<8 {
      #expect(
        SegmentedReading.read(bytes, method: method, limit: 1_000, segments: [size], mostTaken: size)
          == expected,
        "in pieces of \(size)")
    }
    for cut in 0..<bytes.count {
      #expect(
        SegmentedReading.read(bytes, method: method, limit: 1_000, segments: [cut, bytes.count]) == expected,
        "in two at \(cut)")
    }
  }

  @Test("Each beginning of a response is read as the reference reader reads it", arguments: responses)
  func beginnings(method: String, text: String, parts: [Part]) {
    let bytes = Array(text.utf8)
    for count in 0...bytes.count {
      let beginning = Array(bytes.prefix(count))
      let expected = ReferenceReader.read(beginning, method: method, limit: 1_000)
      #expect(
        SegmentedReading.read(beginning, method: method, limit: 1_000, segments: []) == expected, "\(count)")
      #expect(
        SegmentedReading.read(beginning, method: method, limit: 1_000, segments: [1]) == expected, "\(count)")
    }
  }

  @Test("Heads, informational heads and trailers share one limit") func limit() {
    // Each field has eleven bytes, each informational status line twenty.
    let early = "HTTP/1.1 103 Early\r\nA: 123456\r\n\r\n"
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: 123456\r\n\r\n"
    let text = early + early + head + "0\r\nA: 123456\r\n\r\n"
    let size = 2 * (20 + 11) + 28 + 11 + 11
    for limit in 0...(size + 2) {
      for segments in [[], [1], [7]] {
        let parts = SegmentedReading.read(Array(text.utf8), method: "GET", limit: limit, segments: segments)
        #expect((parts.last == .tooLarge) == (limit < size), "\(limit) \(segments) \(parts)")
        #expect(parts == ReferenceReader.read(Array(text.utf8), method: "GET", limit: limit), "\(limit)")
      }
    }
  }

  @Test("A line without an end is refused once it is longer than the limit") func endlessLines() {
    for (start, limit, longest) in [
      ("HTTP/1.1 200 OK\r\nA: ", 100, 102), ("HTTP/1.1 200 O", 100, 1_024), ("HTTP/1.1 200 O", 5_000, 5_002),
    ] {
      var reading = SegmentedReading(method: "GET", limit: limit)
      reading.feed(Array(start.utf8))
      let first =
        start.utf8.count
        - (start.lastIndex(of: "\r\n").map { start.utf8.distance(from: start.startIndex, to: $0) + 2 } ?? 0)
      for count in first..<longest {
        #expect(!reading.isOver, "\(count) bytes")
        reading.feed([0x61])
      }
      #expect(!reading.isOver)
      reading.feed([0x61])
      #expect(reading.parts == [.tooLarge], "\(start)")
    }
  }

  @Test("A reader reports how the body continues") func framing() {
    func reader(_ text: String, _ method: String = "GET") -> HTTP1Reader {
      var reader = HTTP1Reader(method: method)
      Array(text.utf8).withUnsafeBytes { raw in
        var position = 0
        guard case .head = reader.read(raw, from: &position) else { return }
        #expect(reader.headSize == raw.count && position == raw.count)
      }
      return reader
    }
    let length = reader("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
    #expect(
      length.announcedLength == 7 && length.contentLeft == 7 && length.hasBody && !length.endsWithConnection)
    let head = reader("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "HEAD")
    #expect(head.announcedLength == nil && head.contentLeft == 0 && !head.hasBody && !head.endsWithConnection)
    let open = reader("HTTP/1.1 200 OK\r\n\r\n")
    #expect(open.announcedLength == nil && open.contentLeft == 0 && open.hasBody && open.endsWithConnection)
    let chunked = reader("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n")
    #expect(chunked.announcedLength == nil && chunked.hasBody && !chunked.endsWithConnection)
    #expect(chunked.framing.isAmbiguous(.http1_1) && chunked.trailers == nil)
  }

  @Test("Fields have the same marks, however their bytes arrive") func marks() {
    let text = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nConnection: close\r\nETag: b\r\nKeep-Alive: c\r\n\r\n"
    for size in [1, 30, 1_000] {
      var reader = HTTP1Reader(method: "GET")
      #expect(!reader.hasBegun)
      var head: ResponseHead?
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let piece = Array(rest.prefix(size))
        rest = rest.dropFirst(piece.count)
        var position = 0
        let step = piece.withUnsafeBytes { reader.read($0, from: &position) }
        #expect(reader.hasBegun)
        if case .head(let received) = step { head = received }
      }
      #expect(head?.block.marks == [.setCookie, .connection, .keepAlive, .reusable], "in pieces of \(size)")
      #expect(head?.block == head.map { FieldBlock(bytes: $0.block.bytes) }, "in pieces of \(size)")
    }
  }

  @Test("Trailers are there when the body has ended") func trailers() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    let text = Array((head + "0\r\nA: b\r\n\r\n").utf8)
    var reader = HTTP1Reader(method: "GET")
    for (index, byte) in text.enumerated() {
      #expect(reader.trailers == nil, "after \(index) bytes")
      var position = 0
      _ = [byte].withUnsafeBytes { reader.read($0, from: &position) }
    }
    #expect(reader.trailers?.fields == [HTTPHeader(name: "A", value: "b")])
  }

  @Test("A restarted reader has no state of the earlier response", .steps) func restart() {
    let texts = [
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nHalf",
      "HTTP/1.0 200 OK\r\n\r\nx", "nonsense", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
    ]
    for text in texts {
      step("after \(text.debugDescription)")
      var reader = HTTP1Reader(method: "GET")
      func feed(_ text: String) -> [String] {
        var steps: [String] = []
        Array(text.utf8).withUnsafeBytes { raw in
          var position = 0
          for _ in 0..<5 {
            switch reader.read(raw, from: &position) {
            case .content(let range):
              steps.append("content \(range.count)")
              reader.contentTaken(range.count, from: &position)
            case .head(let head): steps.append("head \(head.status) \(head.block.fields.count)")
            case let step: return steps.append("\(step)")
            }
          }
        }
        return steps
      }
      _ = feed(text)
      reader.restart(method: "HEAD", headerSizeLimit: 100)
      #expect(!reader.hasBegun && reader.headSize == 0 && !reader.hasBody && !reader.endsWithConnection)
      #expect(reader.trailers == nil && reader.announcedLength == nil && reader.contentLeft == 0)
      #expect(feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") == ["head 200 1", "end"], "\(text)")
      reader.restart(method: "GET", headerSizeLimit: 20)
      #expect(feed("HTTP/1.1 200 OK\r\nA: 1234567890123456789\r\n") == ["refuseHead"], "\(text)")
      #expect(feed("HTTP/1.1 200 OK\r\n\r\n") == ["refuseHead"], "a refusal is permanent")
      reader.restart(method: "GET", headerSizeLimit: 20)
      #expect(feed("x") == feed("HTTP/1.1 200 OK\r\n\r\n"), "a violation is permanent")
    }
  }

  @Test("Random responses are read as the reference reader reads them, in random segments")
  func randomResponses() {
    for seed in UInt64(0)..<4_000 {
      var random = SeededGenerator(seed: seed)
      let text = RandomResponse.text(&random)
      let method = ["GET", "GET", "GET", "HEAD", "CONNECT"].randomElement(using: &random) ?? "GET"
      let limit = [30, 60, 200, 10_000].randomElement(using: &random) ?? 0
      let expected = ReferenceReader.read(text, method: method, limit: limit)
      let segments = (0..<20).map { _ in Int.random(in: 1...24, using: &random) }
      for sizes in [[], [1], segments] {
        let parts = SegmentedReading.read(
          text, method: method, limit: limit, segments: sizes,
          mostTaken: Int.random(in: 1...9, using: &random))
        #expect(
          parts == expected, "seed \(seed), segments \(sizes): \(String(decoding: text, as: UTF8.self))")
      }
    }
  }
}

/// Texts that look like responses, with some faults.
enum RandomResponse {
  private static let lines = [
    "A: b", "Set-Cookie: 12345678901234567890", "Content-Length: 5", "Content-Length: 3", "content-length:5",
    "Transfer-Encoding: chunked", "ETag:", " folded", "\tfolded", "A : b", "no colon", "B: c\rd", "C: \u{0}",
    "Connection: close", "X-Long: " + String(repeating: "l", count: 30), "Location: a", "É: b", "F: é",
  ]
  private static let starts = [
    "HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 204", "HTTP/1.1 103 Early", "HTTP/1.1 100 Continue",
    "HTTP/1.1 101 Up", "HTTP/1.1 304 No", "HTTP/2 200", "HTTP/1.1 20", "HTTP/1.1 407 Login", "http/1.1 200",
  ]
  private static let bodies = [
    "hello", "hello, world", "5\r\nhello\r\n0\r\n\r\n",
    "3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n v\r\n\r\nmore",
    "5\r\nhel", "0\r\n\r\n", "a\r\n0123456789\r\n1\n.\n0\nT:\n\n", "5\r\nhelloX", "", "0\r\nT u\r\n\r\n",
  ]

  static func text(_ random: inout SeededGenerator) -> [UInt8] {
    var text = ""
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let newline = Int.random(in: 0..<4, using: &random) == 0 ? "\n" : "\r\n"
      // Most texts begin with what most servers send.
      let isUsual = Int.random(in: 0..<3, using: &random) > 0
      text += (isUsual ? starts[0] : starts.randomElement(using: &random) ?? "") + newline
      for _ in 0..<Int.random(in: 0...5, using: &random) {
        let range = isUsual ? lines[..<7] : lines[...]
        text += (range.randomElement(using: &random) ?? "") + newline
      }
      text += newline + (bodies.randomElement(using: &random) ?? "")
    }
    return Array(text.utf8)
  }
}
