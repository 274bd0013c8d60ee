import Foundation
import Testing

@testable import Alamofire

@Suite("Excerpts of bodies") struct BodyExcerptTests {
  private func excerpt(_ text: String, limit: Int, type: String? = nil) -> String {
    BodyExcerpt(Data(text.utf8), contentType: type, limit: limit).description
  }

  @Test("A text is cut between characters", arguments: ["a", "é", "€", "🦀"])
  func cut(character: String) {
    let size = character.utf8.count
    let text = String(repeating: character, count: 6)
    for limit in 2 * size..<3 * size {
      #expect(excerpt(text, limit: limit) == "\"\(character)\(character)…\"", "limit \(limit)")
    }
    #expect(excerpt(text, limit: 6 * size) == "\"\(text)\"")
    #expect(excerpt(text, limit: 6 * size - 1) == "\"\(text.dropLast())…\"")
  }

  @Test("Other bodies are shown as their first bytes") func bytes() {
    func shown(_ bytes: [UInt8], limit: Int = 160) -> String {
      BodyExcerpt(Data(bytes), contentType: nil, limit: limit).description
    }
    #expect(shown([0x1F, 0x8B, 0x08]) == "bytes 1F 8B 08")
    #expect(shown([UInt8](repeating: 0xFF, count: 8)) == "bytes FF FF FF FF FF FF FF FF")
    #expect(shown([UInt8](repeating: 0xFF, count: 9)) == "bytes FF FF FF FF FF FF FF FF …")
    // Four bytes that would continue a character are not the end of one that was cut.
    #expect(shown([0x61, 0x80, 0x80, 0x80, 0x80, 0x61], limit: 5) == "bytes 61 80 80 80 80")
    #expect(shown([0x61, 0x00]) == "bytes 61 00", "a control character")
    #expect(shown([0x61, 0xF0, 0x9F]) == "bytes 61 F0 9F", "nothing was cut off")
    #expect(shown([]) == "\"\"")
  }

  @Test("White space becomes one space") func oneLine() {
    #expect(excerpt(" a\r\n\t b\n", limit: 100) == "\"a b\"")
  }

  @Test("A secret is masked although its end is cut off") func secret() {
    let shown = excerpt(#"{"password":"hunter2-hunter2","a":1}"#, limit: 20, type: "application/json")
    #expect(!shown.contains("hunter") && shown.hasSuffix("…\""), "\(shown)")
  }

  @Test(
    "A secret is masked although what ends it comes after all the bytes that are read", arguments: [160, 80])
  func secretWithoutEnd(limit: Int) {
    let form = "application/x-www-form-urlencoded"
    let part = "--b\r\nContent-Disposition: form-data; name=a\r\n\r\n"
    let bodies: [(type: String?, before: String, between: String, secret: String)] = [
      (nil, #"{"token":""#, #"","next":""#, "https://ann:hunter2@example.com/"),
      ("application/json", #"{"token":""#, #"","next":""#, #"https:\/\/ann:hunter2@example.com\/"#),
      (nil, #"{"token":""#, #"","next":""#, #"see https:\/\/bob:x@h\/\nhttps:\/\/ann:hunter2@h\/"#),
      (nil, #"{"token":""#, #"","next":""#, #"https:\u002F\u002Fann:hunter2\u0040h"#),
      (nil, #"{"token":""#, #"","next":""#, "https%3A%2F%2Fann%3Ahunter2%40example.com"),
      (nil, "token=", " ", "ann:hunter2@example.com"),
      (nil, "token=", "&next=", "https://ann:hunter2@example.com"),
      (nil, "token='", "'\n", "https://ann:hunter2;token=1;token=2@example.com"),
      (form, "token=", "&next=", "https://ann:hunter2 x@example.com"),
      (form, "token=", "&next=", "https%3A%2F%2Fann%3Ahunter2%40example.com&a=b"),
      (form, #"{"token":""#, #"","next":""#, "https://ann:hunter2@example.com/?a=b&c=d"),
      ("multipart/form-data; boundary=b", part + "token=", "\r\n", "https://ann:hunter2@example.com/"),
    ]
    for (type, before, between, secret) in bodies {
      let rest = limit + 1_024 - before.utf8.count - between.utf8.count
      // So that each byte of the secret is the last one that is read.
      for count in rest - secret.utf8.count...rest {
        let text = before + String(repeating: "A", count: count) + between + secret + " "
        let shown = excerpt(text, limit: limit, type: type)
        #expect(!shown.contains("hunt") && !shown.contains("AA"), "\(before)…\(between)\(secret) is \(shown)")
      }
    }
  }

  @Test("A long text without blanks is shown up to the limit") func longWord() {
    let text = String(repeating: "a", count: 5_000)
    #expect(excerpt(text, limit: 160) == "\"\(text.prefix(160))…\"")
    #expect(
      excerpt(text, limit: 160, type: "application/x-www-form-urlencoded") == "\"\(text.prefix(160))…\"")
  }

  @Test("A text is shown as a whole with the largest limit") func largestLimit() {
    #expect(excerpt("a b", limit: .max) == #""a b""#)
  }

  @Test("A sentence names the size and the beginning") func sentence() {
    #expect(BodyExcerpt.sentence(Data("x".utf8)) == #" The body of 1 byte begins with "x"."#)
    #expect(BodyExcerpt.sentence(Data("xyz".utf8), limit: 2) == #" The body of 3 bytes begins with "xy…"."#)
  }
}
