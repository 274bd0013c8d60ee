@testable import AlamofireImage
import Foundation
import Testing

@Suite("Parts of multipart bodies")
struct MixedPartsTests {
  /// Returns the contents of the parts of a text, which comes at once.
  private func parts(_ text: String, type: String = "multipart/mixed; boundary=x", limit: Int = 1_000) throws
    -> [String]
  {
    var reader = try #require(MixedParts(contentType: type, limit: limit))
    return try reader.append(Data(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("The boundary is a parameter of any multipart type, quoted or not, in any case")
  func types() throws {
    let types = [
      "multipart/mixed; boundary=x", "multipart/x-mixed-replace;boundary=x", "MULTIPART/related; BOUNDARY=x",
      "multipart/mixed; charset=utf-8; boundary=x", "multipart/mixed ;  boundary=x  ; charset=utf-8",
      "multipart/mixed; boundary=\"x\"", "multipart/mixed; boundary=--x", "multipart/mixed; boundary=\"--x\"",
      "multipart/mixed; boundary=x; boundary=y",
    ]
    for type in types {
      #expect(try parts("--x\r\n\r\na\r\n--x--", type: type) == ["a"], "\(type)")
      #expect(try parts("--y\r\n\r\na\r\n--y--", type: type) == [], "\(type)")
    }
    let others: [(type: String, delimiter: String)] = [
      ("multipart/mixed; boundary=-x", "---x"), ("multipart/mixed; boundary=\"x", "--\"x"),
      ("multipart/mixed; boundary=x\"", "--x\""), ("multipart/mixed; boundary=\"", "--\""),
      ("multipart/mixed; boundary=X", "--X"), ("multipart/mixed; boundary=a=b", "--a=b"),
      (
        "multipart/mixed; boundary=\(String(repeating: "b", count: 70))",
        "--\(String(repeating: "b", count: 70))"
      ),
    ]
    for (type, delimiter) in others {
      #expect(try parts("\(delimiter)\r\n\r\na\r\n\(delimiter)--", type: type) == ["a"], "\(type)")
      #expect(try parts("--x\r\n\r\na\r\n--x--", type: type) == [], "\(type)")
    }
    for type in [
      "", ";", "boundary=x", "image/png; boundary=x", "multipart; boundary=x", "multipart/mixed",
      "multipart/mixed; x-boundary=x", "multipart/mixed; boundary", "multipart/mixed; boundary=--",
      "multipart/mixed; boundary=\"--\"", "multipart/mixed; boundary=\(String(repeating: "b", count: 71))",
      "multipart/mixed; boundary=\(String(repeating: "é", count: 36))", "x; multipart/mixed; boundary=x",
    ] {
      #expect(MixedParts(contentType: type, limit: 1) == nil, "\(type)")
    }
  }

  @Test("A delimiter is a line that ends, goes on with white space, or ends all parts")
  func delimiters() throws {
    #expect(try parts("--x\r\n\r\na\r\n--x\r\n\r\nb\r\n--x--") == ["a", "b"])
    #expect(try parts("--x\n\na\n--x\n\nb\n--x--") == ["a", "b"])
    #expect(try parts("--x \r\n\r\na\r\n--x\t\r\n\r\nb\r\n--x--") == ["a", "b"])
    #expect(try parts("--x\r\n\r\na--x\r\nb\r\n--x--") == ["a--x\r\nb"], "inside of a line")
    #expect(try parts("--x\r\n\r\na\r--x\r\nb\r\n--x--") == ["a\r--x\r\nb"], "behind a carriage return")
    #expect(try parts("--x\r\n\r\na\r\n--xy\r\nb\r\n--x--") == ["a\r\n--xy\r\nb"], "another boundary")
    #expect(try parts("--x\r\n\r\na\r\n--x.\r\nb\r\n--x--") == ["a\r\n--x.\r\nb"])
    #expect(try parts("x--x\r\n\r\na\r\n--x\r\n\r\nb\r\n--x--") == ["b"], "text before the first delimiter")
    #expect(try parts("\r\n--x\r\n\r\na\r\n--x--") == ["a"])
    #expect(try parts("--x\r\n\r\na\r\n--x") == [], "the delimiter is not complete")
    #expect(try parts("--x\r\n\r\na\r\n--x\r") == [])
    #expect(try parts("--x\r\n\r\na\r\n--x\r\n") == ["a"])
    #expect(try parts("--x\r\n\r\na\r\n--x--\r\n--x\r\n\r\nb\r\n--x--") == ["a"], "behind the end")
    #expect(try parts("--x--\r\n\r\na\r\n--x--") == [], "there are none")
  }

  @Test("The head of a part ends with an empty line, and the last line break belongs to the delimiter")
  func contents() throws {
    let contents: [(String, [String])] = [
      ("A: b\r\nC: d\r\n\r\ntext\r\n", ["text"]), ("A: b\nC: d\n\ntext\n", ["text"]),
      ("\r\ntext\r\n", ["text"]), ("A: b\r\n\r\n\r\n\r\ntext\r\n\r\n", ["\r\n\r\ntext\r\n"]),
      ("A: b\n\ntext\r\n", ["text"]), ("A: b\r\n\r\none\n\ntwo\r\n", ["one\n\ntwo"]),
      ("A: b\r\n\r\none\r\n\r\ntwo\n", ["one\r\n\r\ntwo"]), ("A: b\n\none\r\n\r\ntwo\n", ["one\r\n\r\ntwo"]),
      ("A: b\n\r\none\n\ntwo\r\n", ["one\n\ntwo"]), ("\nA: b\r\n\r\ntext\n", ["A: b\r\n\r\ntext"]),
      ("A: b\n\rC: d\r\n\r\ntext\r\n", ["text"]),
      ("A: b\r\n\r\ntext\n\r\n", ["text\n"]), ("A: b\r\n\r\ntext\r\r\n", ["text\r"]),
      ("A: b\r\n\r\n\r\n", []), ("A: b\r\n\r\n", []), ("A: b\r\n", []), ("no head\r\n", []),
      ("A: b\r\n\r\n \r\n", [" "]),
    ]
    for (part, expected) in contents {
      #expect(try parts("--x\r\n\(part)--x--") == expected, "\(part.debugDescription)")
    }
  }

  @Test("A part may have as many bytes as the limit, with its head, whether its end has come or not")
  func limits() throws {
    let part = "\r\n\r\n0123456789\r\n"
    #expect(try parts("--x\(part)--x--", limit: part.utf8.count) == ["0123456789"])
    for (text, count) in [
      ("--x\(part)--x--", part.utf8.count), ("--x\(part)", part.utf8.count), ("no delimiter at all", 19),
      ("--x\(part)--x\(part)--x--", part.utf8.count),
    ] {
      #expect(throws: ImageError.limitExceeded(.bytes, limit: count - 1, actual: count)) {
        try parts(text, limit: count - 1)
      }
    }
    #expect(try parts("--x\r\n\r\n0123456789", limit: 14) == [], "the part goes on")
    #expect(throws: ImageError.limitExceeded(.bytes, limit: 13, actual: 14)) {
      try parts("--x\r\n\r\n0123456789", limit: 13)
    }
    // What follows the last part does not count, whether it comes with it or later.
    let epilogue = String(repeating: "e", count: 500)
    #expect(try parts("--x\(part)--x--\(epilogue)", limit: 20) == ["0123456789"])
    var reader = try #require(MixedParts(contentType: "multipart/mixed; boundary=x", limit: 20))
    #expect(try reader.append(Data("--x\(part)--x--".utf8)).count == 1)
    for _ in 0..<3 { #expect(try reader.append(Data(epilogue.utf8)) == []) }
    // Together, the parts may have more.
    #expect(try parts(String(repeating: "--x\(part)", count: 9) + "--x--", limit: 20).count == 9)
  }

  /// Returns the processor time of this thread for a chunk of 16 MB with this many parts, in seconds.
  private func cost(_ parts: Int) throws -> Double {
    let part = Data("--x\n\n".utf8) + Data(repeating: UInt8(ascii: "a"), count: (16 << 20) / parts) + [0x0A]
    var chunk = Data()
    chunk.reserveCapacity(part.count * parts)
    for _ in 0..<parts { chunk.append(part) }
    var reader = try #require(MixedParts(contentType: "multipart/mixed; boundary=x", limit: 32 << 20))
    let start = seconds()
    #expect(try reader.append(chunk).count == parts - 1)
    return seconds() - start
  }

  private func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  @Test("No byte of a large part in very many chunks is searched twice") func manyChunks() throws {
    var reader = try #require(MixedParts(contentType: "multipart/mixed; boundary=x", limit: 32 << 20))
    #expect(try reader.append(Data("--x\n\n".utf8)).isEmpty)
    let piece = Data(repeating: UInt8(ascii: "a"), count: 256)
    var unsearched = 0
    for count in 1...65_536 {
      #expect(try reader.append(piece).isEmpty)
      unsearched = max(unsearched, count * piece.count - reader.searched)
    }
    #expect(unsearched < 8)
    #expect(try reader.append(Data("\n--x--".utf8)).map(\.count) == [16 << 20])
  }

  @Test(
    "Text that only looks like a delimiter is read once", arguments: ["a--x", "\n--x", "--x-x"])
  func lookalikes(end: String) throws {
    var reader = try #require(MixedParts(contentType: "multipart/mixed; boundary=x", limit: 1 << 20))
    #expect(try reader.append(Data("--x\n\n".utf8)).isEmpty)
    var count = 2
    for _ in 0..<50 {
      let chunk = Data((String(repeating: "a", count: 100) + end).utf8)
      #expect(try reader.append(chunk).isEmpty)
      count += chunk.count
      #expect(reader.searched >= count - 8 && reader.searched <= count)
    }
  }

  @Test("A chunk of many parts costs little more than one of few") func manyParts() throws {
    // If each part copied the rest of the chunk, it would cost many times as much.
    let (few, many) = (try cost(2), try cost(4096))
    #expect(many < 4 * few + 0.1, "\(many) s beside \(few) s")
  }

  @Test("A body that comes byte by byte has the same parts, each with its last byte of the delimiter")
  func bytes() throws {
    let text = "preamble\r\n--x\r\nA: b\r\n\r\none\r\n--x\r\n\r\ntwo\r\n--xyz\r\n--x--\r\nepilogue"
    var reader = try #require(MixedParts(contentType: "multipart/mixed; boundary=x", limit: 100))
    var found: [String] = []
    var places: [Int] = []
    for (place, byte) in Data(text.utf8).enumerated() {
      let isOver = reader.isOver
      let parts = try reader.append(Data([byte]))
      #expect(!isOver || parts.isEmpty)
      if !parts.isEmpty { places.append(place) }
      found += parts.map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(found == ["one", "two\r\n--xyz"])
    let ends = [text.range(of: "one\r\n--x\r\n"), text.range(of: "--xyz\r\n--x--")].compactMap { $0 }
    #expect(places == ends.map { text.utf8.distance(from: text.startIndex, to: $0.upperBound) - 1 })
    #expect(reader.isOver)
  }
}
