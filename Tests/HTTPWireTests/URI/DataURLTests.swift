import Foundation
import HTTPWire
import Testing

@Suite struct DataURLTests {
  @Test(
    "Content and type are read",
    arguments: [
      ("data:,", "text/plain;charset=US-ASCII", ""),
      ("data:,A%20brief%20note", "text/plain;charset=US-ASCII", "A brief note"),
      ("data:text/html,<b>x</b>", "text/html", "<b>x</b>"),
      ("data:;charset=utf-8,a", "text/plain;charset=utf-8", "a"),
      ("data:text/plain;charset=utf-8,%C3%A4", "text/plain;charset=utf-8", "ä"),
      ("data:text/plain;base64,SGVsbG8=", "text/plain", "Hello"),
      ("DATA:text/plain;BASE64,SGVsbG8", "text/plain", "Hello"),
      ("data:;base64,SGVs%0AbG8%3D", "text/plain;charset=US-ASCII", "Hello"),
      ("data:text/plain;base64,", "text/plain", ""),
      ("data:a/b;x=1;base64 ,aGk=", "a/b;x=1", "hi"),
      ("data:,a,b#part", "text/plain;charset=US-ASCII", "a,b"),
      ("data:,100%", "text/plain;charset=US-ASCII", "100%"),
      ("data:,a%-0b", "text/plain;charset=US-ASCII", "a%-0b"),
    ])
  func contentAndType(url: String, type: String, text: String) throws {
    let content = try DataURL(url)
    #expect(content.mediaType == type)
    #expect(String(decoding: content.data, as: UTF8.self) == text)
  }

  @Test("Bytes need not be text") func bytes() throws {
    #expect(try DataURL("data:application/octet-stream,%00%FF").data == Data([0, 255]))
    #expect(try DataURL("data:;base64,AP8=").data == Data([0, 255]))
  }

  @Test("A type adds no header field") func type() throws {
    #expect(try DataURL("data:text/a%0D%0AX: y,z").mediaType == "text/plain;charset=US-ASCII")
  }

  @Test(
    "An invalid data URL is refused",
    arguments: [
      ("data:text/plain", DataURL.Flaw.noComma), ("data:", .noComma), ("file:,x", .notADataURL),
      ("data:;base64,a", .badBase64), ("data:;base64,?!x=", .badBase64), ("data:#,x", .noComma),
    ])
  func invalidURLs(url: String, flaw: DataURL.Flaw) {
    #expect(throws: flaw) { try DataURL(url) }
    #expect(!flaw.message.isEmpty)
  }
}
