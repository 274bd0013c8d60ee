/// The directives of `Cache-Control` (RFC 9111 §5.2), of a request or of a response.
///
/// A mistake never makes a response more reusable than intended. Of a repeated directive the strictest value is used;
/// an invalid number is the strictest one. An open quotation may hide any directive, so it forbids storing and reuse
/// without validation. Unknown directives are ignored.
package struct CacheControl: Sendable, Equatable {
  package var noStore = false
  /// Without names of fields.
  package var noCache = false
  /// The lower-cased names that `no-cache="…"` lists.
  package var noCacheFields: [String] = []
  package var isPrivate = false
  /// `false` beside `private`, which is the stricter one.
  package var isPublic = false
  package var mustRevalidate = false
  package var mustUnderstand = false
  /// RFC 8246.
  package var isImmutable = false
  package var onlyIfCached = false
  /// In seconds, like all that follow.
  package var maxAge: Int64?
  package var minFresh: Int64?
  /// ``forever`` without a value.
  package var maxStale: Int64?
  /// RFC 5861 §3.
  package var staleWhileRevalidate: Int64?
  /// RFC 5861 §4.
  package var staleIfError: Int64?

  /// The largest number of seconds that counts (RFC 9111 §1.2.2).
  package static let forever: Int64 = 1 << 31

  package init() {}

  /// Reads the directives of a message.
  ///
  /// - Parameter value: The values of all fields of that name, joined by commas; `nil` without any.
  package init(_ value: String?) {
    guard let value else { return }
    var reader = DirectiveReader(value)
    while let (name, argument) = reader.next() { take(name, argument) }
    if isPrivate { isPublic = false }
    if reader.isQuotationOpen {
      noStore = true
      noCache = true
    }
  }

  /// Reads the directives of a request; `Pragma: no-cache` counts if there is no `Cache-Control` (RFC 9111 §5.4).
  package init(request fields: [HTTPHeader]) {
    self.init(fields.joinedValue(of: "Cache-Control"))
    guard !fields.contains(where: { FieldName.equal($0.name, "Cache-Control") }) else { return }
    noCache = fields.contains {
      FieldName.equal($0.name, "Pragma") && $0.value.lowercased().contains("no-cache")
    }
  }

  /// Reads the directives of a response.
  package init(_ head: ResponseHead) {
    self.init(head.block.value(of: "Cache-Control"))
  }

  private mutating func take(_ name: String, _ argument: DirectiveReader.Argument) {
    let (text, isMalformed) = argument
    let seconds = isMalformed ? nil : Self.seconds(text)
    switch name {
    case "no-store": noStore = true
    case "no-cache": takeNoCache(isMalformed ? nil : text)
    case "private": isPrivate = true
    case "public": isPublic = isPublic || !isMalformed
    case "must-revalidate": mustRevalidate = true
    case "must-understand": mustUnderstand = true
    case "immutable": isImmutable = isImmutable || !isMalformed
    case "only-if-cached": onlyIfCached = true
    case "max-age": maxAge = Self.smaller(maxAge, seconds ?? 0)
    case "min-fresh": minFresh = max(minFresh ?? 0, seconds ?? Self.forever)
    case "max-stale":
      maxStale = Self.smaller(maxStale, text == nil && !isMalformed ? Self.forever : seconds ?? 0)
    case "stale-while-revalidate":
      staleWhileRevalidate = Self.smaller(staleWhileRevalidate, seconds ?? 0)
    case "stale-if-error": staleIfError = Self.smaller(staleIfError, seconds ?? 0)
    default: break
    }
  }

  private mutating func takeNoCache(_ argument: String?) {
    let names = (argument ?? "").split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
    if names.isEmpty { noCache = true }
    noCacheFields += names
  }

  private static func smaller(_ old: Int64?, _ new: Int64) -> Int64 { min(old ?? new, new) }

  /// Parses a number of seconds (RFC 9111 §1.2.2); `nil` for any other text.
  package static func seconds(_ text: String?) -> Int64? {
    guard let text, !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return min(Int64(text) ?? forever, forever)
  }
}

/// Cuts a list of directives, `name`, `name=token` or `name="quoted"`, at its commas.
private struct DirectiveReader {
  /// The text of an argument, `nil` without one, and whether it breaks the grammar. The grammar has no whitespace
  /// around the equals sign: such a directive has the strictest value (RFC 9111 §4.2.1).
  typealias Argument = (text: String?, isMalformed: Bool)

  private var rest: ArraySlice<UInt8>
  /// Whether the list ended inside a quotation, perhaps with directives of other fields in it.
  private(set) var isQuotationOpen = false

  init(_ value: String) { rest = Array(value.utf8)[...] }

