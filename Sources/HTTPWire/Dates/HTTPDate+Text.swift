extension HTTPDate {
  /// The text in header fields (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. Years from 0 to 9999; a date
  /// outside of them is shown as the nearest within.
  package var text: String {
    let seconds = min(max(secondsSince1970, -62_167_219_200), 253_402_300_799)
    var days = seconds / 86_400
    var rest = seconds % 86_400
    if rest < 0 {
      days -= 1
      rest += 86_400
    }
    let (year, month, day) = Self.date(ofDay: days)
    let weekday = Self.weekdays[Int(((days + 4) % 7 + 7) % 7)]
    let time = [rest / 3_600, rest / 60 % 60, rest % 60].map { Self.digits($0, 2) }.joined(separator: ":")
    return
      "\(weekday), \(Self.digits(day, 2)) \(Self.monthNames[Int(month) - 1]) \(Self.digits(year, 4)) \(time) GMT"
  }

  /// Returns the date of a day, counted since the beginning of 1970. Years begin in March here, as in the other
  /// direction.
  private static func date(ofDay days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static func digits(_ number: Int64, _ count: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let monthNames = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}

/// The delay before the next request that a server asks for (RFC 9110 §10.2.3).
package enum RetryAfter {
  /// Returns the seconds from `now` on, zero for a time in the past; `nil` if `value` is neither a number of seconds
  /// nor a date.
  ///
  /// A date is compared with `date`, the `Date` field of the same response, if there is one. The two fields come from
  /// the clock of the server.
  package static func seconds(of value: String, date: String?, now: HTTPDate) -> Double? {
    let text = value.drop { $0 == " " || $0 == "\t" }
    let digits = text.utf8.prefix { (0x30...0x39).contains($0) }
    if !digits.isEmpty {
      guard text.utf8.dropFirst(digits.count).allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { return nil }
      // A number beyond all limits is a very long time, not a mistake.
      return Double(Substring(digits)) ?? .infinity
    }
    guard let target = HTTPDate(value, now: now) else { return nil }
    let reference = date.flatMap { HTTPDate($0, now: now) } ?? now
    return Double(max(0, target.secondsSince1970 - reference.secondsSince1970))
  }
}
