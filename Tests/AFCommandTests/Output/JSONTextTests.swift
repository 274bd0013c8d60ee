import AFCommand
import Testing

@Suite struct JSONTextTests {
  private func format(_ text: String, colours: Bool = false) -> String? {
    JSONText.format(Array(text.utf8), palette: Palette(isOn: colours))
  }

  @Test("Formatting preserves the order of keys, digits and escapes")
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
          "s": "\u00fc\/ü",
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
    "Scalars are JSON", arguments: ["0", "-0", "-1.5E-3", "true", "false", "null", "\"\\\"\\u12aF\""])
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
