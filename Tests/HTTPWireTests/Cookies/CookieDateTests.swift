import HTTPWire
import Testing

@Suite struct CookieDateTests {
  @Test("Every published date is parsed as expected", arguments: ["examples", "bsd-examples"])
  func publishedDates(_ set: String) throws {
    let now = HTTPDate(secondsSince1970: 1_300_000_000)
    for row in try CookieData.dates(set) {
      let expected = row.expected.flatMap { HTTPDate($0, now: now) }
      #expect((row.expected == nil) == (expected == nil), "\(row.test)")
      #expect(CookieDate.parse(row.test.utf8) == expected, "\(row.test)")
    }
  }

  @Test(
    "The first matching tokens of a date are used",
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("06-Nov-94 8:49:37", 784_111_777),
      ("1994 NOVEMBER 6 08:49:37 +0900", 784_111_777), ("6x nov!1994 08:49:37.123", 784_111_777),
      ("08:49:37 Nov 6 1994", 784_111_777), ("Thu 29 Feb 2024 00:00:00", 1_709_164_800),
      ("31 Dec 1601 00:00:00", -11_613_024_000), ("1 Jan 69 00:00:00", 3_124_224_000), ("1 Jan 70 0:0:0", 0),
    ])
  func firstTokens(_ text: String, _ seconds: Int64) {
    #expect(CookieDate.parse(text.utf8)?.secondsSince1970 == seconds)
  }

  @Test(
    "Other texts are not dates",
    arguments: [
      "", "Nov", "6 Nov 1994", "6 Nov 08:49:37", "1994 08:49:37 Nov", "6 1994 08:49:37",
      "Fri 29 Feb 2023 00:00:00", "31 Apr 2024 00:00:00", "31 Nov 2024 00:00:00", "32 Dec 2024 00:00:00",
      "0 Jan 2024 00:00:00", "32 Jan 2024 00:00:00",
      "1 Jan 1600 00:00:00", "1 Jan 2024 24:00:00", "1 Jan 2024 00:60:00", "1 Jan 2024 00:00:60",
      "1 Jan 2024 00:00:000", "1 Jan 2024 000:00:00", "1 Jan 20245 00:00:00", "001 Jan 2024 00:00:00",
    ])
  func invalidDates(_ text: String) {
    #expect(CookieDate.parse(text.utf8) == nil)
  }
}
