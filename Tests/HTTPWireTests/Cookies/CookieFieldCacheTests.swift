import HTTPWire
import Testing

@Suite("Remembered Cookie fields") struct CookieFieldCacheTests {
  private let now = HTTPDate(secondsSince1970: 1_800_000_000)

  private func later(_ seconds: Int64) -> HTTPDate {
    HTTPDate(secondsSince1970: now.secondsSince1970 + seconds)
  }

  private func cookie(_ name: String, expiring seconds: Int64? = nil) -> Cookie {
    var cookie = Cookie(name: name, value: "1", domain: "a.test")
    cookie.expiry = seconds.map { later($0) }
    return cookie
  }

  @Test("A field is found for its target only") func target() {
    var cache = CookieFieldCache()
    let target = CookieTarget(host: "a.test", port: 80, path: "/x", isSecure: false)
    cache.remember("a=1", of: [cookie("a")], for: target, cause: nil, now: now)
    #expect(cache.entry(for: target, now: later(5)) == .field("a=1", from: now, until: nil))
    for other in [
      CookieTarget(host: "b.test", port: 80, path: "/x", isSecure: false),
      CookieTarget(host: "a.test", port: 81, path: "/x", isSecure: false),
      CookieTarget(host: "a.test", port: 80, path: "/", isSecure: false),
      CookieTarget(host: "a.test", port: 80, path: "/x", isSecure: true),
    ] { #expect(cache.entry(for: other, now: now) == nil) }
    cache.remember(nil, of: [], for: CookieTarget(host: "b.test"), cause: nil, now: now)
    #expect(cache.entry(for: CookieTarget(host: "b.test"), now: now) == .field(nil, from: now, until: nil))
  }

  @Test("A field expires with the first of its cookies") func expiry() {
    var cache = CookieFieldCache()
    let target = CookieTarget(host: "a.test")
    let cookies = [cookie("a", expiring: 20), cookie("b", expiring: 10), cookie("c")]
    cache.remember("all", of: cookies, for: target, cause: nil, now: now)
    #expect(cache.entry(for: target, now: later(9)) != nil)
    #expect(cache.entry(for: target, now: later(10)) == nil)
    // After the clock was set back, cookies are valid again that had expired when the field was written.
    #expect(cache.entry(for: target, now: later(-1)) == nil)
  }

  @Test("A field that depends on the cause is stored for each cause") func cause() {
    var cache = CookieFieldCache()
    let target = CookieTarget(host: "a.test")
    cache.remember("all", of: [cookie("a")], for: target, cause: .sameSite, now: now)
    #expect(cache.entry(for: target, now: now) == .dependsOnCause)
    #expect(cache.entry(for: target, cause: .foreignDocument, now: now) == nil)
    cache.remember(nil, of: [], for: target, cause: .foreignDocument, now: now)
    #expect(cache.entry(for: target, cause: .sameSite, now: now) == .field("all", from: now, until: nil))
    #expect(cache.entry(for: target, cause: .foreignDocument, now: now) == .field(nil, from: now, until: nil))
    #expect(cache.entry(for: target, cause: .redirect(isSafe: true), now: now) == nil)
  }

  @Test("The number of paths is limited") func limit() {
    var cache = CookieFieldCache()
    for number in 0..<10_000 {
      cache.remember(
        "a", of: [], for: CookieTarget(host: "a.test", path: "/\(number)"), cause: .sameSite, now: now)
      #expect(cache.count <= CookieFieldCache.limit + 2)
    }
  }

  @Test("The number of bytes is limited") func byteLimit() {
    var cache = CookieFieldCache()
    let field = String(repeating: "a", count: 8_000)
    for number in 0..<1_000 {
      let target = CookieTarget(host: "a.test", path: "/\(number)")
      cache.remember(field, of: [], for: target, cause: nil, now: now)
      #expect(cache.entry(for: target, now: now) != nil)
      #expect(cache.count <= 131)
    }
    let long = String(repeating: "a", count: 8_193)
    let target = CookieTarget(host: "a.test", path: "/x")
    cache.remember(long, of: [], for: target, cause: nil, now: now)
    #expect(cache.entry(for: target, now: now) == nil)
    let longPath = CookieTarget(host: "a.test", path: "/\(long)")
    cache.remember("a", of: [], for: longPath, cause: .sameSite, now: now)
    #expect(cache.entry(for: longPath, cause: .sameSite, now: now) == nil)
    #expect(cache.entry(for: longPath, now: now) == nil)
  }
}
