import HTTPWire
import Testing

struct PercentEncodingTests {
  @Test("Text without characters to encode is unchanged", arguments: ["", "abc", "a-b._~/?Z09"])
  func unchanged(text: String) {
    #expect(PercentEncoding.queryComponent.encode(text) == text)
  }

  @Test("Every byte of ASCII is unchanged or an escape with capitals")
  func everyASCIIByte() {
    let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/?")
    for byte in UInt8(0)..<128 {
      let character = Character(Unicode.Scalar(byte))
      let hex = String(byte, radix: 16, uppercase: true)
      let escape = "%" + (hex.count == 1 ? "0" : "") + hex
      let expected = allowed.contains(character) ? String(character) : escape
      #expect(PercentEncoding.queryComponent.encode(String(character)) == expected)
      #expect(PercentEncoding.queryComponent.allows(byte) == allowed.contains(character))
    }
  }

  @Test("Bytes beyond ASCII are escaped")
  func beyondASCII() {
    let everything = PercentEncoding { _ in true }
    #expect(everything.encode("a é😃\n%") == "a %C3%A9%F0%9F%98%83\n%")
    for byte in UInt8(128)...255 { #expect(!everything.allows(byte)) }
    #expect(PercentEncoding { _ in false }.encode("aA") == "%61%41")
  }

  @Test("Spaces become pluses on demand, and pluses are escaped")
  func spacesAsPluses() {
    let encoding = PercentEncoding.queryComponent
    #expect(encoding.encode(" a b+c é", spacesAsPluses: true) == "+a+b%2Bc+%C3%A9")
    #expect(encoding.encode(" a b+c") == "%20a%20b%2Bc")
    #expect(PercentEncoding { _ in true }.encode("a b", spacesAsPluses: true) == "a+b")
  }

  @Test("Long text beyond ASCII is encoded completely")
  func longText() {
    let encoded = PercentEncoding.queryComponent.encode(String(repeating: "一", count: 20_000))
    #expect(encoded == String(repeating: "%E4%B8%80", count: 20_000))
  }

  @Test(
    "Text is decoded, and what is not an escape is unchanged",
    arguments: [
      ("a%20b%2B%c3%A9", "a b+é"), ("", ""), ("%", "%"), ("a%4", "a%4"), ("%41%", "A%"), ("%%41", "%A"),
      ("%zz%4g", "%zz%4g"), ("a%-0b", "a%-0b"), ("a%+1b", "a%+1b"), ("%0-%-f", "%0-%-f"), ("%2541", "%41"),
      ("%FF", "\u{FFFD}"),
    ])
  func decoding(text: String, expected: String) {
    #expect(PercentDecoding.text(text) == expected)
  }

  @Test(
    "A query is escaped without changing valid characters",
    arguments: [
      ("a=b&c=%5B1%5d", "a=b&c=%5B1%5d"),
      ("", ""),
      ("a[]=1", "a%5B%5D=1"),
      ("a=é b#c", "a=%C3%A9%20b%23c"),
      ("a=100%", "a=100%25"),
      ("a=%4", "a=%254"),
      ("a=%zz&b=%41", "a=%25zz&b=%41"),
      ("?/:@!$&'()*+,;=-._~", "?/:@!$&'()*+,;=-._~"),
      ("\"<>\\^`{|}", "%22%3C%3E%5C%5E%60%7B%7C%7D"),
    ])
  func repair(text: String, expected: String) {
    #expect(PercentEncoding.query.repair(text) == expected)
    #expect(PercentEncoding.query.repair(expected) == expected)
  }
}
