import HTTPWire
import Testing

@Suite struct MediaTypeTests {
  static let parsable: [(String, String, String)] = [
    ("text/html", "text", "html"), ("  application/json \r\n", "application", "json"),
    ("application/json;charset=utf-8", "application", "json"),
    ("application/json ; charset=utf-8", "application", "json"), ("*/*", "*", "*"), ("image/*", "image", "*"),
    ("Text/HTML", "Text", "HTML"), ("application/vnd.api+json", "application", "vnd.api+json"),
    ("text/plain;", "text", "plain"), ("text/plain;/", "text", "plain"),
  ]

  @Test("A type is trimmed and ends at the semicolon", arguments: parsable)
  func parsing(text: String, type: String, subtype: String) throws {
    let mediaType = try #require(MediaType(text))
    #expect(mediaType.type == type)
    #expect(mediaType.subtype == subtype)
  }

  @Test(
    "Other text is not a media type",
    arguments: ["", " ", "text", "text/", "/html", "/", "a/b/c", ";a/b", "text//html", "json; a/b"])
  func invalidText(text: String) {
    #expect(MediaType(text) == nil)
  }

  /// Acceptable, response, whether it matches.
  static let matches: [(String, String, Bool)] = [
    ("*/*", "image/jpeg", true), ("image/*", "image/jpeg", true), ("*/json", "application/json", true),
    ("image/jpeg", "image/jpeg", true), ("image/jpeg", "image/png", false), ("image/*", "text/plain", false),
    ("*/xml", "application/json", false), ("image/jpeg", "image/*", false), ("image/jpeg", "*/*", false),
    ("text/html", "Text/html", false), ("text/html", "text/HTML", false),
    ("text/html; charset=a", "text/html;charset=b", true), ("*/*", "*/*", true),
  ]

  @Test("Wildcards are allowed in the acceptable type", arguments: matches)
  func wildcards(acceptable: String, response: String, matches: Bool) throws {
    let acceptable = try #require(MediaType(acceptable))
    #expect(try acceptable.matches(#require(MediaType(response))) == matches)
  }

  static let charsets: [(String, String?)] = [
    ("text/html", nil), ("text/html; charset=utf-8", "utf-8"), ("text/html;charset=\"utf-8\"", "utf-8"),
    ("text/html; Charset = ISO-8859-1 ", "ISO-8859-1"), ("text/html; a=b;charset=x;charset=y", "x"),
    (#"text/html; a="; charset=no\"; charset=neither"; charset=yes"#, "yes"), ("text/html; charset", nil),
    ("text/html; =x; charset=", ""), ("charset=utf-8", nil), ("bogus; charset=utf-16", "utf-16"),
    (#"a/b; charset="a\"b"#, "a\"b"),
  ]

  @Test("The charset is found among the parameters", arguments: charsets)
  func charset(contentType: String, charset: String?) {
    #expect(MediaType.charset(ofContentType: contentType) == charset)
  }

  @Test("Types with equal parameters are equal") func equality() {
    #expect(MediaType("a/b;c=d") == MediaType(" a/b ; C=\"d\""))
    #expect(MediaType("a/b;c=d") != MediaType("a/b;c=e"))
    #expect(MediaType("a/b;c=d") != MediaType("a/b"))
    #expect(MediaType("*/*")?.isWildcard == true)
    #expect(MediaType("*/a")?.isWildcard == false)
  }

  static let names: [(String, Charset?)] = [
    ("utf-8", .utf8), ("UTF-8", .utf8), ("iso-8859-1", .isoLatin1), ("unicode-1-1", .utf16),
    ("ISO-10646-UCS-2", .utf16), ("utf-16", .utf16), ("utf-16be", .utf16BigEndian),
    ("utf-16LE", .utf16LittleEndian), ("utf-32", .utf32), ("utf-32be", .utf32BigEndian),
    ("utf-32le", .utf32LittleEndian), ("utf8", nil), ("us-ascii", nil), ("windows-1252", nil), ("", nil),
  ]

  @Test("The names of character sets are known", arguments: names)
  func knownNames(name: String, charset: Charset?) {
    #expect(Charset(name: name) == charset)
  }
}
