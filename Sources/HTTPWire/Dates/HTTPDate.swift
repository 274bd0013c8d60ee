/// A point in time in the format of header fields (RFC 9110 §5.6.7), to the second.
///
/// All three forms are read: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6
/// 08:49:37 1994`. Names are compared without regard to case. A wrong name of a day is accepted.
package struct HTTPDate: Equatable, Comparable, Sendable {
  /// Seconds since the beginning of 1970, in UTC; negative before.
  package let secondsSince1970: Int64

  package init(secondsSince1970: Int64) {
    self.secondsSince1970 = secondsSince1970
  }

  /// Reads a date; `nil` if `text` is invalid. White space around it is ignored.
  ///
  /// A year of two digits that would be more than fifty years after `now` is in the past.
  package init?(_ text: String, now: HTTPDate) {
    var reader = DateReader(text)
    guard let parts = reader.date(), let seconds = parts.seconds(now: now) else { return nil }
    secondsSince1970 = seconds
  }

  package static func < (left: HTTPDate, right: HTTPDate) -> Bool {
    left.secondsSince1970 < right.secondsSince1970
  }

  /// The year of this date, in UTC.
  fileprivate var year: Int64 { Self.year(ofDay: Self.quotient(secondsSince1970, 86_400)) }

  /// Returns the days from the beginning of 1970 to a date of the Gregorian calendar. Years begin in March here, so
  /// that the day that may be missing is the last one.
  static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = quotient(year, 400)
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func year(ofDay day: Int64) -> Int64 {
    let shifted = day + 719_468
    let era = quotient(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    // January and February belong to the next year of the calendar.
    return yearOfEra + era * 400 + (dayOfYear >= 306 ? 1 : 0)
  }

  /// Divides and rounds down, also for negative numbers.
  private static func quotient(_ number: Int64, _ divisor: Int64) -> Int64 {
    let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}

/// The numbers of a date, as read.
private struct DateParts {
  enum Year {
    case full(Int64)
    /// The last two digits.
    case short(Int64)
  }

  var year = Year.full(0)
  var month: Int64 = 1
  var day: Int64 = 1
  var secondOfDay: Int64 = 0

  func seconds(now: HTTPDate) -> Int64? {
    switch year {
    case .full(let year): return seconds(in: year)
    case .short(let digits):
      let century = now.year - now.year % 100
      return [century + 100, century, century - 100].lazy
        .compactMap { seconds(in: $0 + digits) }
        .first { $0 - now.secondsSince1970 <= Self.fiftyYears }
    }
  }

  private func seconds(in year: Int64) -> Int64? {
    guard (1...Self.length(ofMonth: month, in: year)).contains(day) else { return nil }
    return HTTPDate.day(year: year, month: month, day: day) * 86_400 + secondOfDay
  }

  /// In mean years of the calendar.
  private static let fiftyYears: Int64 = 50 * 31_556_952

  private static func length(ofMonth month: Int64, in year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

/// Takes a date from the front of a text, piece by piece.
private struct DateReader {
  private var rest: ArraySlice<UInt8>

  init(_ text: String) {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    let bytes = Array(text.utf8)
    let start = bytes.firstIndex { !isSpace($0) } ?? bytes.endIndex
    let end = bytes.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? start
    rest = bytes[start..<end]
  }

  mutating func date() -> DateParts? {
    let name = word()
    guard name.count >= 3, Self.days.contains(where: { $0 == name || $0.prefix(3) == name }) else {
      return nil
    }
    let parts = taken(",") ? dateAfterComma() : dateOfC()
    return rest.isEmpty ? parts : nil
  }

  /// Reads ` 06 Nov 1994 08:49:37 GMT` or ` 06-Nov-94 08:49:37 GMT`.
  private mutating func dateAfterComma() -> DateParts? {
    var parts = DateParts()
    guard taken(" "), let day = number(ofDigits: 2) else { return nil }
    parts.day = day
    let isShort = taken("-")
    guard isShort || taken(" "), let month = month(), taken(isShort ? "-" : " "),
      let year = number(ofDigits: isShort ? 2 : 4), taken(" "), let time = time(), taken(" "),
      word() == "gmt"
    else { return nil }
    parts.month = month
    parts.year = isShort ? .short(year) : .full(year)
    parts.secondOfDay = time
    return parts
  }

  /// Reads ` Nov  6 08:49:37 1994`, as C's `asctime` writes it.
  private mutating func dateOfC() -> DateParts? {
    var parts = DateParts()
    guard taken(" "), let month = month(), taken(" "),
      let day = taken(" ") ? number(ofDigits: 1) : number(ofDigits: 2), taken(" "),
      let time = time(), taken(" "), let year = number(ofDigits: 4)
    else { return nil }
    parts.month = month
    parts.day = day
    parts.year = .full(year)
    parts.secondOfDay = time
    return parts
  }

  /// Returns the second of the day. Second 60 is a leap second and counts as the following one.
  private mutating func time() -> Int64? {
    guard let hour = number(ofDigits: 2), hour < 24, taken(":"),
      let minute = number(ofDigits: 2), minute < 60, taken(":"),
      let second = number(ofDigits: 2), second <= 60
    else { return nil }
    return hour * 3_600 + minute * 60 + second
  }

  private mutating func month() -> Int64? {
    let name = word()
    return Self.months.firstIndex(of: name).map { Int64($0) + 1 }
  }

  private mutating func number(ofDigits count: Int) -> Int64? {
    guard rest.count >= count else { return nil }
    var value: Int64 = 0
    for byte in rest.prefix(count) {
      guard (0x30...0x39).contains(byte) else { return nil }
      value = value * 10 + Int64(byte - 0x30)
    }
    rest = rest.dropFirst(count)
    return value
  }

  /// Reads the letters that come next, in lower case.
  private mutating func word() -> String {
    let letters = rest.prefix { (0x41...0x5A).contains($0 & 0xDF) && $0 < 0x80 }
    rest = rest.dropFirst(letters.count)
    return String(decoding: letters.map { $0 | 0x20 }, as: UTF8.self)
  }

  private mutating func taken(_ sign: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: sign) else { return false }
    rest = rest.dropFirst()
    return true
  }

  private static let days = [
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
  ]
  private static let months = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]
}

extension HTTPDate {
  /// The text in header fields (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. Years from 0 to 9999; a date outside
  /// of them is written as the nearest one within.
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

extension Duration {
  /// The whole nanoseconds: 0 of a negative duration, and the largest number of one that is longer than 500 years.
  package var wholeNanoseconds: UInt64 {
    let nanoseconds = attoseconds / 1_000_000_000
    guard nanoseconds > 0 else { return 0 }
    return nanoseconds < 16_000_000_000_000_000_000 ? UInt64(nanoseconds) : .max
  }

  /// The whole milliseconds: 0 of a negative duration, and at most the largest number.
  package var wholeMilliseconds: Int64 {
    max(0, Int64(clamping: attoseconds / 1_000_000_000_000_000))
  }
}
