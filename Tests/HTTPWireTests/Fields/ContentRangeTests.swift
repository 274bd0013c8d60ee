import HTTPWire
import Testing

@Suite("Content-Range") struct ContentRangeTests {
  @Test(
    "A range of bytes is parsed, also without its total or its bounds",
    arguments: [
      ("bytes 0-4/10", 0..<5, 10), ("BYTES 9-9/10", 9..<10, 10), ("bytes 0-0/*", 0..<1, nil),
      ("bytes */10", nil, 10),
      ("bytes */0", nil, 0), ("bytes 007-08/9", 7..<9, 9),
      ("bytes 0-9223372036854775806/9223372036854775807", 0..<Int64.max, .max),
      ("bytes 0-9223372036854775806/*", 0..<Int64.max, nil),
    ] as [(String, Range<Int64>?, Int64?)])
  func ranges(text: String, bounds: Range<Int64>?, total: Int64?) throws {
    let range = try #require(ContentRange(text))
    #expect(range.bounds == bounds && range.total == total)
  }

  @Test(
    "Anything that contradicts itself or the grammar is not a range",
    arguments: [
      "", "bytes", "bytes ", "bytes /", "bytes -/", "bytes 0-4", "bytes */*", "bytes 0-4/", "bytes /10",
      "bytes 5-4/10",
      "bytes 0-10/10", "bytes 0-0/0", "bytes -4/10", "bytes 0-/10", "bytes 0-4-5/10", "bytes 0-4/10/10",
      "bytes */-1",
      "bytes 0-4/10, bytes 5-9/10", "lines 0-4/10", "bytes=0-4/10", "bytes\t0-4/10", "bytes  0-4/10",
      "bytes 0-4/99999999999999999999", "bytes 0-9223372036854775807/*", "bytes +0-4/10", "bytes 0-+4/10",
      "bytes 0-4/+10", "bytes 0 - 4/10", "bytes 0-4/ 10", "bytes 1-1/-9223372036854775808", "bytes 0x0-4/10",
      "bytes ０-4/10", "bytes 0-4/10\u{301}", " bytes 0-4/10", "bytes 0-4/10 ", "bytes \u{301}0-4/10",
      "bytes 0-4/1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ]) func invalidRanges(text: String)
  { #expect(ContentRange(text) == nil) }
}
