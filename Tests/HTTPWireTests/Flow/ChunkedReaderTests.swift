import HTTPWire
import Testing

@Suite("Chunked transfer coding") struct ChunkedReaderTests {
  /// The result of reading a body in pieces of `pieceSize` bytes.
  struct Reading: Equatable {
    var content = ""
    var last = ChunkedReader.ChunkStep.needsMore
    /// The number of bytes after the end.
    var excess = 0
  }

  private static func read(_ text: String, pieceSize: Int = 1 << 20, trailerLimit: Int = 1000) -> Reading {
    var reader = ChunkedReader(trailerSizeLimit: trailerLimit)
    var reading = Reading()
    let bytes = Array(text.utf8)
    var start = 0
    while start < bytes.count {
      let piece = Array(bytes[start..<min(start + pieceSize, bytes.count)])
      start += piece.count
      piece.withUnsafeBytes { piece in
        var position = 0
        while true {
          let step = reader.read(piece, from: &position)
          reading.last = step
          guard case .content(let range) = step else {
            if step == .end { reading.excess += piece.count - position }
            return
          }
          // Half of it at first. The bytes that were not consumed are offered again.
          let taken = max(1, range.count / 2)
          reading.content += String(decoding: piece[range.prefix(taken)], as: UTF8.self)
          reader.contentTaken(taken)
          position = range.lowerBound + taken
        }
      }
      if reading.last != .needsMore, reading.last != .end { return reading }
    }
    #expect(reader.isComplete == (reading.last == .end))
    return reading
  }

  static let valid: [(String, String)] = [
    ("0\r\n\r\n", ""), ("5\r\nhello\r\n0\r\n\r\n", "hello"),
    ("1\r\na\r\n00a\r\n0123456789\r\n000\r\n\r\n", "a0123456789"),
    ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"), ("5\nhello\n0\n\n", "hello"),
    ("5 \t\r\nhello\r\n0  \r\n\r\n", "hello"),
    ("5;a\r\nhello\r\n0;b=c\r\n\r\n", "hello"),
    ("5 ; a = \"b;\\\" \u{e9}\" ;c\r\nhello\r\n0\r\n\r\n", "hello"),
    ("1\r\n\n\r\n0\r\nA: b\r\n c\r\nB:\r\n\r\n", "\n"), ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
  ]

  @Test("Valid bodies are read in pieces of any size", arguments: valid)
  func validBody(text: String, content: String) {
    for pieceSize in 1...text.utf8.count {
      #expect(Self.read(text, pieceSize: pieceSize) == Reading(content: content, last: .end))
    }
  }

  static let malformed: [(String, HeadViolation)] = [
    ("\r\n", .chunkSize), ("x\r\n", .chunkSize), ("+5\r\nhello", .chunkSize), ("-5\r\nhello", .chunkSize),
    ("0x5\r\nhello", .chunkSize), ("5x\r\nhello", .chunkSize), ("5 5\r\nhello", .chunkSize),
    (" 5\r\nhello", .chunkSize),
    ("5.\r\nhello", .chunkSize), ("5,\r\nhello", .chunkSize), ("8000000000000000\r\n", .chunkSize),
    ("10000000000000005\r\nhello", .chunkSize), ("5\u{0}\r\nhello", .chunkSize), (";a\r\n", .chunkSize),
    ("5\rhello", .chunkExtension), ("5\r\r\nhello", .chunkExtension), ("5;a\nhello\r\n", .chunkExtension),
    ("5;\r\nhello", .chunkExtension), ("5;a=\r\nhello", .chunkExtension), ("5;a b\r\nhello", .chunkExtension),
    ("5;a=\"b\r\nhello", .chunkExtension), ("5;a=\"b\u{0}\"\r\n", .chunkExtension),
    ("5;a;;b\r\n", .chunkExtension),
    ("5;a=\"b\"c\r\n", .chunkExtension), ("5;a\rb\r\n", .chunkExtension),
    ("5;a=\"b\rc\"\r\nhello\r\n", .chunkExtension), ("5;a=\"\\\r\"\r\nhello\r\n", .chunkExtension),
    ("5\r\nhello0\r\n\r\n", .chunkEnd), ("5\r\nhello\r0\r\n", .chunkEnd), ("5\r\nhello\r\r\n", .chunkEnd),
    ("5\r\nhello \r\n", .chunkEnd),
    ("0\r\nno colon\r\n\r\n", .missingColon), ("0\r\n folded\r\n\r\n", .missingColon),
    ("0\r\nA : b\r\n\r\n", .spaceBeforeColon("A")),
    ("0\r\nA: \u{0}\r\n\r\n", .fieldValue(field: "A", character: 0)),
    ("0\r\nA: b\rc\r\n\r\n", .fieldValue(field: "A", character: 0x0D)),
    ("0\r\nA: b\r\n \u{0}\r\n\r\n", .fieldValue(field: "Trailer", character: 0)),
  ]

  @Test("Malformed bodies are refused in pieces of any size", arguments: malformed)
  func malformedBody(text: String, violation: HeadViolation) {
    for pieceSize in [1, 2, 3, 5, 7, 1000] {
      let reading = Self.read(text, pieceSize: pieceSize)
      #expect(reading.last == .refuse(violation), "\(pieceSize)")
    }
  }

  @Test("Bytes after the end are not read")
  func excess() {
    let reading = Self.read("3\r\nabc\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n")
    #expect(reading == Reading(content: "abc", last: .end, excess: 17))
  }

  @Test("A body that ends early is incomplete")
  func truncated() {
    let whole = "3\r\nabc\r\n0\r\nA: b\r\n\r\n"
    for count in 0..<whole.utf8.count {
      #expect(Self.read(String(decoding: whole.utf8.prefix(count), as: UTF8.self)).last == .needsMore)
    }
  }

  @Test("Trailers and size lines are limited")
  func limits() {
    let trailers = "0\r\n" + String(repeating: "A: 123456\r\n", count: 3) + "\r\n"
    #expect(Self.read(trailers, trailerLimit: 33).last == .end)
    #expect(Self.read(trailers, trailerLimit: 32).last == .refuseTrailers)
    for end in ["\r\n", "\n"] {
      #expect(Self.read("0\r\n" + end, trailerLimit: 0).last == .end, "no trailers after a head at the limit")
    }
    let longest = ChunkedReader.longestSizeLine
    #expect(Self.read("0;" + String(repeating: "a", count: longest - 4) + "\r\n\r\n").last == .end)
    #expect(
      Self.read("0;" + String(repeating: "a", count: longest - 3) + "\r\n\r\n").last
        == .refuse(.chunkExtension))
    #expect(Self.read(String(repeating: "0", count: longest + 1)).last == .refuse(.chunkExtension))
  }

  @Test("The length of a size line is counted for each chunk")
  func lengthOfEachSizeLine() {
    let padding = String(repeating: "a", count: ChunkedReader.longestSizeLine - 4)
    let reading = Self.read(
      "1;\(padding)\r\na\r\n1;\(padding)\r\nb\r\n0;\(padding)\r\n\r\n", pieceSize: 5000)
    #expect(reading == Reading(content: "ab", last: .end))
  }

  @Test("A violation is permanent")
  func violationStays() {
    var reader = ChunkedReader()
    for _ in 0..<2 {
      Array("x0\r\n\r\n".utf8).withUnsafeBytes { bytes in
        var position = 0
        #expect(reader.read(bytes, from: &position) == .refuse(.chunkSize))
      }
    }
  }
}
