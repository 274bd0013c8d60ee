/// How long a server asks to wait before the next request (RFC 9110 §10.2.3).
package enum RetryAfter {
  /// The seconds from `now` on, zero if the time has come already; `nil` when `value` is neither a number
  /// of seconds nor a date.
  ///
  /// A date is compared with `date`, the `Date` field of the same response, if there is one: both are of
  /// the server's clock, so that a wrong clock on this side does no harm.
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
