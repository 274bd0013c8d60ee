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
    let corrected = ageValue(of: stored.head) + delay
    return clamped(max(apparent, corrected) + max(0, now - stored.responseTime))
  }

  /// Returns the first `Age` value; an invalid one is ignored (RFC 9111 §5.1).
  private static func ageValue(of head: ResponseHead) -> Int64 {
    guard let text = head.block.value(of: "Age") else { return 0 }
    let first = text.prefix { $0 != "," }.filter { $0 != " " && $0 != "\t" }
    return CacheControl.seconds(first) ?? 0
  }

  private static func clamped(_ seconds: Int64) -> Int64 { min(max(0, seconds), CacheControl.forever) }
}
