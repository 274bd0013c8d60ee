import HTTPWire
import Testing

@Suite struct HeaderFieldRulesTests {
  @Test("Tokens are accepted", arguments: ["GET", "get", "X-A_b.c", "!#$%&'*+-.^_`|~09azAZ", "M"])
  func tokens(text: String) {
    #expect(HeaderFieldRules.isToken(text))
  }

  @Test(
    "Other texts are not tokens",
    arguments: [
      "", " ", "A B", "A:", ":path", "A\r\n", "A\0", "é", "(a)", "a/b", "a@b", "{", "\"", "a,b", "a\u{7F}",
    ])
  func otherTexts(text: String) {
    #expect(!HeaderFieldRules.isToken(text))
  }

  @Test("Letters, digits and fifteen signs are the bytes of tokens")
  func bytesOfTokens() {
    let allowed = Set(
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".unicodeScalars)
    for byte in UInt8.min...UInt8.max {
      let scalar = Unicode.Scalar(byte)
      #expect(HeaderFieldRules.isToken("a\(scalar)") == allowed.contains(scalar), "\(byte)")
    }
  }

  @Test("Every control character except for the tab is forbidden in a value") func controlCharacters() {
    for byte in UInt8.min...0x7F {
      let value = "a" + String(Unicode.Scalar(byte)) + "b"
      #expect(
        HeaderFieldRules.isFieldValue(value) == (byte == 0x09 || (0x20...0x7E).contains(byte)), "\(byte)")
    }
    #expect(HeaderFieldRules.isFieldValue(""))
    #expect(HeaderFieldRules.isFieldValue("grün 日本"))
  }

  @Test("A forbidden character is found at every position of a value") func positions() {
    for length in 1...20 {
      for position in 0..<length {
        for byte in [0x00, 0x09, 0x0A, 0x1F, 0x20, 0x7E, 0x7F] as [UInt8] {
          var text = [UInt8](repeating: UInt8(ascii: "a"), count: length)
          text[position] = byte
          #expect(
            HeaderFieldRules.isFieldValue(String(decoding: text, as: UTF8.self))
              == (byte == 0x09 || (0x20...0x7E).contains(byte)), "\(byte) at \(position) of \(length)")
        }
      }
    }
    // Both bytes of each letter have their highest bit set.
    #expect(HeaderFieldRules.isFieldValue(String(repeating: "\u{A0}", count: 9)))
    #expect(!HeaderFieldRules.isFieldValue(String(repeating: "\u{A0}", count: 9) + "\u{7F}"))
  }

  @Test("A valid request is accepted") func validRequest() throws {
    try HeaderFieldRules.validate(
      method: "POST", fields: [HTTPHeader(name: "A", value: "b\tc"), HTTPHeader(name: "A", value: "")])
  }

  static let violations: [(String, HTTPHeader, HeaderFieldRules.Violation)] = [
    ("G ET", HTTPHeader(name: "A", value: "b"), .method("G ET")),
    ("", HTTPHeader(name: "A", value: "b"), .method("")),
    ("GET", HTTPHeader(name: "", value: "b"), .name("")),
    ("GET", HTTPHeader(name: "A:", value: "b"), .name("A:")),
    ("GET", HTTPHeader(name: "A", value: "b\r\nC: d"), .value(field: "A", character: 0x0D)),
    ("GET", HTTPHeader(name: "A", value: "b\n"), .value(field: "A", character: 0x0A)),
    ("GET", HTTPHeader(name: "A", value: "\0"), .value(field: "A", character: 0)),
  ]

  @Test("The first violation is thrown", arguments: violations)
  func firstViolation(
    method: String, field: HTTPHeader, violation: HeaderFieldRules.Violation
  ) {
    let fields = [HTTPHeader(name: "Good", value: "x"), field, HTTPHeader(name: "Bad name", value: "x")]
    #expect(throws: violation) { try HeaderFieldRules.validate(method: method, fields: fields) }
  }

  @Test("Messages name the field and hide its value") func messages() throws {
    let field = HTTPHeader(name: "Authorization", value: "Bearer secret\n")
    let violation = try #require(throws: HeaderFieldRules.Violation.self) {
      try HeaderFieldRules.validate(method: "GET", fields: [field])
    }
    #expect(violation.message.contains("\"Authorization\" contains a line feed"))
    #expect(!violation.message.contains("secret"))
    #expect(!"\(violation)".contains("secret"))
    #expect(HeaderFieldRules.Violation.name("A\r\nB").message.hasPrefix(#""A\r\nB" is not"#))
    #expect(HeaderFieldRules.Violation.method(String(repeating: "é", count: 99)).message.count < 600)
    #expect(HeaderFieldRules.Violation.value(field: "A", character: 0x0D).message.contains("carriage return"))
    #expect(HeaderFieldRules.Violation.value(field: "A", character: 0).message.contains("NUL"))
    #expect(
      HeaderFieldRules.Violation.value(field: "A", character: 7).message.contains("a control character"))
  }
}
