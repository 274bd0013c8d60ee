import FoundationEssentials
import HTTPWire
import Randomness
import Testing

@Suite struct ReadableTextTests {
  @Test(
    "Characters that a terminal or a reader could obey are escaped",
    arguments: [
      ("\u{1B}[2J", #"\u001B[2J"#), ("\u{1B}]52;c;ZXZpbA==\u{07}", #"\u001B]52;c;ZXZpbA==\u0007"#),
      ("a\u{9B}31m", #"a\u009B31m"#), ("a\u{90}q\u{9C}", #"a\u0090q\u009C"#), ("\0\u{7F}", #"\u0000\u007F"#),
      ("a\u{08}b\rc", #"a\u0008b\rc"#), ("txt.\u{202E}exe", #"txt.\u202Eexe"#),
      ("\u{2066}a\u{2067}b\u{2068}c\u{2069}", #"\u2066a\u2067b\u2068c\u2069"#),
      ("\u{61C}\u{200E}\u{200F}\u{200B}\u{FEFF}", #"\u061C\u200E\u200F\u200B\uFEFF"#),
      ("a\u{2028}b\u{2029}c\u{85}d", #"a\u2028b\u2029c\u0085d"#), ("\u{E0041}", #"\uDB40\uDC41"#),
      ("a\u{AD}b\u{FFF9}c", #"a\u00ADb\uFFF9c"#),
      ("a\u{E0100}\u{E01EF}", #"a\uDB40\uDD00\uDB40\uDDEF"#), ("e\u{301}\u{34F}", "e\u{301}\\u034F"),
      ("\u{115F}\u{1160}\u{3164}\u{FFA0}", #"\u115F\u1160\u3164\uFFA0"#),
      ("\u{17B4}\u{17B5}\u{180B}\u{180D}", #"\u17B4\u17B5\u180B\u180D"#),
    ])
  func escaped(text: String, shown: String) {
    #expect(ReadableText.line(text) == shown)
    #expect(ReadableText.lines(text) == shown)
  }

  @Test(
    "Text of people is unchanged",
    arguments: [
      "", "GET /a?b=c HTTP/1.1", #"\u001B \n"#, "grün 日本語 ﷽", "👩‍👩‍👧 🏳️‍🌈 ☎︎", "می‌خواهم", "e\u{301}", "가",
      "\u{FFFD}\u{E000}\u{FFFF}",
    ])
  func unchanged(text: String) {
    #expect(ReadableText.line(text) == text)
    #expect(ReadableText.lines(text) == text)
  }

  @Test("Line breaks and tabs are escaped in a line and preserved in lines")
  func lines() {
    #expect(ReadableText.line("a\nb\r\nc\td") == #"a\nb\r\nc\td"#)
    #expect(ReadableText.lines("a\nb\r\nc\td\n") == "a\nb\nc\td\n")
    #expect(ReadableText.lines("50 %\r100 %\r") == #"50 %\r100 %\r"#)
    #expect(ReadableText.lines("\r\r\n\u{1B}\n") == "\\r\n\\u001B\n")
  }

  @Test("Escapes keep the value of JSON") func json() throws {
    let json = "[\"a\u{7F}\u{9B}\u{202E}\u{E0041}\"]"
    let shown = ReadableText.lines(json)
    #expect(shown == #"["a\u007F\u009B\u202E\uDB40\uDC41"]"#)
    #expect(
      try JSONDecoder().decode([String].self, from: Data(shown.utf8))
        == JSONDecoder().decode([String].self, from: Data(json.utf8)))
  }

  @Test("Every control, separator and invisible character of Unicode is replaced, and no letter or sign")
  func allOfUnicode() {
    for value in 0...UInt32(0x10FFFF) {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let properties = scalar.properties
      // Emoji need these selectors.
      let stays = properties.isJoinControl || (0xFE00...0xFE0F).contains(value)
      let mustBe: Bool? =
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case _ where properties.isDefaultIgnorableCodePoint: !stays
        // Signs that are visible, such as the end of a verse, may stay.
        case .format, .unassigned: nil
        default: properties.isBidiControl
        }
      guard let mustBe else { continue }
      #expect(ReadableText.isReplaced(scalar) == mustBe, "U+\(String(value, radix: 16))")
    }
  }

  @Test("The result is stable and at most six times as long, for random texts", .seeded) func randomTexts() {
    var random = Seed.generator()
    for _ in 0..<2_000 {
      let text = random.text()
      for shown in [ReadableText.line(text), ReadableText.lines(text)] {
        #expect(shown.utf8.count <= 6 * text.utf8.count)
        #expect(
          shown.unicodeScalars.allSatisfy { !ReadableText.isReplaced($0) || $0 == "\n" || $0 == "\t" })
      }
      #expect(ReadableText.line(ReadableText.line(text)) == ReadableText.line(text))
      #expect(ReadableText.lines(ReadableText.lines(text)) == ReadableText.lines(text))
    }
  }
}

@Suite struct ReadableStreamTests {
  @Test("Pieces give the same text as the whole, wherever they are cut") func cuts() {
    let bytes = Array("a\u{1B}[1m\r\nb\u{9B}c\rd\u{202E}\u{E0041}é日👩‍👧\r".utf8)
    let whole = ReadableText.lines(String(decoding: bytes, as: UTF8.self))
    for first in 0...bytes.count {
      for second in first...bytes.count {
        var stream = ReadableStream()
        var shown = stream.add(Data(bytes[..<first]))
        shown += stream.add(Data(bytes[first..<second]))
        shown += stream.add(Data(bytes[second...]))
        shown += stream.finish()
        #expect(String(decoding: shown, as: UTF8.self) == whole, "cut at \(first) and \(second)")
      }
    }
  }

  @Test(
    "Bytes that are not UTF-8 are not passed on",
    arguments: [
      ([0x9B, 0x33, 0x31, 0x6D], "\u{FFFD}31m"), ([0x41, 0xC2], "A\u{FFFD}"), ([0xE2, 0x80], "\u{FFFD}"),
      ([0xF0, 0x9F, 0x91], "\u{FFFD}"), ([0xC2, 0x1B], "\u{FFFD}\\u001B"), ([0xFF], "\u{FFFD}"),
    ] as [([UInt8], String)])
  func invalidBytes(bytes: [UInt8], shown: String) {
    var stream = ReadableStream()
    var all = Data()
    for byte in bytes { all += stream.add(Data([byte])) }
    all += stream.finish()
    #expect(String(decoding: all, as: UTF8.self) == shown)
  }

  @Test("At most three bytes are held back") func heldBytes() {
    var stream = ReadableStream()
    #expect(stream.add(Data("abc\u{1B}".utf8)) == Data(#"abc\u001B"#.utf8))
    #expect(stream.add(Data([0xF0, 0x9F, 0x91])).isEmpty)
    #expect(stream.add(Data([0x41])) == Data("\u{FFFD}A".utf8))
    #expect(stream.finish().isEmpty)
  }
}

extension SeededGenerator {
  /// Returns a text with many of the characters that are replaced.
  fileprivate mutating func text() -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0..<12, using: &self) {
      let range: ClosedRange<UInt32> =
        [0...0x7F, 0x80...0xFF, 0x2000...0x206F, 0xE0000...0xE00FF, 0...0x10FFFF]
        .randomElement(using: &self) ?? 0...0x7F
      guard let scalar = Unicode.Scalar(UInt32.random(in: range, using: &self)) else { continue }
      text.unicodeScalars.append(scalar)
    }
    return text
  }
}
