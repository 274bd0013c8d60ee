/// The dates of cookies (RFC 6265bis §5.1.1): read out of almost any text, since servers have always written
/// them as they liked.
package enum CookieDate {
  /// Returns the date in a text; `nil` if there is none, or the day does not exist.
  ///
  /// The parts are a time, a day of one or two digits, the name of a month, and a year of two to four digits. Each
  /// word is taken as the first missing part that it can be. Other words, including time zones, are ignored: the time
  /// is UTC.
  package static func parse(_ text: some Sequence<UInt8>) -> HTTPDate? {
    var found = Found()
    var word: [UInt8] = []
    for byte in text {
      guard isDelimiter(byte) else {
        word.append(byte)
        continue
      }
      if !word.isEmpty { found.take(word) }
      word.removeAll(keepingCapacity: true)
    }
    if !word.isEmpty { found.take(word) }
    return found.date
  }

  private static func isDelimiter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
    default: false
    }
  }

  /// The parts found so far, each once.
  private struct Found {
    var time: (hour: Int64, minute: Int64, second: Int64)?
    var day: Int64?
    var month: Int64?
    var year: Int64?

    /// Takes a word as the first missing part that it can be.
    mutating func take(_ word: [UInt8]) {
      if time == nil, let time = Self.time(word) {
        self.time = time
      } else if day == nil, let day = Self.number(word[...], digits: 1...2) {
        self.day = day
      } else if month == nil, let month = Self.month(word) {
        self.month = month
      } else if year == nil, let year = Self.number(word[...], digits: 2...4) {
        self.year = year
      }
    }

    var date: HTTPDate? {
      guard let time, let day, let month, var year else { return nil }
      if (70...99).contains(year) { year += 1900 }
      if (0...69).contains(year) { year += 2000 }
      guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59,
        day >= 1
      else { return nil }
      let days = HTTPDate.day(year: year, month: month, day: day)
      let next = month == 12 ? (year: year + 1, month: Int64(1)) : (year: year, month: month + 1)
      guard days < HTTPDate.day(year: next.year, month: next.month, day: 1) else { return nil }
      return HTTPDate(
        secondsSince1970: days * 86_400 + time.hour * 3_600 + time.minute * 60 + time.second)
    }

    /// Parses three numbers separated by colons; no digit may follow the last one.
    private static func time(_ word: [UInt8]) -> (Int64, Int64, Int64)? {
      let parts = word.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, parts[0].allSatisfy(isDigit), parts[1].allSatisfy(isDigit),
        let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
        let second = number(parts[2], digits: 1...2)
      else { return nil }
      return (hour, minute, second)
    }

    /// Returns the number at the beginning of a word, if it has as many digits; any other character may follow.
    private static func number(_ word: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int64? {
      let front = word.prefix { isDigit($0) }
      guard digits.contains(front.count) else { return nil }
      return front.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    private static func month(_ word: [UInt8]) -> Int64? {
      guard word.count >= 3 else { return nil }
      let front = word.prefix(3).map { FieldName.lowercased($0) }
      return months.firstIndex { $0.elementsEqual(front) }.map { Int64($0) + 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static let months = [
      "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ].map { Array($0.utf8) }
  }
}
