import HTTPWire
import Randomness
import Testing

@Suite struct FieldBlockTests {
  static func block(_ text: String) -> FieldBlock { FieldBlock(bytes: Array(text.utf8)) }

  @Test("Fields preserve their order and spelling") func order() {
    let block = Self.block("A: 1\r\nb:2\r\nA:\t 3 \t\r\nEmpty:\r\n")
    #expect(block.fields.map(\.name) == ["A", "b", "A", "Empty"])
    #expect(block.fields.map(\.value) == ["1", "2", "3", ""])
  }

  @Test("Whole names are compared case-insensitively") func names() {
    let block = Self.block("Content-Type: a\r\nContent-Type-Options: b\r\nX-Content-Type: c\r\n")
    #expect(block.value(of: "content-TYPE") == "a")
    #expect(block.contains("x-content-type"))
    #expect(!block.contains("Content"))
    #expect(block.value(of: "Type") == nil)
  }

  @Test("Repeated fields are joined") func repeatedFields() {
    let block = Self.block("A: 1\r\nB: x\r\na: 2\r\nA:\r\n")
    #expect(block.value(of: "A") == "1, 2, ")
  }

  @Test(
    "All fields and members have to state the same length",
    arguments: [
      ("Content-Length: 5", 5), ("content-length: 5\r\nContent-Length: 5", 5), ("Content-Length: 5, 5", 5),
      ("Content-Length: 5,\t05 ,5\r\nA: 6\r\nContent-Length: 5", 5), ("Content-Length: 0", 0),
      ("Content-Length: 9223372036854775807", .max), ("Content-Length: 9223372036854775808", nil),
      ("Content-Length: 5, 6", nil), ("Content-Length: 5\r\nContent-Length: 6", nil),
      ("Content-Length: 5\r\nContent-Length:", nil), ("Content-Length: 5,", nil), ("Content-Length:", nil),
      ("Content-Length: +5", nil), ("Content-Length: -5", nil), ("Content-Length: 5 5", nil), ("A: 5", nil),
    ] as [(String, Int64?)])
  func lengths(fields: String, length: Int64?) {
    #expect(Self.block(fields + "\r\n").contentLength == length)
  }

  @Test("Lines without a name are ignored") func linesWithoutName() {
    let block = Self.block("no colon\r\n: nameless\r\n\r\nA: 1:2\r\nB: last without an end")
    #expect(block.fields.map(\.name) == ["A", "B"])
    #expect(block.value(of: "A") == "1:2")
    #expect(block.value(of: "B") == "last without an end")
  }

  @Test("Invalid UTF-8 is read as Latin-1") func latin1() {
    let block = FieldBlock(bytes: Array("A: ".utf8) + [0xE4, 0x41] + Array("\r\nB: ä\r\n".utf8))
    #expect(block.value(of: "A") == "äA")
    #expect(block.value(of: "B") == "ä")
  }

  @Test(
    "In a URL that is not UTF-8, the bytes beyond ASCII are escaped",
    arguments: ["location", "Content-Location"])
  func urls(name: String) {
    let block = FieldBlock(
      bytes: Array("\(name): /%41".utf8) + [0xE4, 0xFF] + Array("x y\r\n\(name): /ä\r\n".utf8))
    #expect(block.fields.map(\.value) == ["/%41%E4%FFx y", "/ä"])
    let others = FieldBlock(bytes: Array("X-\(name): /".utf8) + [0xE4])
    #expect(others.fields.map(\.value) == ["/ä"])
  }

  @Test("A block of fields has the same values as its fields") func equality() {
    let fields = [HTTPHeader(name: "A", value: "1"), HTTPHeader(name: "B", value: "")]
    #expect(FieldBlock(fields).fields == fields)
    #expect(FieldBlock(bytes: []).fields.isEmpty)
    #expect(FieldBlock([]).value(of: "A") == nil)
  }

  @Test("A name has a mark if it differs from a marked one in the case of letters alone", .seeded)
  func marks() {
    var random = Seed.generator()
    let names = [
      "etag", "expires", "cache-control", "last-modified", "set-cookie", "content-encoding", "keep-alive",
    ]
    let others = Array("abcxyzABCXYZ019-_.!|~^`".utf8)
    for name in names {
      let plain = Array(name.utf8)
      for _ in 0..<200 {
        var spelled = plain.map { (0x61...0x7A).contains($0) && Bool.random(using: &random) ? $0 ^ 0x20 : $0 }
        #expect(FieldBlock(bytes: spelled + Array(": x\n".utf8)).marks.rawValue != 0, "\(spelled)")
        spelled[Int.random(in: 0..<spelled.count, using: &random)] = others.randomElement(using: &random) ?? 0
        let isName = String(decoding: spelled, as: UTF8.self).lowercased() == name
        let marks = FieldBlock(bytes: spelled + Array(": x\n".utf8)).marks
        #expect((marks.rawValue != 0) == isName, "\(String(decoding: spelled, as: UTF8.self))")
      }
    }
  }

  @Test("Lines of all lengths end at their line feed, whatever their bytes") func lineLengths() {
    for length in 0...40 {
      for filler in ["x", "\u{9}", "\u{B}", "\u{8A}"] {
        let value = "v" + String(repeating: filler, count: length) + "v"
        let block = Self.block("A: \(value)\r\nBC: \(value)\nabc: 1\nA:\(value)")
        #expect(block.values(of: "a") == [value, value], "\(length) of \(filler.utf8.first ?? 0)")
        #expect(block.values(of: "bc") == [value], "\(length) of \(filler.utf8.first ?? 0)")
        #expect(block.fields.count == 4, "\(length) of \(filler.utf8.first ?? 0)")
      }
    }
  }

  @Test("Any bytes are parsed") func anyBytes() {
    var random = SeededGenerator(seed: 3)
    for _ in 0..<2000 {
      let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
        [0x0D, 0x0A, 0x3A, 0x20, 0x41, 0xFF, 0x00, 0x09][Int(random.next() % 8)] as UInt8
      }
      let block = FieldBlock(bytes: bytes)
      #expect(block.fields.allSatisfy { !$0.name.isEmpty })
      #expect(block.values(of: "A") == block.fields.filter { $0.name.lowercased() == "a" }.map(\.value))
    }
  }
}
