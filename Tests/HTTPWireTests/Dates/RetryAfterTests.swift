import HTTPWire
import Testing

@Suite("Retry-After") struct RetryAfterTests {
  /// Sun, 06 Nov 1994 08:49:37 GMT.
  static let now = HTTPDate(secondsSince1970: 784_111_777)

  private func seconds(_ value: String, date: String? = nil) -> Double? {
    RetryAfter.seconds(of: value, date: date, now: Self.now)
  }

  @Test("Seconds are a delay") func secondsAsDelay() {
    #expect(seconds("120") == 120)
    #expect(seconds(" 0 ") == 0)
    #expect(seconds("007") == 7)
  }

  @Test("A number out of range is a very long delay") func largeNumber() {
    #expect(seconds(String(repeating: "9", count: 30)) == 1e30)
    #expect(seconds(String(repeating: "9", count: 400)) == .infinity)
  }

  @Test("A date is compared with the clock") func date() {
    #expect(seconds("Sun, 06 Nov 1994 08:50:37 GMT") == 60)
    #expect(seconds("Sunday, 06-Nov-94 08:50:37 GMT") == 60)
    #expect(seconds("Sun Nov  6 08:50:37 1994") == 60)
  }

  @Test("A date in the past means no delay") func pastDate() {
    #expect(seconds("Sun, 06 Nov 1994 08:49:36 GMT") == 0)
    #expect(seconds("Thu, 01 Jan 1970 00:00:00 GMT") == 0)
  }

  @Test("The Date of the response has priority over the clock") func dateOfResponse() {
    #expect(seconds("Wed, 06 Nov 2030 08:50:37 GMT", date: "Wed, 06 Nov 2030 08:49:37 GMT") == 60)
    #expect(seconds("Sun, 06 Nov 1994 08:50:37 GMT", date: "no date") == 60)
  }

  @Test(
    "Invalid values are ignored", arguments: ["", " ", "-1", "1.5", "+3", "1 2", "1, 2", "soon", "10s", "٣"])
  func mistakes(value: String) {
    #expect(seconds(value) == nil)
  }
}