  /// Returns the next directive, its name in lower case; `nil` at the end.
  mutating func next() -> (name: String, argument: Argument)? {
    while true {
      skip { $0 == 0x2C || Self.isSpace($0) }
      guard !rest.isEmpty else { return nil }
      let name = word { $0 != 0x2C && $0 != 0x3D && !Self.isSpace($0) }
      var text: String?
      if rest.first == UInt8(ascii: "=") {
        rest = rest.dropFirst()
        text = rest.first == UInt8(ascii: "\"") ? quoted() : word { $0 != 0x2C && !Self.isSpace($0) }
      }
      // Anything else before the comma, except for whitespace at the end, breaks the grammar.
      let remainder = word { $0 != 0x2C }
      let isMalformed = !remainder.allSatisfy { $0 == " " || $0 == "\t" }
      if !name.isEmpty { return (name.lowercased(), (text, isMalformed)) }
    }
  }

  private mutating func skip(_ isSkipped: (UInt8) -> Bool) { rest = rest.drop(while: isSkipped) }

  private mutating func word(_ belongs: (UInt8) -> Bool) -> String {
    let bytes = rest.prefix(while: belongs)
    rest = rest.dropFirst(bytes.count)
    return String(decoding: bytes, as: UTF8.self)
  }

  private mutating func quoted() -> String {
    rest = rest.dropFirst()
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
      if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() {
        bytes.append(escaped)
      } else {
        bytes.append(byte)
      }
    }
    isQuotationOpen = true
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

extension [HTTPHeader] {
  /// Returns the values of all fields of this name, joined by commas (RFC 9110 §5.3); `nil` without any.
  package func joinedValue(of name: String) -> String? {
    var result: String?
    for field in self where FieldName.equal(field.name, name) {
      // Appended in place, because a server may repeat a name thousands of times.
      if result == nil {
        result = field.value
      } else {
        result?.append(", ")
        result?.append(field.value)
      }
    }
    return result
  }

  package func contains(_ name: String) -> Bool { contains { FieldName.equal($0.name, name) } }
}

/// The lifetime and the age of a stored response, in seconds (RFC 9111 §4.2).
package struct Freshness: Sendable, Equatable {
  package let lifetime: Int64
  package let age: Int64

  /// Without an explicit lifetime, a tenth of the time since the last modification counts, up to a day.
  package static let heuristicLimit: Int64 = 86_400
  /// A clock that was set back by more than this makes a response stale.
  static let clockTolerance: Int64 = 60

  package init(lifetime: Int64, age: Int64) {
    self.lifetime = lifetime
    self.age = age
  }

  package init(of stored: StoredResponse, now: Int64) {
    lifetime = Self.lifetime(of: stored)
    age = Self.age(of: stored, now: now)
  }

  package var isFresh: Bool { lifetime > age }

  /// For how long it has been stale; 0 while it is fresh.
  package var staleness: Int64 { max(0, age - lifetime) }

  /// Returns the freshness lifetime (RFC 9111 §4.2.1). `s-maxage` is for shared caches.
  private static func lifetime(of stored: StoredResponse) -> Int64 {
    if let maxAge = stored.control.maxAge { return maxAge }
    if let expires = stored.head.block.value(of: "Expires") {
      // An invalid date, such as 0, is in the past (RFC 9111 §5.3).
      guard let date = HTTPDate(expires, now: HTTPDate(secondsSince1970: stored.responseTime)) else {
        return 0
      }
      return clamped(date.secondsSince1970 - stored.date)
    }
    return heuristicLifetime(of: stored)
  }

  /// Returns the heuristic lifetime (RFC 9111 §4.2.2); 0 for a URL with a query, because a program computes its
  /// response.
  private static func heuristicLifetime(of stored: StoredResponse) -> Int64 {
    guard StorageRules.isHeuristicallyCacheable(stored.head.status) || stored.control.isPublic,
      !stored.key.url.utf8.contains(UInt8(ascii: "?")),
      let modified = stored.lastModified.flatMap({
        HTTPDate($0, now: HTTPDate(secondsSince1970: stored.responseTime))
      })
    else { return 0 }
    return min(heuristicLimit, clamped((stored.date - modified.secondsSince1970) / 10))
  }

  /// Returns the current age (RFC 9111 §4.2.3).
  private static func age(of stored: StoredResponse, now: Int64) -> Int64 {
    guard now + clockTolerance >= stored.responseTime else { return CacheControl.forever }
    let apparent = max(0, stored.responseTime - stored.date)
    let delay = max(0, stored.responseTime - stored.requestTime)
    let corrected = stored.head.block.age + delay
    return clamped(max(apparent, corrected) + max(0, now - stored.responseTime))
  }

  private static func clamped(_ seconds: Int64) -> Int64 { min(max(0, seconds), CacheControl.forever) }
}
