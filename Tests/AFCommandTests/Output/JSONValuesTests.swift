import Foundation
import Testing

@testable import AFCommand

@Suite struct JSONValuesTests {
  @Test(
    "A second value is found once it begins, however the text is cut",
    arguments: [
      ("{}{", 3), ("{\"a\": 1}\n{", 10), ("[1, 2] [", 8), ("1 2", 3), ("12\n\"", 4), ("true{", 5),
      ("\"a\"\"", 4),
      ("\u{FEFF}[] []", 7), ("\"\\\"{}\" x", 8), ("{\"a\": \"}\"} {", 12), ("[[], {\"]\": []}] 0", 17),
    ])
  func several(text: String, count: Int) {
    let bytes = Data(text.utf8)
    for cut in 0...bytes.count {
      var values = JSONValues()
      values.add(bytes.prefix(cut))
      #expect(values.areSeveral == (cut >= count), "\(cut)")
      values.add(bytes.dropFirst(cut))
      #expect(values.areSeveral, "\(cut)")
    }
  }

  @Test(
    "One value, and its beginning, are not several",
    arguments: [
      "", " \n", "{}", "\u{FEFF}{} \r\n\t", "[1, {\"a\": [2, 3]}]", "12", "\"a b\"", "null ",
      "{\"a\": \"\\\\\"}",
      "{\"a\": \"\\\"} {\"}",
    ])
  func one(text: String) {
    var values = JSONValues()
    for byte in text.utf8 { values.add(Data([byte])) }
    #expect(!values.areSeveral)
  }

  @Test("Text with wide units is not read") func wide() {
    var values = JSONValues()
    values.add(Data("{}{}".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }))
    #expect(!values.areSeveral)
  }

  @Test("A close too many is not counted") func unbalanced() {
    var values = JSONValues()
    values.add(Data("]}]{}".utf8))
    #expect(values.areSeveral)
  }
}
