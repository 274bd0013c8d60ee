/// A stored cookie (RFC 6265bis §5.7).
package struct Cookie: Sendable, Equatable {
  /// Which requests that another site has caused may carry the cookie (RFC 6265bis §5.6.7).
  package enum SameSite: String, Sendable {
    case strict = "Strict"
    case lax = "Lax"
    case none = "None"
  }

  /// May be empty: then the value alone is sent.
  package var name: String
  package var value: String
  /// ASCII, lower case, without a dot in front and without the brackets of an IPv6 address.
  package var domain: String
  /// Whether ``domain`` is the only host that gets it.
  package var isHostOnly: Bool
  /// Begins with a slash.
  package var path: String
  package var isSecure = false
  package var isHTTPOnly = false
  /// The attribute `SameSite`; `nil` if it is missing or unknown.
  package var sameSite: SameSite?
  /// The time at which the cookie expires; `nil` for the end of the session.
  package var expiry: HTTPDate?
  /// The time at which a cookie of this identity was first stored, in microseconds since the beginning of 1970. Of
  /// cookies with paths of one length the older is sent first.
  package var creation: Int64
  /// The ports that it is for; empty for all. Only cookies that a program has created itself have ports.
  package var ports: [Int] = []

  package init(
    name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/",
    creation: Int64 = 0
  ) {
    self.name = name
    self.value = value
    self.domain = domain
    self.isHostOnly = isHostOnly
    self.path = path
    self.creation = creation
  }

  /// Whether one replaces the other (RFC 6265bis §5.7, "with the same name, domain, host-only-flag, and path").
  package func hasIdentity(of other: Cookie) -> Bool {
    // Byte by byte: to a server, `é` and `e` with an accent are not one name.
    domain == other.domain && isHostOnly == other.isHostOnly && name.hasBytes(of: other.name)
      && path.hasBytes(of: other.path)
  }

  /// Whether nothing changes if the other one replaces it.
  package func equals(_ other: Cookie) -> Bool {
    self == other && hasIdentity(of: other) && value.hasBytes(of: other.value)
  }

  package func isExpired(at now: HTTPDate) -> Bool {
    expiry.map { $0 <= now } ?? false
  }

  /// The pair of a `Cookie` field (RFC 6265bis §5.8.3).
  package var pair: String { name.isEmpty ? value : name + "=" + value }
}

/// A parsed `Set-Cookie` field (RFC 6265bis §5.6). ``CookieRules`` decides whether the cookie is stored.
package struct SetCookie: Sendable, Equatable {
  package var name: String
  package var value: String
  /// The time at which the cookie expires, by `Expires` alone.
  package var expires: HTTPDate?
  /// For how many seconds it lives; wins over ``expires``. Zero and less is over at once.
  package var maxAge: Int64?
  /// The domain without a dot in front, in lower case; `nil` without a `Domain` attribute. May be empty.
  package var domain: String?
  /// The path of a valid `Path` attribute; an empty text for an invalid one, which means the default.
  package var path: String?
  package var isSecure = false
  package var isHTTPOnly = false
  package var sameSite: Cookie.SameSite?

  /// Takes the value of a field apart.
  ///
  /// - Throws: The reason why the field is not a cookie.
  package init(_ field: some Collection<UInt8>) throws(CookieRefusal) {
    let bytes = Array(field)
    if bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) { throw .controlCharacter }
    let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
    let pair = bytes[..<end]
    var nameBytes = bytes[..<0]
    var valueBytes = Self.trimmed(pair)
    if let sign = pair.firstIndex(of: UInt8(ascii: "=")) {
      nameBytes = Self.trimmed(pair[..<sign])
      valueBytes = Self.trimmed(pair[(sign + 1)...])
    }
    guard !nameBytes.isEmpty || !valueBytes.isEmpty else { throw .empty }
    guard nameBytes.count + valueBytes.count <= Self.pairLimit else { throw .tooLong }
    guard let name = String(validating: nameBytes, as: UTF8.self),
      let value = String(validating: valueBytes, as: UTF8.self)
    else { throw .notText }
    self.name = name
    self.value = value
    for attribute in bytes[end...].split(separator: UInt8(ascii: ";")) { take(attribute) }
  }

  /// The most bytes that name and value may have together (RFC 6265bis §5.6).
  package static let pairLimit = 4096
  /// The most bytes that the value of an attribute may have (RFC 6265bis §5.6).
  package static let attributeLimit = 1024

  /// Reads an attribute. Of attributes that come twice the last one counts.
  private mutating func take(_ attribute: ArraySlice<UInt8>) {
    let sign = attribute.firstIndex(of: UInt8(ascii: "="))
    let name = Self.trimmed(attribute[..<(sign ?? attribute.endIndex)]).map { FieldName.lowercased($0) }
    let value = Self.trimmed(sign.map { attribute[($0 + 1)...] } ?? [])
    guard value.count <= Self.attributeLimit else { return }
    switch String(decoding: name, as: UTF8.self) {
    case "expires": expires = CookieDate.parse(value) ?? expires
    case "max-age": maxAge = Self.seconds(value) ?? maxAge
    case "domain":
      let text = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
      // Bytes that are not text are not a domain either, and are refused as such.
      domain = String(decoding: text.map { FieldName.lowercased($0) }, as: UTF8.self)
    case "path":
      let isPath = value.first == UInt8(ascii: "/")
      path = isPath ? String(validating: value, as: UTF8.self) ?? "" : ""
    case "secure": isSecure = true
    case "httponly": isHTTPOnly = true
    case "samesite": sameSite = Self.sameSite(value)
    default: break
    }
  }

  /// Returns the seconds of `Max-Age` (RFC 6265bis §5.6.2), clamped to the range of the type.
  private static func seconds(_ value: ArraySlice<UInt8>) -> Int64? {
    let isNegative = value.first == UInt8(ascii: "-")
    let digits = isNegative ? value.dropFirst() : value
    guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    if isNegative { return 0 }
    return digits.reduce(Int64(0)) { $0 > 1 << 40 ? $0 : $0 * 10 + Int64($1 - 0x30) }
  }

  private static func sameSite(_ value: ArraySlice<UInt8>) -> Cookie.SameSite? {
    switch String(decoding: value.map { FieldName.lowercased($0) }, as: UTF8.self) {
    case "strict": .strict
    case "lax": .lax
    case "none": Cookie.SameSite.none
    default: nil
    }
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    guard let first = bytes.firstIndex(where: { !isSpace($0) }),
      let last = bytes.lastIndex(where: { !isSpace($0) })
    else { return [] }
    return bytes[first...last]
  }
}

/// The dates of cookies (RFC 6265bis §5.1.1): read from almost any text, because servers have never agreed on a format.
package enum CookieDate {
  /// Returns the date in a text; `nil` if there is none, or the day does not exist.
  ///
  /// The parts are a time, a day of one or two digits, the name of a month, and a year of two to four digits. Each word
  /// is read as the first missing part that it matches. Other words, including time zones, are ignored: the time is
  /// UTC.
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
