import AFCommand
import Testing

@Suite struct JSONTextTests {
  private func format(_ text: String, colours: Bool = false) -> String? {
    JSONText.format(Array(text.utf8), palette: Palette(isOn: colours))
  }

  @Test(
    "Escapes of characters that can be read are replaced, others are not",
    arguments: [
      (#""\u00fc""#, #""ü""#), (#""\u65E5\u672c""#, #""日本""#), (#""\ud83d\ude00!""#, #""😀!""#),
      (#""\\u00fc""#, #""\\u00fc""#), (#""\\\u00fc""#, #""\\ü""#),
      (#""\u0022\u005c\u002f""#, #""\u0022\u005c/""#),
      (#""\n\/\"""#, #""\n\/\"""#), (#""\u001b[2J\u0000\u009b""#, #""\u001b[2J\u0000\u009b""#),
      (#""\u202e\u200b\ufeff\u2028\u00a0""#, #""\u202e\u200b\ufeff\u2028\u00a0""#),
      (#""\ud83d""#, #""\ud83d""#),
      (#""\ud83d\u00fc""#, #""\ud83dü""#), (#""\ude00\ud83d""#, #""\ude00\ud83d""#),
      (#""\ue000\uffff""#, #""\ue000\uffff""#),
    ])
  func escapes(text: String, expected: String) {
    #expect(format(text) == expected)
  }

  @Test("Formatting preserves the order of keys, digits and other escapes")
  func layout() {
    let text = #"{"z":1.50,"a":[1e+2,[],{},{"b":null}],"s":"\u00fc\/ü","z":true}"#
    #expect(
      format(text) == #"""
        {
          "z": 1.50,
          "a": [
            1e+2,
            [],
            {},
            {
              "b": null
            }
          ],
          "s": "ü\/ü",
          "z": true
        }
        """#)
  }

  @Test(
    "Formatting twice changes nothing",
    arguments: [#"{"a":[{"b":[[]]}]}"#, "[[1,2],[3]]", #""x""#, " 1 ", "[ ]"])
  func stable(text: String) throws {
    let once = try #require(format(text))
    #expect(format(once) == once)
  }

  @Test("Colours surround the tokens alone")
  func colours() {
    #expect(
      format(#"{"a":["b",1]}"#, colours: true)
        == "{\n  \u{1B}[36m\"a\"\u{1B}[0m: [\n    \u{1B}[32m\"b\"\u{1B}[0m,\n    \u{1B}[35m1\u{1B}[0m\n  ]\n}"
    )
  }

  @Test(
    "Text other than one JSON value is refused",
    arguments: [
      "", " ", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{1:2}", "[1}", "1 2", "tru", "truex",
      "'a'",
      "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"\\", "\"\n\"", "01", "-", "1.", ".5", "1e", "+1", "]",
      ",", ":",
      "NaN", "[1 2]", "{\"a\" 1}", "{\"a\":1 \"b\":2}",
    ])
  func refusals(text: String) {
    #expect(format(text) == nil)
  }

  @Test(
    "Scalars are JSON", arguments: ["0", "-0", "-1.5E-3", "true", "false", "null", "\"\\\"\\u00aD\""])
  func scalars(text: String) {
    #expect(format(text) == text)
  }

  @Test("Deep nesting does not overflow the stack")
  func depth() {
    let deep = String(repeating: "[", count: 2000) + String(repeating: "]", count: 2000)
    #expect(format(deep)?.hasSuffix("]") == true)
    #expect(format(String(repeating: "[", count: 100_000)) == nil)
  }
}
