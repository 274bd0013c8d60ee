import HTTPWire
import Testing

@Suite struct SetCookieTests {
  @Test("Attributes are parsed in any case and order") func attributes() throws {
    let field = "id=42; SECURE;httponly ; SameSite=lAx; PATH=/a; domain=.Example.COM; Max-Age=60; what=ever"
    let cookie = try SetCookie(Array(field.utf8))
    #expect(cookie.name == "id")
    #expect(cookie.value == "42")
    #expect(cookie.isSecure)
    #expect(cookie.isHTTPOnly)
    #expect(cookie.sameSite == .lax)
    #expect(cookie.path == "/a")
    #expect(cookie.domain == "example.com")
    #expect(cookie.maxAge == 60)
  }

  @Test(
    "Name and value are divided at the first equals sign",
    arguments: [
      ("a=b=c", "a", "b=c"), (" a\t=\t b ", "a", "b"), ("a", "", "a"), ("=a", "", "a"), ("a=", "a", ""),
      ("a=\"b c\"", "a", "\"b c\""), ("a=b\tc", "a", "b\tc"), ("ä=ö", "ä", "ö"),
    ])
  func nameAndValue(_ field: String, _ name: String, _ value: String) throws {
    let cookie = try SetCookie(Array(field.utf8))
    #expect(cookie.name == name)
    #expect(cookie.value == value)
  }

  @Test("No field is refused", arguments: ["", "=", ";", " ; a=b", "=;Path=/"])
  func anyField(_ field: String) {
    #expect(throws: CookieRefusal.empty) { try SetCookie(Array(field.utf8)) }
  }

  @Test("Control characters except for tabs are refused", arguments: Array(UInt8(0)...0x1F) + [0x7F])
  func controlCharacters(_ byte: UInt8) throws {
    for field in ["a=b" + "\(Unicode.Scalar(byte))", "a=b; Path=/\(Unicode.Scalar(byte))"] {
      guard byte != 0x09 else {
        _ = try SetCookie(Array(field.utf8))
        continue
      }
      #expect(throws: CookieRefusal.controlCharacter) { try SetCookie(Array(field.utf8)) }
    }
  }

  @Test("Name and value have at most 4096 bytes") func sizeLimit() throws {
    let fits = "ab=" + String(repeating: "x", count: 4094)
    #expect(try SetCookie(Array(fits.utf8)).value.utf8.count == 4094)
    #expect(throws: CookieRefusal.tooLong) { try SetCookie(Array((fits + "x").utf8)) }
    #expect(throws: CookieRefusal.tooLong) { try SetCookie(Array(repeating: 0x61, count: 4097)) }
  }

  @Test("Attributes of more than 1024 bytes are ignored") func longAttributes() throws {
    let path = "/" + String(repeating: "x", count: 1023)
    #expect(try SetCookie(Array("a=b; Path=\(path)".utf8)).path == path)
    #expect(try SetCookie(Array("a=b; Path=/y; Path=\(path)x".utf8)).path == "/y")
  }

  @Test("Invalid UTF-8 is refused in name and value only") func invalidUTF8() throws {
    #expect(throws: CookieRefusal.notText) { try SetCookie(Array("a=".utf8) + [0xE9]) }
    #expect(throws: CookieRefusal.notText) { try SetCookie([0xFF] + Array("=a".utf8)) }
    let cookie = try SetCookie(Array("a=b; Path=/".utf8) + [0xE9])
    #expect(cookie.path?.isEmpty == true)
  }

  @Test(
    "Max-Age is an integer",
    arguments: [
      ("1", 1), ("0", 0), ("-1", 0), ("-99999999999999999999", 0), ("007", 7), ("", nil), ("-", nil),
      ("+1", nil),
      ("1.5", nil), ("1 0", nil), ("x", nil), ("--1", nil),
    ] as [(String, Int64?)])
  func maxAge(_ text: String, _ seconds: Int64?) throws {
    #expect(try SetCookie(Array("a=b; Max-Age=\(text)".utf8)).maxAge == seconds)
  }

  @Test("Numbers out of range are large") func largeNumbers() throws {
    let text = String(repeating: "9", count: 900)
    #expect(try #require(try SetCookie(Array("a=b; Max-Age=\(text)".utf8)).maxAge) > 1 << 40)
  }

  @Test("The last valid one of equal attributes is used") func equalAttributes() throws {
    let cookie = try SetCookie(
      Array(
        "a=b; Max-Age=5; Max-Age=x; Path=/a; Path=b; Domain=a.org; Domain=; SameSite=Lax; SameSite=?".utf8))
    #expect(cookie.maxAge == 5)
    #expect(cookie.path?.isEmpty == true)
    #expect(cookie.domain?.isEmpty == true)
    #expect(cookie.sameSite == nil)
  }
}
