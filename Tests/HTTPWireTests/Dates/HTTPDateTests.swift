import Foundation
import HTTPWire
import Testing

@Suite("Dates of header fields") struct HTTPDateTests {
  /// 25 July 2024.
  static let now = HTTPDate(secondsSince1970: 1_721_865_600)

  private func seconds(_ text: String, now: HTTPDate = Self.now) -> Int64? {
    HTTPDate(text, now: now)?.secondsSince1970
  }

  @Test(
    "All formats of a date are the same time",
    arguments: [
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
      "  Sun, 06 Nov 1994 08:49:37 GMT\t", "sun, 06 nov 1994 08:49:37 gmt", "Mon, 06 Nov 1994 08:49:37 GMT",
    ])
  func forms(text: String) {
    #expect(seconds(text) == 784_111_777)
  }

  @Test(
    "Edges of the calendar are parsed",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
      ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
      ("Thu Feb 29 00:00:00 2024", 1_709_164_800), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
      ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
    ] as [(String, Int64)])
  func corners(text: String, expected: Int64) {
    #expect(seconds(text) == expected)
  }

  @Test(
    "Text other than a date is refused",
    arguments: [
      "", " ", "Sun", "Sun,", "tomorrow", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
      "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
      "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
      "Sun, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 08:49:37 GMT", "Wed, 29 Feb 1900 08:49:37 GMT",
      "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT", "Su, 06 Nov 1994 08:49:37 GMT",
      "Sunda, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
      "Sun Nov  6 08:49:37 1994 GMT", "Sun, 06 Nov 1994 08:49:37 GMT, x", "Sun, 06 Nov 1994 08:49:-7 GMT",
      "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 0６ Nov 1994 08:49:37 GMT", "Sün, 06 Nov 1994 08:49:37 GMT",
    ])
  func mistakes(text: String) {
    #expect(seconds(text) == nil)
  }

  @Test("A year of two digits is at most fifty years ahead") func twoDigitYear() {
    #expect(seconds("Monday, 01-Jan-24 00:00:00 GMT") == seconds("Mon, 01 Jan 2024 00:00:00 GMT"))
    #expect(seconds("Monday, 01-Jan-74 00:00:00 GMT") == seconds("Mon, 01 Jan 2074 00:00:00 GMT"))
    #expect(seconds("Monday, 01-Jan-75 00:00:00 GMT") == seconds("Mon, 01 Jan 1975 00:00:00 GMT"))
    #expect(seconds("Monday, 01-Jan-99 00:00:00 GMT") == seconds("Mon, 01 Jan 1999 00:00:00 GMT"))
    let century = HTTPDate(secondsSince1970: 4_102_444_800)  // 2100
    #expect(
      seconds("Monday, 01-Jan-99 00:00:00 GMT", now: century) == seconds("Mon, 01 Jan 2099 00:00:00 GMT"))
    #expect(
      seconds("Monday, 01-Jan-01 00:00:00 GMT", now: HTTPDate(secondsSince1970: 4_102_444_799))
        == seconds("Mon, 01 Jan 2101 00:00:00 GMT"))
  }

  @Test("A leap day of a year of two digits is in a leap year") func leapDay() {
    let century = HTTPDate(secondsSince1970: 4_102_444_800)  // 2100, which has none
    #expect(
      seconds("Tuesday, 29-Feb-00 00:00:00 GMT", now: century) == seconds("Tue, 29 Feb 2000 00:00:00 GMT"))
    #expect(seconds("Tuesday, 29-Feb-23 00:00:00 GMT") == nil)
  }

  @Test("Dates of Foundation's formatter are parsed") func foundation() {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    // A prime step meets every hour, weekday and month.
    for expected in stride(from: Int64(-5_000_000_000), to: 10_000_000_000, by: 9_999_991) {
      let text = formatter.string(from: Date(timeIntervalSince1970: TimeInterval(expected)))
      #expect(seconds(text) == expected, "\(text)")
    }
  }

  @Test("Dates are ordered") func order() {
    #expect(HTTPDate(secondsSince1970: 1) < HTTPDate(secondsSince1970: 2))
  }
}
