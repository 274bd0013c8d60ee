import FoundationEssentials
import HTTPWire
import Testing

@Suite struct JSONFramerTests {
  private func texts(_ chunks: [[UInt8]]) -> [String] {
    var framer = JSONFramer()
    var texts = chunks.flatMap { framer.push(Data($0)) }
    if let rest = framer.finish() { texts.append(rest) }
    return texts.map { String(decoding: $0, as: UTF8.self) }
  }

  private func texts(_ chunks: String...) -> [String] { texts(chunks.map { Array($0.utf8) }) }

  @Test(
    "Values of one chunk are found",
    arguments: [
      (#"{"a":1}{"a":2}"#, [#"{"a":1}"#, #"{"a":2}"#]),
      ("[1]\n[2]\r\n\n[3]\n", ["[1]", "[2]", "[3]"]),
      ("\u{1E}{}\n\u{1E}[]\n", ["{}", "[]"]),
      ("\u{1E}{\"a\":[1\n\u{1E}{\"b\":2}\n", ["{\"a\":[1\n", "{\"b\":2}"]),
      ("\u{1E}\"a\n\u{1E}\"\\\u{1E}x\n\u{1E}1\n", ["\"a\n", "\"\\", "x", "1"]),
      (#"1 2"a"3true{}null[]-4.5e6"#, ["1", "2", #""a""#, "3true", "{}", "null", "[]", "-4.5e6"]),
      (#"{"a":"}{\"][\\"}"\"""#, [#"{"a":"}{\"][\\"}"#, #""\"""#]),
      ("[[{}],[[]]]{}", ["[[{}],[[]]]", "{}"]),
      ("  \n\t ", []),
      ("", []),
    ] as [(String, [String])])
  func one(_ text: String, _ expected: [String]) {
    #expect(texts(text) == expected)
  }

  @Test(
    "A byte order mark before the first value is passed over, and any other one is invalid",
    arguments: [
      ("\u{FEFF}{\n  \"a\": 1\n}\n[2]", ["{\n  \"a\": 1\n}", "[2]"]), ("\u{FEFF}1 2", ["1", "2"]),
      ("\u{FEFF}\u{1E}{}\n\u{1E}[]\n", ["{}", "[]"]), ("\u{FEFF}", []), ("\u{FEFF}\n", []),
      ("\u{FEFF}\u{FEFF}{}\n{}", ["\u{FEFF}{}", "{}"]), ("{}\u{FEFF}{}\n{}", ["{}", "\u{FEFF}{}", "{}"]),
      // It has the first byte of a mark.
      ("\u{FFFD}{}\n{}", ["\u{FFFD}{}", "{}"]),
    ] as [(String, [String])])
  func byteOrderMark(text: String, expected: [String]) {
    #expect(texts(text) == expected)
    #expect(texts(text.utf8.map { [$0] }) == expected)
  }

  @Test(
    "The beginning of a byte order mark is invalid JSON", arguments: [[0xEF], [0xEF, 0xBB]] as [[UInt8]])
  func incompleteMark(bytes: [UInt8]) {
    for rest in ["", "{}", "\n{}", "\u{1E}{}"] {
      let all = bytes + Array(rest.utf8)
      let whole = texts([all])
      #expect(whole.first?.first == "\u{FFFD}")
      #expect(whole.last == (rest.count > 2 ? "{}" : whole.first))
      #expect(texts(all.map { [$0] }) == whole)
    }
  }

  @Test("A value can have several chunks") func severalChunks() {
    #expect(
      texts(#"{"na"#, #"me":"A\"#, #""da","#, #""x":[1,2"#, "]}[") == [#"{"name":"A\"da","x":[1,2]}"#, "["])
  }

  @Test("A number ends before another token") func number() {
    #expect(texts("12", "34 5", "6", "[") == ["1234", "56", "["])
  }

  @Test("Invalid JSON ends with its line") func invalidJSON() {
    #expect(texts("<html>{}\n{\"a\":1}\n}{\n[2]") == ["<html>{}", #"{"a":1}"#, "}{", "[2]"])
  }

  @Test("An incomplete value is delivered at the end") func incompleteValue() {
    #expect(texts(#"{} {"a":"#) == ["{}", #"{"a":"#])
  }

  @Test("A text without an end is cut off, and the next one begins with its line or record") func tooLong() {
    for end in ["\n", "\u{1E}"] {
      var framer = JSONFramer(limit: 100)
      let texts = (["{}\""] + Array(repeating: "aaaaaaaaaa", count: 64) + [end + "[1]"])
        .flatMap { framer.push(Data($0.utf8)) }
      let expected = ["{}", "\"" + String(repeating: "a", count: 99), "[1]"]
      #expect(texts.map { String(decoding: $0, as: UTF8.self) } == expected)
      #expect(framer.finish() == nil)
    }
  }

  @Test("A slice of data is read") func slice() {
    var framer = JSONFramer()
    let slice = Data(#"xx{"a":1}{"b":"#.utf8).dropFirst(2)
    let first = framer.push(slice)
    #expect(first.map { String(decoding: $0, as: UTF8.self) } == [#"{"a":1}"#])
    let second = framer.push(Data("2}".utf8))
    #expect(second.map { String(decoding: $0, as: UTF8.self) } == [#"{"b":2}"#])
  }

  @Test("The values do not depend on the boundaries of chunks", arguments: 0..<300)
  func everySplit(seed: UInt64) {
    var random = Splits(seed: seed)
    let parts = [
      "{", "}", "[", "]", "\"", "\\", "\n", " ", "12", "true", ":", ",", "ä", "\u{1E}", #"{"a":[1,"}"]}"#,
      "<", "\u{FEFF}",
    ]
    let bytes = (0..<60).flatMap { _ in Array(parts[random.number(below: parts.count)].utf8) }
    let whole = texts([bytes])
    #expect(texts(random.split(bytes)) == whole)
    #expect(texts(bytes.map { [$0] }) == whole)
  }
}
